"""Creates departments, shelves and products, with a picture for each shelf."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from django.utils.text import slugify
from oscar.core.loading import get_model
from PIL import Image, ImageDraw

from envs.suites.sites.apps.base import FILES
from envs.suites.sites.apps.django_base import bulk
from envs.suites.sites.apps.shop.seed import words
from envs.suites.sites.apps.shop.seed.stock import (
    ATTRIBUTES,
    BRANDS,
    COLOURS,
    DEPARTMENTS,
    PARTNERS,
    PER_SHELF,
    RANGES,
    Shelf,
)
from envs.suites.sites.clock import NOW

PENCE = (0.0, 0.5, 0.25, 0.95, 0.99, 0.75)
LOW_STOCK = 5
PICTURE_PX = 155


def create(rng: random.Random, golden: Path) -> list[Any]:
    """Creates the catalogue. Returns the stock records, each with its product."""
    kinds = {name: _create_kind(name) for name in ATTRIBUTES}
    partners = {name: get_model("partner", "Partner").objects.create(name=name) for name in PARTNERS}
    stock: list[Any] = []
    for department, shelves in DEPARTMENTS.items():
        root = get_model("catalogue", "Category").add_root(
            name=department, description=f"<p>Everything for {department.lower()} lovers.</p>"
        )
        for shelf in shelves:
            category = root.add_child(name=shelf.name, description=f"<p>Our {shelf.name.lower()}.</p>")
            picture = _draw(golden / FILES, shelf, len(stock))
            partner = partners[PARTNERS[2] if shelf.kind == "Book" else PARTNERS[len(stock) % 2]]
            stock += _fill_shelf(rng, shelf, Place(category, kinds[shelf.kind], partner, picture))
    return stock


def _create_kind(name: str) -> Any:
    kind = get_model("catalogue", "ProductClass").objects.create(name=name)
    attribute = get_model("catalogue", "ProductAttribute")
    bulk(
        attribute,
        (attribute(product_class=kind, code=code, name=label, type=type_) for code, label, type_ in ATTRIBUTES[name]),
    )
    return kind


def _draw(files: Path, shelf: Shelf, number: int) -> str:
    """Draws a tile with the shelf's initials. Returns its path below the folder of uploads."""
    hue = number * 47 % 360
    picture = Image.new("RGB", (PICTURE_PX, PICTURE_PX), f"hsl({hue}, 35%, 78%)")
    drawing = ImageDraw.Draw(picture)
    drawing.rectangle((20, 20, PICTURE_PX - 21, PICTURE_PX - 21), outline=f"hsl({hue}, 45%, 40%)", width=3)
    initials = "".join(word[0] for word in shelf.name.split() if word != "and")
    drawing.text((PICTURE_PX // 2, PICTURE_PX // 2), initials, f"hsl({hue}, 45%, 30%)", anchor="mm", font_size=48)
    name = f"products/{slugify(shelf.name)}.png"
    path = files / name
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, optimize=True)
    return name


def _titles(rng: random.Random, shelf: Shelf) -> Iterator[tuple[str, str, int]]:
    """Yields unique titles of at most four words, with style and index of the noun; the nouns take turns."""
    taken: set[str] = set()
    number = 0
    while True:
        style, brand = rng.choice(shelf.styles), rng.choice(BRANDS)
        noun = shelf.nouns[number % len(shelf.nouns)].name
        title = f"{brand}'s {style} {noun}" if shelf.kind == "Book" else f"{brand} {style} {noun}"
        if title not in taken:
            taken.add(title)
            yield title, style, number % len(shelf.nouns)
            number += 1


class Place(NamedTuple):
    """Values that the products of one shelf share."""

    category: Any
    kind: Any
    partner: Any
    picture: str


def _fill_shelf(rng: random.Random, shelf: Shelf, place: Place) -> list[Any]:
    """Creates the products of one shelf, with distinct prices."""
    category, kind, partner, picture = place
    product = get_model("catalogue", "Product")
    titles, prices = _titles(rng, shelf), set[float]()
    rows: list[tuple[Any, float, dict[str, object]]] = []
    while len(rows) < PER_SHELF:
        title, style, noun = next(titles)
        price = _price(rng, shelf.nouns[noun].least, shelf.nouns[noun].most, prices)
        values = _attributes(rng, shelf.kind, title, style)
        row = product(
            title=title,
            slug=slugify(title),
            upc=f"{category.pk:02d}{len(rows) + 1:02d}{rng.randint(1000, 9999)}",
            description=_description(rng, shelf, title, values),
            product_class=kind,
            meta_description="",
        )
        rows.append((row, price, values))
    products = bulk(product, (row for row, _, _ in rows))
    for row in products:
        created = NOW - timedelta(days=rng.randint(20, 700), minutes=rng.randint(0, 1439))
        product.objects.filter(pk=row.pk).update(date_created=created, date_updated=created)
    through, pictures = get_model("catalogue", "ProductCategory"), get_model("catalogue", "ProductImage")
    bulk(through, (through(product=row, category=category) for row in products))
    bulk(pictures, (pictures(product=row, original=picture, display_order=0) for row in products))
    _store_attributes(kind, [(row, values) for row, _, values in rows])
    return _stock_up(rng, partner, [(row, price) for row, price, _ in rows])


def _price(rng: random.Random, least: float, most: float, taken: set[float]) -> float:
    while True:
        price = round(rng.randint(int(least), int(most)) + rng.choice(PENCE), 2)
        if price not in taken:
            taken.add(price)
            return price


def _attributes(rng: random.Random, kind: str, title: str, style: str) -> dict[str, object]:
    """Attribute values by code. Brand and material agree with the title."""
    known: dict[str, object] = {"brand": title.split(maxsplit=1)[0], "material": style, "colour": rng.choice(COLOURS)}
    known["author"] = f"{rng.choice(words.FIRST_NAMES)} {title.split(maxsplit=1)[0].removesuffix(chr(39) + 's')}"
    values: dict[str, object] = {}
    for code, _, type_ in ATTRIBUTES[kind]:
        if type_ == "integer":
            values[code] = rng.randint(*RANGES[code])
        elif type_ == "boolean":
            values[code] = rng.random() < 0.5
        else:
            values[code] = known[code]
    return values


def _store_attributes(kind: Any, rows: list[tuple[Any, dict[str, object]]]) -> None:
    record = get_model("catalogue", "ProductAttributeValue")
    attributes = {attribute.code: attribute for attribute in kind.attributes.all()}
    bulk(
        record,
        (
            record(product=row, attribute=attributes[code], **{f"value_{attributes[code].type}": value})
            for row, values in rows
            for code, value in values.items()
        ),
    )


def _description(rng: random.Random, shelf: Shelf, title: str, values: dict[str, object]) -> str:
    if shelf.kind == "Book":
        return f"<p>{title}, by {values['author']}. {rng.choice(words.PRAISE)}</p>"
    return f"<p>{title}: from our shelf of {shelf.name.lower()}. {rng.choice(words.PRAISE)}</p>"


def _stock_up(rng: random.Random, partner: Any, rows: list[tuple[Any, float]]) -> list[Any]:
    """Creates a stock record per product. About one in twelve is sold out and one in eight low, both with an alert."""
    record, alert = get_model("partner", "StockRecord"), get_model("partner", "StockAlert")
    stock: list[Any] = []
    for row, price in rows:
        drawn = rng.random()
        amount = (
            0 if drawn < 1 / 12 else rng.randint(1, LOW_STOCK - 1) if drawn < 1 / 12 + 1 / 8 else rng.randint(8, 90)
        )
        stock.append(
            record(
                product=row,
                partner=partner,
                partner_sku=f"HL-{row.upc}",
                price_currency="GBP",
                price=f"{price:.2f}",
                num_in_stock=amount,
                low_stock_threshold=LOW_STOCK,
            )
        )
    bulk(record, stock)
    bulk(alert, (alert(stockrecord=s, threshold=LOW_STOCK) for s in stock if s.num_in_stock < LOW_STOCK))
    return stock
