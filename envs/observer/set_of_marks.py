"""Set-of-marks: boxes with ref numbers drawn on a screenshot, without touching the page.

Uses Pillow (pure drawing, a few MB, no system packages), imported only when a screenshot is marked.
"""

from __future__ import annotations

import io
from collections.abc import Iterable

from envs.core.observation import Element

COLORS = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2")
"""Neighbouring refs differ in colour."""


def marked(png: bytes, elements: Iterable[Element], viewport: tuple[int, int]) -> bytes:
    """The PNG with every element that has a box in the viewport outlined and labelled with its ref.

    Boxes are CSS pixels of the viewport, which the picture may show at another scale (device pixels).
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
