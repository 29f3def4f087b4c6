"""The places of the map and the search for them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

FILE = "places.json"
ADDRESS = "address"
STREET = "street"
_LABEL_ID = re.compile(r"\(([nwrsa]\d+)\)\s*$")


@dataclass(frozen=True, slots=True)
class Place:
    """A named place, an address or a street."""

    id: str
    """`n`, `w` or `r` and the number of the OpenStreetMap node, way or relation; `s` or `a` and a running number for
    a street or an address."""
    name: str
    category: str
    """The value of its main OpenStreetMap tag, such as `cafe`; or `address`, `street`."""
    kind: str
    """The category in words."""
    lat: float
    lon: float
    other_names: tuple[str, ...] = ()
    street: str = ""
    number: str = ""
    postcode: str = ""
    city: str = ""
    opening_hours: str = ""
    phone: str = ""
    website: str = ""
    cuisine: str = ""
    wheelchair: str = ""
    on_foot: int = -1
    """Nearest node of the walking network; -1 if none is near."""
    by_car: int = -1
    """Nearest node of the driving network; -1 if none is near."""

    @property
    def address(self) -> str:
        """Street and number, postcode and city, as far as known; empty without a street and number."""
        first = f"{self.street} {self.number}".strip()
        second = f"{self.postcode} {self.city}".strip()
        return ", ".join(part for part in (first, second) if part) if first else ""

    @property
    def label(self) -> str:
        """An unambiguous name for form fields."""
        return f"{self.name} ({self.id})"

    @property
    def coordinates(self) -> str:
        return f"{self.lat:.5f}, {self.lon:.5f}"


def folded(text: str) -> str:
    """*text* in lower case without accents, with words separated by one space."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(re.findall(r"\w+", bare.casefold()))


class Gazetteer:
    """An index of all places by id and by text."""

    def __init__(self, places: Iterable[Place]) -> None:
        self.places = tuple(places)
        self._by_id = {place.id: place for place in self.places}
        self._texts = [(folded(place.name), _words(place), place) for place in self.places]

    @classmethod
    def read(cls, folder: Path) -> Gazetteer:
        rows: list[dict[str, Any]] = json.loads((folder / FILE).read_text(encoding="utf-8"))
        for row in rows:
            row["other_names"] = tuple(row["other_names"])
        return cls(Place(**row) for row in rows)

    def write(self, folder: Path) -> None:
        rows = [asdict(place) for place in self.places]
        (folder / FILE).write_text(json.dumps(rows, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")

    def get(self, identity: str) -> Place | None:
        return self._by_id.get(identity)

    def search(self, text: str) -> list[Place]:
        """Places that contain all words of *text*, best name matches first; none for an empty text."""
        query = folded(text)
        if not query:
            return []
        rows = self._texts
        for word in query.split():
            rows = [row for row in rows if word in row[1]]
        ranked = [(_rank(query, name, place), name, place.id, place) for name, _, place in rows]
        return [place for *_, place in sorted(ranked, key=lambda row: row[:3])]

    def named(self, text: str) -> list[Place]:
        """The place that a form field names, or all candidates if it is ambiguous."""
        label = _LABEL_ID.search(text)
        known = self.get(label.group(1) if label else text.strip())
        if known is not None:
            return [known]
        matches = self.search(text)
        exact = [place for place in matches if folded(place.name) == folded(text)]
        return exact if len(exact) == 1 else matches

    @cached_property
    def categories(self) -> dict[str, list[Place]]:
        """The places of each category ordered by name, without addresses and streets."""
        groups: dict[str, list[Place]] = {}
        for place in sorted(self.places, key=lambda place: (folded(place.name), place.id)):
            if place.category not in (ADDRESS, STREET):
                groups.setdefault(place.category, []).append(place)
        return groups


def _words(place: Place) -> str:
    return folded(" ".join((place.name, *place.other_names, place.address, place.kind)))


def _rank(query: str, name: str, place: Place) -> int:
    if name == query:
        return 0
    if name.startswith(query):
        return 1
    if query in name:
        return 2
    return 4 if place.category == ADDRESS else 3
