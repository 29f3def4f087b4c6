"""The size of a PNG image, without an image library."""

from __future__ import annotations

import struct
from typing import Final

from models.vision.coordinates import Size

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"


def png_size(data: bytes) -> Size:
    """Width and height in pixels, from the header. Raises ValueError if *data* is no PNG image."""
    if not data.startswith(_SIGNATURE) or data[12:16] != b"IHDR" or len(data) < 24:
        raise ValueError("not a PNG image")
    width, height = struct.unpack(">II", data[16:24])
    return Size(width, height)
