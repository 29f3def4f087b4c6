"""Pictures of the view as they are sent to a model. Pillow is imported when a picture is resized."""

from __future__ import annotations

import io
import struct

from models.base import Image, ModelRejected
from models.vision.coordinates import ImageFrame, Size
from models.vision.profiles import VisionProfile

_PNG = b"\x89PNG\r\n\x1a\n"


def picture_size(png: bytes) -> Size:
    """Width and height of a PNG in pixels. Raises :class:`models.base.ModelRejected` if it is none."""
    if not png.startswith(_PNG) or len(png) < 24:
        raise ModelRejected("the image of the view is not a PNG")
    return Size(*struct.unpack(">II", png[16:24]))


def picture_for(profile: VisionProfile, png: bytes, view: tuple[int, int]) -> tuple[Image, ImageFrame]:
    """The picture that a model of *profile* is sent for the screenshot *png* of a *view* in CSS pixels, and the frame
    of its coordinates. A picture that its service or its processor would resize is resized here, so that both know the
    size in which the model sees it."""
    taken = picture_size(png)
    sent = profile.sent_size(taken)
    picture = png if sent == taken else resized(png, sent)
    return Image(picture), ImageFrame(Size(*view), sent, sent if profile.resize is not None else None)


def resized(png: bytes, size: Size) -> bytes:
    """The PNG in another *size*, in whole pixels."""
    from PIL import Image as Pillow

    out = io.BytesIO()
    with Pillow.open(io.BytesIO(png)) as opened:
        shape = (int(size.width), int(size.height))
        opened.convert("RGB").resize(shape, Pillow.Resampling.BICUBIC).save(out, format="PNG")
    return out.getvalue()
