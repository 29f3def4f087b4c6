"""Map tasks about one place: its facts, its position, and facts that the map does not have."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from envs.suites.sites.answers import Number, Refusal, Text
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver, Unsolvable
from envs.suites.sites.tasks.map.shared import (
    LISTS,
    Coordinates,
    OnePlace,
    Phone,
    place_milestones,
    places,
    sample_instances,
    search_and_open,
    truth,
)
from envs.suites.sites.templates import Goal, GoldenStates, Milestones, Outcome, Params, Template, shows, visited


class AboutPlace(Template[OnePlace]):
    """Asks for a fact on a place's page."""

    sites = ("map",)
    category = "map"
    kind = "information"
    difficulty = "easy"
    column: ClassVar[str]
    row: ClassVar[str]
    """Label of the line with the fact."""

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[OnePlace]:
        return places(golden, self.column, rng)

    def milestones(self, p: OnePlace) -> Milestones:
        return place_milestones(p.place, p.name)

    async def solve(self, driver: PageDriver, p: OnePlace) -> str | None:
        await search_and_open(driver, p.name)
        return await driver.read(rf"^{self.row} \| (?:\[\d+\] link \")?(.+?)\"?$")


class PlaceCoordinates(AboutPlace):
    name = "map-coordinates"
    wordings = (
        'What are the coordinates of the {kind} "{name}"? Answer with latitude and longitude in degrees.',
        "Tell me the latitude and the longitude of {name} ({kind}) as the map gives them, in this order.",
    )
    column = "printf('%.5f, %.5f', lat, lon)"
    row = "Coordinates"

    def outcome(self, p: OnePlace) -> Outcome:
        lat, lon = (float(number) for number in p.truth.split(", "))
        return Outcome(answer=Coordinates(lat, lon))


class PlaceAddress(AboutPlace):
    name = "map-address"
    wordings = (
        'Where is the {kind} "{name}"? Answer with street and house number.',
        "I am looking for {name}, a {kind}. At which street address is it?",
        'Look up the address of "{name}" ({kind}) on the map and answer with the street and the number.',
    )
    column = "address"
    row = "Address"

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[OnePlace]:
        return [p for p in super().candidates(golden, rng) if any(c.isdigit() for c in p.truth.partition(",")[0])]

    def outcome(self, p: OnePlace) -> Outcome:
        return Outcome(answer=Text(p.truth.partition(",")[0], (p.truth, p.truth.removesuffix(" Helsinki"))))


class PlaceHours(AboutPlace):
    name = "map-opening-hours"
    wordings = (
        'What are the opening hours of "{name}" ({kind})? Answer exactly as the map writes them.',
        "Copy the opening hours of the {kind} {name} from its page on the map.",
    )
    column = "opening_hours"
    row = "Opening hours"

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[OnePlace]:
        return [p for p in super().candidates(golden, rng) if len(p.truth) <= 60 and '"' not in p.truth]

    def outcome(self, p: OnePlace) -> Outcome:
        return Outcome(answer=Text(p.truth, (f"Opening hours: {p.truth}",)))


class PlacePhone(AboutPlace):
    name = "map-phone"
    wordings = (
        'Under which phone number can I reach "{name}" ({kind})? Answer with the number only.',
        "Find the telephone number of the {kind} {name}. Answer with the number and nothing else.",
    )
    column = "phone"
    row = "Phone"

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[OnePlace]:
        return [p for p in super().candidates(golden, rng) if not set(p.truth) & set(";,/")]

    def outcome(self, p: OnePlace) -> Outcome:
        return Outcome(answer=Phone(p.truth))


class PlaceWebsite(AboutPlace):
    name = "map-website"
    wordings = (
        'Which website does the map give for "{name}" ({kind})? Answer with the address only.',
        "I need the web address of the {kind} {name}, as the map has it.",
    )
    column = "website"
    row = "Website"

    def outcome(self, p: OnePlace) -> Outcome:
        return Outcome(answer=Text(p.truth, (p.truth.rstrip("/"), p.truth.rstrip("/") + "/")))


@dataclass(frozen=True)
class At(OnePlace):
    coordinates: str


