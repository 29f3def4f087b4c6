"""The picture that a model with a tool set sees, and its coordinates.

Vendors make large pictures smaller before the model sees them, and its coordinates would then have another scale. So a
screenshot is brought to a size that they take unchanged, and coordinates are converted to CSS pixels of the view here.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from models.base import Image

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MAX_EDGE: Final = 1_568
"""Longest edge in pixels that vendors take unchanged."""
MAX_PIXELS: Final = 1_150_000
"""Most pixels that vendors take unchanged."""
MAX_PNG: Final = 500_000
"""Bytes above which a picture is sent as JPEG: a conversation holds dozens, and vendors limit a request's size."""
JPEG_QUALITY: Final = 90


@dataclass(frozen=True, slots=True)
class Display:
    viewport: tuple[int, int]
    """Size of the view in CSS pixels."""
    size: tuple[int, int]
    """Size of the picture in pixels, the frame of the model's coordinates."""

    @classmethod
    def of(cls, viewport: tuple[int, int]) -> Display:
        width, height = viewport
        scale = min(1.0, MAX_EDGE / max(width, height), (MAX_PIXELS / (width * height)) ** 0.5)
        return cls(viewport, (max(1, int(width * scale)), max(1, int(height * scale))))

    def contains(self, x: float, y: float) -> bool:
        return 0 <= x <= self.size[0] and 0 <= y <= self.size[1]

    def to_css(self, x: float, y: float) -> tuple[float, float]:
        """The point in CSS pixels of the view; the middle of its pixel if the picture is smaller than the view."""
        return self._along(x, 0), self._along(y, 1)

    def _along(self, value: float, axis: int) -> float:
        size, view = self.size[axis], self.viewport[axis]
        if size == view:
            return min(value, view - 1)
        return round(min((value + 0.5) * view / size, view - 0.5), 2)

    def picture(self, png: bytes) -> Image:
        """The screenshot in the size of the display. Its own size may be that of device pixels."""
        from PIL import Image as Pillow

        with Pillow.open(io.BytesIO(png)) as opened:
            if opened.size == self.size and len(png) <= MAX_PNG:
                return Image(png)
            return _encoded(opened.convert("RGB").resize(self.size, Pillow.Resampling.LANCZOS))

    def zoom(self, png: bytes, region: tuple[float, float, float, float]) -> Image:
        """The *region* (x0, y0, x1, y1 in the picture) in all the detail of the screenshot, as large as the display
        allows."""
        from PIL import Image as Pillow

        with Pillow.open(io.BytesIO(png)) as opened:
            scale_x, scale_y = opened.width / self.size[0], opened.height / self.size[1]
            x0, y0, x1, y1 = region
            box = (int(x0 * scale_x), int(y0 * scale_y), round(x1 * scale_x), round(y1 * scale_y))
            part = opened.convert("RGB").crop((box[0], box[1], max(box[2], box[0] + 1), max(box[3], box[1] + 1)))
        scale = min(self.size[0] / part.width, self.size[1] / part.height)
        size = (max(1, int(part.width * scale)), max(1, int(part.height * scale)))
        return _encoded(part.resize(size, Pillow.Resampling.LANCZOS))

    def blank(self) -> Image:
        """A grey picture, where the screenshot was withheld and a vendor requires one."""
        from PIL import Image as Pillow

        return _encoded(Pillow.new("RGB", self.size, "#808080"))


def _encoded(picture: Picture) -> Image:
    out = io.BytesIO()
    picture.save(out, format="PNG")
    if len(out.getvalue()) <= MAX_PNG:
        return Image(out.getvalue())
    smaller = io.BytesIO()
    picture.save(smaller, format="JPEG", quality=JPEG_QUALITY)
    return Image(smaller.getvalue(), "image/jpeg")
