"""Words and pictures of generated pages: what controls do, their labels in several languages, icons, names, data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

Language = Literal["en", "de", "fr", "es", "it", "nl", "pl", "ru"]
LANGUAGES: Final[tuple[Language, ...]] = ("en", "de", "fr", "es", "it", "nl", "pl", "ru")
"""Languages of labels. All are in scripts that common fonts have."""


class Concept(NamedTuple):
    """Something that a control does."""

    name: str
    function: str
    """In words, after "to"."""
    labels: Mapping[Language, str]
    icon: str
    """An SVG path on a grid of 24 x 24, drawn as a line."""


_FILE: Final[dict[str, list[Any]]] = json.loads(Path(__file__).with_name("vocabulary.json").read_text("utf-8"))
CONCEPTS: Final = {row["name"]: Concept(**row) for row in _FILE["concepts"]}
"""By name. No two do the same, so that a function names one of them."""
FIELDS: Final[Sequence[Mapping[Language, str]]] = _FILE["fields"]
"""Labels of form fields."""
TITLES: Final[Sequence[Mapping[Language, str]]] = _FILE["titles"]
"""Titles of sections."""

PEOPLE: Final = (
    *("Ann Berg", "Ben Okafor", "Carla Diaz", "Dmitri Volkov", "Elif Kaya", "Farid Haddad", "Grete Holm", "Hugo Silva"),
    *("Ines Moreau", "Jonas Weber", "Kaja Nowak", "Luca Ricci", "Maya Patel", "Noor de Vries", "Olga Ivanova"),
    *("Pavel Novak", "Quinn Reilly", "Rosa Lindqvist", "Samuel Osei", "Tove Nilsen", "Uma Rao", "Viktor Szabo"),
)
ITEMS: Final = (
    *("Oak table", "Desk lamp", "Wool blanket", "Garden chair", "Tea kettle", "Paper tray", "Travel mug", "Wall clock"),
    *(
        "Bike helmet",
        "Rain jacket",
        "Camping stove",
        "Chess set",
        "Bread knife",
        "Photo frame",
        "Yoga mat",
        "Door bell",
    ),
    *("Steel ladder", "Phone stand", "Linen shirt", "Water filter", "Sun hat", "Snow shovel"),
)
FILES: Final = (
    *("report-2024.pdf", "budget.xlsx", "minutes.docx", "logo.svg", "photo_017.jpg", "backup.tar", "plan-b.odt"),
    *("invoice_883.pdf", "notes.txt", "slides.pptx", "contract.pdf", "map.png", "index.html", "readme.md", "data.csv"),
)
STATES: Final = ("open", "paid", "draft", "shipped", "overdue", "archived", "in review")
CITIES: Final = ("Oslo", "Porto", "Graz", "Lyon", "Turku", "Bergen", "Lublin", "Ghent", "Malmö", "Zadar")
