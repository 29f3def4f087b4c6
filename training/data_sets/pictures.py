"""Sizes of pictures, and copies that are upright.

A camera or a phone may store a picture as the sensor saw it, with a turn in its EXIF data. Viewers and labelling tools
turn it; a library that reads pixels alone does not. Boxes are in the upright picture, so that one is stored.
"""

from __future__ import annotations

import io
from typing import Any, Final

from training.data_sets.items import Picture, Size

_ORIENTATION: Final = 0x0112
"""EXIF tag: 1 is upright, 2 to 8 are mirrored or turned."""
_SIDEWAYS: Final = range(5, 9)


def upright_size(picture: Picture) -> Size:
    """Width and height of *picture* in pixels when it is upright; reads no more than its header from a file. Raises the
    errors of Pillow for a damaged one: OSError, SyntaxError, ValueError."""
    with _opened(picture) as image:
        width, height = image.size
        return (height, width) if _orientation(image) in _SIDEWAYS else (width, height)


def upright(picture: Picture) -> Picture:
    """*picture* as it is if it is stored upright; else an upright copy, a PNG. Raises as :func:`upright_size`."""
    from PIL import ImageOps

    with _opened(picture) as image:
        if _orientation(image) in (1, None):
            return picture
        out = io.BytesIO()
        ImageOps.exif_transpose(image).convert("RGB").save(out, format="PNG")
        return out.getvalue()


def _opened(picture: Picture) -> Any:
    from PIL import Image

    return Image.open(io.BytesIO(picture) if isinstance(picture, bytes) else picture)


def _orientation(image: Any) -> int | None:
    """None for a PNG, which is not turned: Pillow would decode all of it to look for the tag."""
    return None if image.format == "PNG" else image.getexif().get(_ORIENTATION)
