"""Encodes screenshots as data URIs. They are decoded first, so that only pictures are embedded, and made smaller."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Final, Literal

from PIL import Image

from envs.core.errors import TraceError
from envs.core.trace_store import BlobStore

Screenshots = Literal["auto", "none", "key", "all"]
"""Screenshots to embed: none, those at the key step and the end, or all; `auto` is all up to 1,500 steps, else key."""

AUTO_STEPS: Final = 1500
_WIDEST: Final = 1280
_KEPT_AS_IS: Final = 24_000
"""Maximum bytes of a PNG that is embedded unchanged; larger ones are converted to WebP."""
_MOST_PIXELS: Final = 50_000_000


@dataclass(slots=True)
class Gallery:
    """Encodes the screenshots of one report and counts them and their bytes."""

    count: int = 0
    bytes: int = 0
    left_out: int = 0

    def uri(self, blobs: BlobStore, name: str) -> tuple[str, int, int]:
        """The data URI, width and height of a picture. Raises TraceError if the blob is damaged or not a picture."""
        data = blobs.read(name)
        try:
            with Image.open(io.BytesIO(data)) as image:
                width, height = image.size
                if width * height > _MOST_PIXELS:
                    raise TraceError(f"image {name} of {width}x{height} pixels is too large to show")
                kind, shown = self._fitting(image, data)
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise TraceError(f"blob {name} is not an image: {type(error).__name__}") from None
        self.count += 1
        self.bytes += len(shown)
        return f"data:image/{kind};base64,{base64.b64encode(shown).decode()}", width, height

    @staticmethod
    def _fitting(image: Image.Image, data: bytes) -> tuple[str, bytes]:
        if image.format == "PNG" and len(data) <= _KEPT_AS_IS:
            image.verify()
            return "png", data
        plain = image.convert("RGB")
        plain.thumbnail((_WIDEST, _WIDEST * 4))
        out = io.BytesIO()
        plain.save(out, "WEBP", quality=80, method=2)
        return "webp", out.getvalue()
