"""Departments, shelves and the kinds of products on them."""

from __future__ import annotations

from typing import NamedTuple


class Noun(NamedTuple):
    """A kind of product with its price range in pounds."""

    name: str
    least: float
    most: float


class Shelf(NamedTuple):
    """A category with products."""

    name: str
    kind: str
    """The product type; `ATTRIBUTES` has its attributes."""
    styles: tuple[str, ...]
    nouns: tuple[Noun, ...]


PER_SHELF = 9


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


BRANDS = _words(
    "Fenwick, Tindra, Okuda, Marlowe, Brackwater, Ostrava, Petrel, Lindholm, Cavanagh, Juno, Harrow, Solvei, "
    "Kestrel, Umbra, Dunmore"
)
COLOURS = _words("black, white, moss-green, navy, terracotta, mustard, slate, plum")
PARTNERS = ("Quayside Warehouse", "Northgate Depot", "Millbrook Books")

ATTRIBUTES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Kitchenware": (
        ("brand", "Brand", "text"),
        ("material", "Material", "text"),
        ("colour", "Colour", "text"),
        ("weight", "Weight in grams", "integer"),
        ("dishwasher", "Dishwasher safe", "boolean"),
    ),
    "Garden ware": (
        ("brand", "Brand", "text"),
        ("material", "Material", "text"),
        ("weight", "Weight in grams", "integer"),
        ("warranty", "Warranty in years", "integer"),
    ),
    "Book": (
        ("author", "Author", "text"),
        ("pages", "Pages", "integer"),
        ("published", "Year of publication", "integer"),
    ),
    "Game": (
        ("brand", "Brand", "text"),
        ("age", "Minimum age", "integer"),
        ("players", "Most players", "integer"),
        ("minutes", "Playing time in minutes", "integer"),
    ),
    "Outdoor gear": (
        ("brand", "Brand", "text"),
        ("colour", "Colour", "text"),
        ("weight", "Weight in grams", "integer"),
        ("waterproof", "Waterproof", "boolean"),
        ("warranty", "Warranty in years", "integer"),
    ),
    "Stationery": (
        ("brand", "Brand", "text"),
        ("colour", "Colour", "text"),
        ("material", "Material", "text"),
    ),
}
"""Code, name and type of each attribute, by product type."""
RANGES = {
    "weight": (120, 4800),
    "warranty": (1, 10),
    "pages": (96, 720),
    "published": (1988, 2025),
    "age": (3, 14),
    "players": (1, 8),
    "minutes": (10, 150),
}
"""Smallest and largest value of the numeric attributes."""

METALS = ("Cast-Iron", "Copper", "Steel", "Enamel")
CLAYS = ("Stoneware", "Porcelain", "Earthenware", "Glass")
WOODS = ("Oak", "Walnut", "Beech", "Olive-Wood")
CLOTHS = ("Wool", "Canvas", "Linen", "Felt")


def _nouns(text: str) -> tuple[Noun, ...]:
    """Parses a comma-separated list of `Name least most`."""
    parts = (part.strip().rsplit(" ", 2) for part in text.split(","))
    return tuple(Noun(name, float(least), float(most)) for name, least, most in parts)


DEPARTMENTS: dict[str, tuple[Shelf, ...]] = {
    "Kitchen": (
        Shelf(
            "Pots and Pans", "Kitchenware", METALS, _nouns("Skillet 18 60, Saucepan 15 55, Wok 20 65, Stockpot 25 90")
        ),
        Shelf(
            "Knives and Boards", "Kitchenware", WOODS, _nouns("Bread Knife 12 40, Chopping Board 9 45, Cleaver 22 70")
        ),
        Shelf("Cups and Plates", "Kitchenware", CLAYS, _nouns("Mug 5 18, Soup Bowl 6 20, Dinner Plate 7 25, Jug 9 32")),
        Shelf(
            "Tea and Coffee",
            "Kitchenware",
            (*METALS[1:], "Glass"),
            _nouns("Teapot 14 48, Kettle 24 85, Cafetiere 16 52"),
        ),
    ),
    "Garden": (
        Shelf(
            "Hand Tools",
            "Garden ware",
            ("Ash", "Steel", "Copper"),
            _nouns("Trowel 6 24, Dibber 5 16, Pruning Saw 14 42"),
        ),
        Shelf("Planters", "Garden ware", ("Zinc", "Terracotta", "Willow"), _nouns("Planter 11 60, Window Box 13 48")),
        Shelf(
            "Watering",
            "Garden ware",
            ("Zinc", "Copper", "Steel"),
            _nouns("Watering Can 12 55, Rain Gauge 7 26, Sprinkler 9 38"),
        ),
        Shelf("Bird Care", "Garden ware", WOODS, _nouns("Nest Box 10 34, Seed Feeder 6 28, Bird Table 26 95")),
    ),
    "Books": (
        Shelf(
            "Novels",
            "Book",
            ("Lighthouse", "Orchard", "Harbour", "Winter"),
            _nouns("Keeper 7 15, Letters 8 16, Secret 6 14"),
        ),
        Shelf(
            "Cookery Books",
            "Book",
            ("Seaside", "Weekday", "Forager's", "Baker's"),
            _nouns("Kitchen 14 32, Table 12 30"),
        ),
        Shelf(
            "Walking Guides", "Book", ("Coastal", "Moorland", "Island", "Riverside"), _nouns("Walks 8 18, Paths 9 19")
        ),
        Shelf(
            "Picture Books",
            "Book",
            ("Grumpy", "Sleepy", "Brave", "Tiny"),
            _nouns("Badger 5 12, Otter 5 12, Heron 6 13"),
        ),
    ),
    "Games": (
        Shelf(
            "Board Games",
            "Game",
            ("Smuggler's", "Railway", "Castle", "Spice"),
            _nouns("Bay 15 45, Company 20 60, Council 18 55"),
        ),
        Shelf(
            "Jigsaw Puzzles",
            "Game",
            ("Lighthouse", "Meadow", "Night-Sky", "Market"),
            _nouns("Jigsaw 8 28, Floor Puzzle 10 30"),
        ),
        Shelf("Wooden Toys", "Game", WOODS, _nouns("Train 12 48, Stacker 8 26, Spinning Top 4 14")),
        Shelf("Craft Kits", "Game", ("Pottery", "Weaving", "Candle", "Kite"), _nouns("Kit 10 36, Workshop 18 58")),
    ),
    "Outdoors": (
        Shelf("Bags", "Outdoor gear", CLOTHS[:3], _nouns("Rucksack 35 130, Daypack 22 75, Duffel 30 110")),
        Shelf(
            "Camping",
            "Outdoor gear",
            ("Ridge", "Fjord", "Dune"),
            _nouns("Tent 80 320, Lantern 12 48, Camp Stove 25 95"),
        ),
        Shelf(
            "Clothing", "Outdoor gear", ("Wool", "Fleece", "Waxed"), _nouns("Beanie 9 28, Jacket 45 190, Gloves 11 38")
        ),
    ),
    "Desk": (
        Shelf("Notebooks", "Stationery", CLOTHS, _nouns("Notebook 5 22, Diary 8 28, Sketchbook 7 30")),
        Shelf(
            "Pens and Ink",
            "Stationery",
            ("Brass", "Ebony", "Silver"),
            _nouns("Fountain Pen 18 120, Rollerball 9 45, Inkwell 8 30"),
        ),
        Shelf("Lamps", "Stationery", ("Brass", "Copper", "Marble"), _nouns("Desk Lamp 24 110, Reading Light 14 48")),
    ),
}
"""Departments with their shelves, in the order of the menu."""
