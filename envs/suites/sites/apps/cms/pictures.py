"""Pictures for the museum: a sky, a sea, a few shapes. Drawn, since photographs belong to somebody."""

from __future__ import annotations

from io import BytesIO
from random import Random

from PIL import Image, ImageDraw

WIDTH, HEIGHT = 960, 600

Colour = tuple[int, int, int]


def draw(chance: Random) -> bytes:
    """A JPEG, the same for the same *chance*."""
    image = Image.new("RGB", (WIDTH, HEIGHT), _colour(chance, 150, 230))
    pen = ImageDraw.Draw(image)
    horizon = chance.randint(HEIGHT // 3, 2 * HEIGHT // 3)
    _sky(pen, chance, horizon)
    pen.rectangle((0, horizon, WIDTH, HEIGHT), fill=_colour(chance, 30, 120))
    for _ in range(chance.randint(3, 7)):
        _shape(pen, chance)
    content = BytesIO()
    image.save(content, "JPEG", quality=80)
    return content.getvalue()


def _sky(pen: ImageDraw.ImageDraw, chance: Random, horizon: int) -> None:
    radius = chance.randint(30, 80)
    x, y = chance.randint(0, WIDTH), chance.randint(0, horizon)
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_colour(chance, 220, 255))


def _shape(pen: ImageDraw.ImageDraw, chance: Random) -> None:
    x, y = chance.randint(50, WIDTH - 250), chance.randint(50, HEIGHT - 200)
    width, height = chance.randint(40, 220), chance.randint(40, 160)
    colour = _colour(chance, 20, 220)
    match chance.randrange(3):
        case 0:
            pen.rectangle((x, y, x + width, y + height), fill=colour)
        case 1:
            pen.polygon([(x, y + height), (x + width, y + height), (x + width // 2, y)], fill=colour)
        case _:
            pen.ellipse((x, y, x + width, y + height), fill=colour)


def _colour(chance: Random, low: int, high: int) -> Colour:
    return chance.randint(low, high), chance.randint(low, high), chance.randint(low, high)
