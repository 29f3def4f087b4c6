"""Shared parts of the map's tasks: answer types, places and routes, milestones and driver steps."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from envs.suites.sites.answers import numbers_in
from envs.suites.sites.evidence import Database, PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.templates import Goal, GoldenStates, Milestones, Params, any_of, shows, visited

P = TypeVar("P", bound=Params)
MOST = 240
"""Largest number of instances of a template."""
PLAIN = re.compile(r"[\wÅÄÖåäöé][\w .&'ÅÄÖåäöé-]{2,38}")
"""Names that are unambiguous in a wording."""
LISTS = PagePattern("map", r"/search|/category/.*|/nearest|/reverse")
ANY_PLACE = PagePattern("map", r"/place/.*")
KINDS: Mapping[str, str] = {
    "cafe": "Cafe",
    "hotel": "Hotel",
    "library": "Library",
    "museum": "Museum",
    "park": "Park",
    "pharmacy": "Pharmacy",
    "pub": "Pub",
    "restaurant": "Restaurant",
    "supermarket": "Supermarket",
    "theatre": "Theatre",
    "tram_stop": "Tram stop",
    "bicycle_rental": "Bicycle rental",
    "bank": "Bank",
    "bar": "Bar",
    "bus_stop": "Bus stop",
    "fast_food": "Fast food",
}
"""Categories of the tasks about nearest places, with their names in lists."""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Latitude and longitude in this order, without other numbers, accurate to about ten metres."""

    lat: float
    lon: float

    _WITHIN = Decimal("0.0001")

    def accepts(self, text: str) -> bool:
        stated = numbers_in(text)
        return len(stated) == 2 and all(
            abs(number - Decimal(str(expected))) <= self._WITHIN
            for number, expected in zip(stated, (self.lat, self.lon), strict=True)
        )

    def mutants(self) -> tuple[str, ...]:
        swapped, off = f"{self.lon:.5f}, {self.lat:.5f}", f"{self.lat + 0.001:.5f}, {self.lon:.5f}"
        return (swapped, off, f"{self.lat:.5f}", f"{self.truth()}, {self.truth()}", "", "unknown")

    def truth(self) -> str:
        return f"{self.lat:.5f}, {self.lon:.5f}"


@dataclass(frozen=True, slots=True)
class Phone:
    """A phone number, compared by its digits, with the country code or a leading 0."""

    number: str

    def accepts(self, text: str) -> bool:
        return bool(_local(self.number)) and _local(text) == _local(self.number)

    def mutants(self) -> tuple[str, ...]:
        return (self.number[:-1], self.number + "1", f"{self.number}, {self.number}", "", "unknown")

    def truth(self) -> str:
        return self.number


def _local(number: str) -> str:
    digits = re.sub(r"\D", "", number.replace("(0)", ""))
    return re.sub(r"^(?:00)?358|^0", "", digits).lstrip("0")


@dataclass(frozen=True)
class OnePlace(Params):
    """A task about one place."""

    place: str
    """The place's id."""
    name: str
    kind: str
    """Its category in words, lower case."""
    truth: str
    """The expected answer."""


@dataclass(frozen=True)
class TwoPlaces(Params):
    start: str
    start_name: str
    end: str
    end_name: str
    metres: int
    minutes: int


def truth(golden: GoldenStates) -> Database:
    """The map's data as a database (see `envs.suites.sites.apps.map.truth`)."""
    return Database(golden.folder("map") / "fixed" / "truth.sqlite3", frozen=True)


def places(golden: GoldenStates, column: str, rng: random.Random, *, most: int = MOST) -> list[OnePlace]:
    """Places with a unique name and a value in *column*, with that value."""
    rows = truth(golden).rows(
        f"SELECT id, name, kind, {column} FROM place WHERE found <= 8 AND {column} <> '' AND lower(name) IN"
        " (SELECT lower(name) FROM place GROUP BY 1 HAVING count(*) = 1)"
        " AND category NOT IN ('address', 'street') ORDER BY id"
    )
    plain = [OnePlace(i, name, kind.lower(), value) for i, name, kind, value in rows if PLAIN.fullmatch(name)]
    return sample_instances(plain, rng, most=most)


