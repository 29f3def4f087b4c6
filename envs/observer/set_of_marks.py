"""Draws set-of-marks: boxes with ref numbers on a screenshot, without changing the page.

It uses Pillow, which is imported only when a screenshot is marked.
"""

from __future__ import annotations

import io
from collections.abc import Iterable

from envs.core.observation import Element

COLORS = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2")
"""Colours by ref, different for neighbouring refs."""


def marked(png: bytes, elements: Iterable[Element], viewport: tuple[int, int]) -> bytes:
    """Returns the PNG with all elements that have a box in the viewport outlined and labelled with their refs.

    Boxes are in CSS pixels of the viewport; the image may have another scale (device pixels).
    """
    from PIL import Image, ImageDraw, ImageFont

    with Image.open(io.BytesIO(png)) as opened:
        image = opened.convert("RGB")
    scale = image.width / viewport[0]
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=12 * scale)
    for element in elements:
        box = element.box
        if box is None or box.x >= viewport[0] or box.y >= viewport[1] or box.x + box.width <= 0:
            continue
        if box.y + box.height <= 0:
            continue
        left, top = max(0.0, box.x * scale), max(0.0, box.y * scale)
        right = min((box.x + box.width) * scale, image.width)
        bottom = min((box.y + box.height) * scale, image.height)
        color = COLORS[element.ref % len(COLORS)]
        draw.rectangle((left, top, max(left + 1, right), max(top + 1, bottom)), outline=color, width=round(2 * scale))
        label = str(element.ref)
        tag = draw.textbbox((left, top), label, font=font)
        draw.rectangle((tag[0] - 1, tag[1] - 1, tag[2] + 2, tag[3] + 2), fill=color)
        draw.text((left, top), label, fill="white", font=font)
    out = io.BytesIO()
    image.save(out, format="PNG")
    return out.getvalue()
