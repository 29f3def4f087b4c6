"""Draws pictures for the museum: a sky, a sea and a few shapes. Drawn pictures have no copyright holder."""

from __future__ import annotations

from io import BytesIO
from random import Random

from PIL import Image, ImageDraw

WIDTH, HEIGHT = 960, 600

Colour = tuple[int, int, int]


def draw(rng: Random) -> bytes:
    """A JPEG that depends on *rng* only."""
    image = Image.new("RGB", (WIDTH, HEIGHT), _colour(rng, 150, 230))
    pen = ImageDraw.Draw(image)
    horizon = rng.randint(HEIGHT // 3, 2 * HEIGHT // 3)
    _sky(pen, rng, horizon)
    pen.rectangle((0, horizon, WIDTH, HEIGHT), fill=_colour(rng, 30, 120))
    for _ in range(rng.randint(3, 7)):
        _shape(pen, rng)
    content = BytesIO()
    image.save(content, "JPEG", quality=80)
    return content.getvalue()


def _sky(pen: ImageDraw.ImageDraw, rng: Random, horizon: int) -> None:
    radius = rng.randint(30, 80)
    x, y = rng.randint(0, WIDTH), rng.randint(0, horizon)
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_colour(rng, 220, 255))


def _shape(pen: ImageDraw.ImageDraw, rng: Random) -> None:
    x, y = rng.randint(50, WIDTH - 250), rng.randint(50, HEIGHT - 200)
    width, height = rng.randint(40, 220), rng.randint(40, 160)
    colour = _colour(rng, 20, 220)
    match rng.randrange(3):
        case 0:
            pen.rectangle((x, y, x + width, y + height), fill=colour)
        case 1:
            pen.polygon([(x, y + height), (x + width, y + height), (x + width // 2, y)], fill=colour)
        case _:
            pen.ellipse((x, y, x + width, y + height), fill=colour)


def _colour(rng: Random, low: int, high: int) -> Colour:
    return rng.randint(low, high), rng.randint(low, high), rng.randint(low, high)