def landmarks(golden: GoldenStates) -> dict[str, str]:
    """Maps the ids of landmarks to names, ordered by id."""
    rows = truth(golden).rows("SELECT id, name FROM place WHERE landmark ORDER BY id")
    return {identity: name for identity, name in rows if PLAIN.fullmatch(name)}


def pairs(golden: GoldenStates, by: str, rng: random.Random) -> list[TwoPlaces]:
    """Pairs of landmarks some distance apart, with the route between them."""
    names = landmarks(golden)
    rows = truth(golden).rows(
        "SELECT start, end, metres, minutes FROM route WHERE by = ? AND metres > 300 ORDER BY start, end", by
    )
    known = [TwoPlaces(a, names[a], b, names[b], m, t) for a, b, m, t in rows if a in names and b in names]
    return sample_instances(known, rng)


def sample_instances(candidates: Sequence[P], rng: random.Random, *, most: int = MOST) -> list[P]:
    """At most *most* of *candidates*, in random order."""
    return rng.sample(candidates, min(most, len(candidates)))


def place_milestones(place: str, name: str) -> Milestones:
    """The milestones of opening a place's page."""
    page = PagePattern("map", f"/place/{place}")
    return (
        Goal("A search or a list of places is made", visited(LISTS)),
        Goal("One of the results is opened", visited(ANY_PLACE)),
        Goal(f'The page of "{name}" is opened', visited(page)),
        Goal(f'The page of "{name}" is shown', shows(page)),
    )


def directions(start: str, end: str, by: str) -> PagePattern:
    return PagePattern("map", "/directions", {"from": start, "to": end, "by": by})


def route_milestones(p: TwoPlaces, by: str) -> Milestones:
    """The milestones of opening a route's page."""
    travel = "walking" if by == "foot" else "driving"
    page = directions(p.start, p.end, by)
    either_end = any_of(
        visited(PagePattern("map", "/directions", {"from": p.start})),
        visited(PagePattern("map", "/directions", {"to": p.end})),
    )
    both = visited(PagePattern("map", "/directions", {"from": p.start, "to": p.end}))
    return (
        Goal("The directions form is open", visited(PagePattern("map", "/directions"))),
        Goal(f'The form knows "{p.start_name}" or "{p.end_name}"', either_end),
        Goal(f'There is a route from "{p.start_name}" to "{p.end_name}"', both),
        Goal(f"The {travel} directions are shown", shows(page)),
    )


async def search_and_open(driver: PageDriver, name: str) -> None:
    """Searches for a place and opens its page."""
    await driver.type("searchbox", "Search places", name, enter=True)
    await driver.click("link", name)


async def route(driver: PageDriver, start: str, end: str, *, car: bool = False, fresh: bool = True) -> None:
    """Fills in and sends the directions form. *fresh*: opens it first."""
    if fresh:
        await driver.click("link", "Directions")
    await driver.type("textbox", "From", start)
    await driver.type("textbox", "To", end)
    if car:
        await driver.select("combobox", "By", "By car")
    await driver.click("button", "Get directions")


async def nearest(driver: PageDriver, kind: str, near: str) -> None:
    """Lists the places of a kind nearest to a place."""
    await driver.click("link", "Nearest")
    await driver.select("combobox", "Find", kind)
    await driver.type("textbox", "near", near)
    await driver.click("button", "Find")


async def distance(driver: PageDriver) -> int:
    """Length in metres of the route on the page."""
    return int(await driver.read(r"^Distance: (\d+) m"))


def results(text: str, kind: str) -> list[tuple[str, int]]:
    """Names and metres from a page that lists places by distance."""
    return [(name, int(metres)) for name, metres in re.findall(rf'link "(.+?)"  {kind} · (\d+) m', text)]