class PlaceAt(Template[At]):
    """Gives a place by its coordinates only."""

    name = "map-place-at"
    sites = ("map",)
    category = "map"
    kind = "information"
    difficulty = "easy"
    wordings = (
        "At the coordinates {coordinates} there is a {kind}. What are its opening hours, exactly as the map "
        "writes them?",
        "Which opening hours does the map give for the {kind} at {coordinates} (latitude, longitude)? Copy them.",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[At]:
        where = {p.place: p.truth for p in places(golden, PlaceCoordinates.column, random.Random(0), most=10_000)}
        hours = [p for p in places(golden, "opening_hours", rng) if len(p.truth) <= 60 and '"' not in p.truth]
        alone = Counter(where.values())
        return [
            At(p.place, p.name, p.kind, p.truth, where[p.place])
            for p in hours
            if p.place in where and alone[where[p.place]] == 1
        ]

    def milestones(self, p: At) -> Milestones:
        return place_milestones(p.place, p.name)

    def outcome(self, p: At) -> Outcome:
        return Outcome(answer=Text(p.truth, (f"Opening hours: {p.truth}",)))

    async def solve(self, driver: PageDriver, p: At) -> str | None:
        await driver.type("searchbox", "Search places", p.coordinates, enter=True)
        await driver.click("link", p.name)
        return await driver.read(r"^Opening hours \| (.+)$")


@dataclass(frozen=True)
class Branch(Params):
    place: str
    name: str
    kind: str
    address: str
    street: str
    """Street and number."""


class OpenBranch(Template[Branch]):
    """Asks to open one of several places with the same name."""

    name = "map-open-branch"
    sites = ("map",)
    category = "map"
    kind = "navigation"
    difficulty = "easy"
    wordings = (
        'There are several places called "{name}". Open the page of the one at {street}.',
        "Show me the page of {name}, the {kind} at {street}.",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Branch]:
        rows = truth(golden).rows(
            "SELECT id, name, kind, address FROM place AS one WHERE address GLOB '*[0-9]*,*' AND found <= 9"
            " AND category NOT IN ('address', 'street') AND (SELECT count(*) FROM place WHERE name = one.name) > 1"
            " AND (SELECT count(*) FROM place WHERE name = one.name AND address = one.address) = 1 ORDER BY id"
        )
        return [Branch(i, name, kind.lower(), address, address.partition(",")[0]) for i, name, kind, address in rows]

    def milestones(self, p: Branch) -> Milestones:
        return place_milestones(p.place, f"{p.name}, {p.street}")

    def outcome(self, p: Branch) -> Outcome:
        return Outcome(page=PagePattern("map", f"/place/{p.place}"))

    async def solve(self, driver: PageDriver, p: Branch) -> str | None:
        await driver.type("searchbox", "Search places", p.name, enter=True)
        lines = (await driver.text()).splitlines()
        same = [index for index, line in enumerate(lines) if f'link "{p.name}"' in line]
        place = next((i for i, at in enumerate(same) if lines[at + 1 : at + 2] == [p.address]), None)
        if place is None:
            raise Unsolvable(f"no {p.name} at {p.address}")
        await driver.click("link", p.name, nth=place)
        return None


@dataclass(frozen=True)
class Category(Params):
    category: str
    title: str
    shown: str
    number: int


class CountCategory(Template[Category]):
    name = "map-count-category"
    sites = ("map",)
    category = "map"
    kind = "information"
    difficulty = "easy"
    wordings = (
        'How many places does the map list in the category "{title}"? Answer with a number.',
        'Count the entries of the map\'s category "{title}". Answer with the number only.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Category]:
        rows = truth(golden).rows(
            "SELECT category, min(kind), count(*) FROM place WHERE category NOT IN ('address', 'street')"
            " GROUP BY category HAVING count(*) > 3 AND count(DISTINCT kind) = 1 ORDER BY category"
        )
        return [Category(category, kind, kind, number) for category, kind, number in rows]

    def milestones(self, p: Category) -> Milestones:
        page = PagePattern("map", f"/category/{p.category}")
        return (
            Goal("All categories are listed", visited(PagePattern("map", "/categories"))),
            Goal("A category is opened", visited(PagePattern("map", "/category/.*"))),
            Goal(f'The category "{p.title}" is opened', visited(page)),
            Goal(f'The category "{p.title}" is shown', shows(page)),
        )

    def outcome(self, p: Category) -> Outcome:
        return Outcome(answer=Number(p.number))

    async def solve(self, driver: PageDriver, p: Category) -> str | None:
        await driver.click("link", "All categories")
        await driver.click("link", p.shown)
        return await driver.read(r"^\d+ to \d+ of (\d+)")


class NoSuchFact(Template[OnePlace]):
    """Impossible: asks for a phone number that the map does not have."""

    name = "map-phone-unknown"
    sites = ("map",)
    category = "map"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'Under which phone number can I reach "{name}" ({kind})? If this cannot be found on the map, answer '
        '"N/A: " and why.',
        "Tell me the phone number of the {kind} {name} as the map gives it. If that is not possible, say "
        '"N/A: " and the reason.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[OnePlace]:
        known = {p.place for p in places(golden, "phone", random.Random(0))}
        phones = dict(truth(golden).rows("SELECT id, phone FROM place"))
        hours = places(golden, "opening_hours", rng)
        return [p for p in hours if p.place not in known and not phones[p.place]]

    def milestones(self, p: OnePlace) -> Milestones:
        return place_milestones(p.place, p.name)

    def outcome(self, p: OnePlace) -> Outcome:
        reason = f"the map has no phone number of {p.name}"
        return Outcome(
            answer=Refusal(reason, (r"\bno (phone|telephone|number)", r"\bnot? .*(phone|number|list|given|known|show)"))
        )

    async def solve(self, driver: PageDriver, p: OnePlace) -> str | None:
        await search_and_open(driver, p.name)
        if "\nPhone |" in await driver.text():
            raise Unsolvable("the map has a phone number")
        return f"N/A: the map has no phone number of {p.name}"


@dataclass(frozen=True)
class Invented(Params):
    name: str
    kind: str
    category: str


FIRST = ("Blue Herring", "Old Lantern", "Kallio Star", "Copper Anchor", "Seven Birches", "Paper Moon", "Quiet Owl")
SECOND = {"cafe": ("Coffee House", "Cafe"), "hotel": ("Grand Hotel", "Hotel"), "museum": ("Museum", "Museum")}


ABSENT = (
    r"\bno (such )?(place|cafe|coffee house|hotel|museum|result|match)",
    r"not (found|exist|on the map|list|be found)",
    r"nothing",
    r"doesn't (exist|appear)",
    r"(can|could)(not|n't) find",
)


class NoSuchPlace(Template[Invented]):
    """Impossible: asks for a place that does not exist."""

    name = "map-no-such-place"
    sites = ("map",)
    category = "map"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'What is the address of "{name}"? If there is no such place on the map, answer "N/A: " and the reason.',
        'Find {name} on the map and answer with its street address. If that cannot be done, say "N/A: " and why.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Invented]:
        invented = [
            Invented(f"{first} {word}", kind, category) for first in FIRST for category, (word, kind) in SECOND.items()
        ]
        known = {row[0] for row in truth(golden).rows("SELECT lower(name) FROM place")}
        return sample_instances([place for place in invented if place.name.lower() not in known], rng)

    def milestones(self, p: Invented) -> Milestones:
        page = PagePattern("map", f"/category/{p.category}")
        return (
            Goal("A search or a list of places is made", visited(LISTS)),
            Goal(f'"{p.name}" is searched for', visited(PagePattern("map", "/search", {"q": p.name}))),
            Goal(f'The category "{p.kind}" is looked through', visited(page)),
            Goal(f'The category "{p.kind}" is shown', shows(page)),
        )

    def outcome(self, p: Invented) -> Outcome:
        reason = f"there is no place called {p.name} on the map"
        return Outcome(answer=Refusal(reason, ABSENT))

    async def solve(self, driver: PageDriver, p: Invented) -> str | None:
        await driver.type("searchbox", "Search places", p.name, enter=True)
        if "Nothing found" not in await driver.text():
            raise Unsolvable("the search has results")
        await driver.click("link", "Helsinki map")
        await driver.click("link", p.kind)
        return f"N/A: there is no place called {p.name} on the map"


TEMPLATES = (
    PlaceCoordinates(),
    PlaceAddress(),
    PlaceHours(),
    PlacePhone(),
    PlaceWebsite(),
    PlaceAt(),
    OpenBranch(),
    CountCategory(),
    NoSuchFact(),
    NoSuchPlace(),
)
