"""Tasks about ways and distances."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from envs.sites.answers import Names, Number, Text
from envs.sites.evidence import Where
from envs.sites.hand import Hand
from envs.sites.tasks.map_parts import (
    KINDS,
    PLAIN,
    Phone,
    TwoPlaces,
    directions,
    distance,
    drawn_from,
    found_route,
    landmarks,
    nearest,
    pairs,
    results,
    route,
    truth,
)
from envs.sites.templates import Goal, Milestones, Outcome, Params, Template, World, either, every, shows, visited


class OneRoute(Template[TwoPlaces]):
    """A route between two landmarks."""

    sites = ("map",)
    category = "map"
    by: ClassVar[str]

    def candidates(self, world: World, rng: random.Random) -> Sequence[TwoPlaces]:
        return pairs(world, self.by, rng)

    def milestones(self, p: TwoPlaces) -> Milestones:
        return found_route(p, self.by)


class WalkMetres(OneRoute):
    name = "map-walk-distance"
    kind = "information"
    difficulty = "easy"
    wordings = (
        "How far is it on foot from {start_name} to {end_name}? Answer in metres.",
        'I walk from "{start_name}" to "{end_name}". How many metres is that by the map\'s directions?',
        "Give the walking distance in metres between {start_name} (start) and {end_name} (end).",
    )
    by = "foot"

    def outcome(self, p: TwoPlaces) -> Outcome:
        return Outcome(answer=Number(p.metres))

    async def solve(self, hand: Hand, p: TwoPlaces) -> str | None:
        await route(hand, p.start_name, p.end_name)
        return str(await distance(hand))


class DriveMinutes(OneRoute):
    name = "map-drive-time"
    kind = "information"
    difficulty = "medium"
    wordings = (
        "How long does it take to drive from {start_name} to {end_name}? Answer in minutes.",
        'By car from "{start_name}" to "{end_name}": how many minutes does the map reckon?',
    )
    by = "car"

    def outcome(self, p: TwoPlaces) -> Outcome:
        return Outcome(answer=Number(p.minutes))

    async def solve(self, hand: Hand, p: TwoPlaces) -> str | None:
        await route(hand, p.start_name, p.end_name, car=True)
        return await hand.read(r"^Time: (\d+) min")


class OpenWalk(OneRoute):
    name = "map-open-walk"
    kind = "navigation"
    difficulty = "medium"
    wordings = (
        "Show the walking directions from {start_name} to {end_name}.",
        'Open the route on foot that leads from "{start_name}" to "{end_name}".',
    )
    by = "foot"

    def outcome(self, p: TwoPlaces) -> Outcome:
        return Outcome(page=directions(p.start, p.end, "foot"))

    async def solve(self, hand: Hand, p: TwoPlaces) -> str | None:
        await hand.type("searchbox", "Search places", p.end_name, enter=True)
        await hand.click("link", p.end_name)
        await hand.click("link", "Directions to this place")
        await hand.type("textbox", "From", p.start_name)
        await hand.click("button", "Get directions")
        return None


class OpenDrive(OneRoute):
    name = "map-open-drive"
    kind = "navigation"
    difficulty = "medium"
    wordings = (
        "Show the driving directions from {start_name} to {end_name}.",
        'Open the way by car from "{start_name}" to "{end_name}".',
    )
    by = "car"

    def outcome(self, p: TwoPlaces) -> Outcome:
        return Outcome(page=directions(p.start, p.end, "car"))

    async def solve(self, hand: Hand, p: TwoPlaces) -> str | None:
        await route(hand, p.start_name, p.end_name, car=True)
        return None


@dataclass(frozen=True)
class Both(TwoPlaces):
    driven: int
    """Metres."""


class WalkOrDrive(Template[Both]):
    name = "map-walk-or-drive"
    sites = ("map",)
    category = "map"
    kind = "information"
    difficulty = "medium"
    wordings = (
        "From {start_name} to {end_name}: by how many metres do the walk and the drive differ? Answer with a number.",
        'What is the difference in metres between walking and driving from "{start_name}" to "{end_name}"?',
    )

    def candidates(self, world: World, rng: random.Random) -> Sequence[Both]:
        driven = {(a, b): m for a, b, m in truth(world).rows("SELECT start, end, metres FROM route WHERE by = 'car'")}
        return [
            Both(p.start, p.start_name, p.end, p.end_name, p.metres, p.minutes, driven[p.start, p.end])
            for p in pairs(world, "foot", rng)
            if abs(driven.get((p.start, p.end), p.metres) - p.metres) > 20
        ]

    def milestones(self, p: Both) -> Milestones:
        foot, car = directions(p.start, p.end, "foot"), directions(p.start, p.end, "car")
        return (
            Goal("The directions form is open", visited(Where("map", "/directions"))),
            Goal("One of the two ways is found", either(visited(foot), visited(car))),
            Goal("Both ways are found", every(visited(foot), visited(car))),
            Goal(
                "Both ways were found and one is in front",
                either(every(visited(foot), shows(car)), every(visited(car), shows(foot))),
            ),
        )

    def outcome(self, p: Both) -> Outcome:
        return Outcome(answer=Number(abs(p.driven - p.metres)))

    async def solve(self, hand: Hand, p: Both) -> str | None:
        await route(hand, p.start_name, p.end_name)
        walked = await distance(hand)
        await hand.select("combobox", "By", "By car")
        await hand.click("button", "Get directions")
        return str(abs(await distance(hand) - walked))


MANY_TOURS = 150
"""Walks that are drawn; not all of them are long enough."""


@dataclass(frozen=True)
class Tour(Params):
    first: str
    second: str
    third: str
    fourth: str
    ids: tuple[str, str, str, str]
    metres: int


class WalkingTour(Template[Tour]):
    name = "map-walking-tour"
    sites = ("map",)
    category = "map"
    kind = "information"
    difficulty = "hard"
    wordings = (
        "I walk from {first} to {second}, from there to {third}, and then to {fourth}. How many metres is that in all?",
        "How long, in metres, is a walk that starts at {first}, passes {second} and {third} in this order and ends at "
        "{fourth}? Add up the map's walking directions.",
    )

    def candidates(self, world: World, rng: random.Random) -> Sequence[Tour]:
        names = landmarks(world)
        rows = truth(world).rows("SELECT start, end, metres FROM route WHERE by = 'foot' AND metres > 150")
        lengths = {(a, b): m for a, b, m in rows}
        found: dict[tuple[str, str, str, str], Tour] = {}
        for _ in range(MANY_TOURS):
            a, b, c, d = rng.sample(list(names), 4)
            legs = ((a, b), (b, c), (c, d))
            if all(leg in lengths for leg in legs):
                metres = sum(lengths[leg] for leg in legs)
                found[a, b, c, d] = Tour(names[a], names[b], names[c], names[d], (a, b, c, d), metres)
        return list(found.values())

    def milestones(self, p: Tour) -> Milestones:
        a, b, c, d = p.ids
        legs = [visited(directions(*leg, "foot")) for leg in ((a, b), (b, c), (c, d))]
        return (
            Goal("The directions form is open", visited(Where("map", "/directions"))),
            Goal(f"The walk from {p.first} to {p.second} is found", legs[0]),
            Goal(f"The walk from {p.second} to {p.third} is found too", every(*legs[:2])),
            Goal("All three walks are found", every(*legs)),
        )

    def outcome(self, p: Tour) -> Outcome:
        return Outcome(answer=Number(p.metres))

    async def solve(self, hand: Hand, p: Tour) -> str | None:
        metres = 0
        stops = (p.first, p.second, p.third, p.fourth)
        for number, (start, end) in enumerate(pairwise(stops)):
            await route(hand, start, end, fresh=number == 0)
            metres += await distance(hand)
        return str(metres)


@dataclass(frozen=True)
class Near(Params):
    category: str
    shown: str
    kind: str
    start: str
    start_name: str
    places: tuple[str, ...]
    """Ids, the nearest first."""
    names: tuple[str, ...]
    metres: int
    """To the first."""


def nearest_of(world: World, rng: random.Random, number: int) -> list[Near]:
    """Landmarks and categories of which the *number* nearest places are beyond doubt."""
    names = landmarks(world)
    rows = truth(world).rows(
        "SELECT walk.start, category, place.id, name, metres FROM walk JOIN place ON place.id = walk.place"
        " ORDER BY walk.start, category, metres, place.id"
    )
    lists: dict[tuple[str, str], list[tuple[str, str, int]]] = {}
    for start, category, place, name, metres in rows:
        if start in names and category in KINDS:
            lists.setdefault((start, category), []).append((place, name, metres))
    found = [
        Near(
            category=category,
            shown=KINDS[category],
            kind=KINDS[category].lower(),
            start=start,
            start_name=names[start],
            places=tuple(place for place, _, _ in known[:number]),
            names=tuple(name for _, name, _ in known[:number]),
            metres=known[0][2],
        )
        for (start, category), known in lists.items()
        if len(known) > number and _clear(known, number)
    ]
    return drawn_from(found, rng)


def _clear(known: Sequence[tuple[str, str, int]], number: int) -> bool:
    """No two are equally far, and all names are plain and different."""
    head = known[: number + 1]
    metres, names = [m for _, _, m in head], [name for _, name, _ in head[:number]]
    apart = all(after - before >= 5 for before, after in pairwise(metres))
    return apart and len({name.lower() for name in names}) == number and all(PLAIN.fullmatch(name) for name in names)


class ByDistance(Template[Near]):
    """Places of a kind, the nearest first."""

    sites = ("map",)
    category = "map"
    kind = "information"
    difficulty = "easy"
    number: ClassVar[int] = 1

    def candidates(self, world: World, rng: random.Random) -> Sequence[Near]:
        return nearest_of(world, rng, self.number)

    def milestones(self, p: Near) -> Milestones:
        page = Where("map", "/nearest", {"category": p.category, "near": p.start})
        return (
            Goal("The form for the nearest places is open", visited(Where("map", "/nearest"))),
            Goal(f"Places near {p.start_name} are listed", visited(Where("map", "/nearest", {"near": p.start}))),
            Goal(f"Places of the kind {p.shown} near {p.start_name} are listed", visited(page)),
            Goal("That list is in front", shows(page)),
        )

    async def solve(self, hand: Hand, p: Near) -> str | None:
        await nearest(hand, p.shown, p.start_name)
        found = results(await hand.text(), p.shown)
        return self.told(found[: self.number])

    def told(self, found: Sequence[tuple[str, int]]) -> str:
        return "; ".join(name for name, _ in found)


class NearestOne(ByDistance):
    name = "map-nearest"
    wordings = (
        "Which {kind} is the nearest to {start_name} on foot? Answer with its name.",
        'I am at "{start_name}". What is the name of the closest {kind}?',
    )

    def outcome(self, p: Near) -> Outcome:
        return Outcome(answer=Text(p.names[0]))


class NearestThree(ByDistance):
    name = "map-nearest-three"
    wordings = (
        'Name the three places of the category "{shown}" nearest to {start_name} on foot, separated by semicolons.',
        'I am at "{start_name}". What are the three closest entries of the kind "{shown}"? Separate '
        "their names by semicolons.",
    )
    number = 3

    def outcome(self, p: Near) -> Outcome:
        return Outcome(answer=Names(frozenset(p.names)))


class NearestMetres(ByDistance):
    name = "map-nearest-distance"
    wordings = (
        "How many metres is it on foot from {start_name} to the nearest {kind}?",
        'From "{start_name}", how far must I walk to reach the closest {kind}? Answer in metres.',
    )

    def outcome(self, p: Near) -> Outcome:
        return Outcome(answer=Number(p.metres))

    def told(self, found: Sequence[tuple[str, int]]) -> str:
        return str(found[0][1])


@dataclass(frozen=True)
class NearPhone(Near):
    phone: str


class NearestPhone(Template[NearPhone]):
    """The nearest place's number: a list, then a page."""

    name = "map-nearest-phone"
    sites = ("map",)
    category = "map"
    kind = "information"
    difficulty = "medium"
    wordings = (
        "Find the {kind} that is the nearest to {start_name} on foot and answer with its phone number.",
        'I am at "{start_name}" and want to call the closest {kind}. Which number do I dial?',
    )

    def candidates(self, world: World, rng: random.Random) -> Sequence[NearPhone]:
        phones = dict(truth(world).rows("SELECT id, phone FROM place WHERE phone GLOB '*[0-9]*'"))
        found = nearest_of(world, rng, 1)
        return [
            NearPhone(**{name: getattr(p, name) for name in p.__dataclass_fields__}, phone=phones[p.places[0]])
            for p in found
            if p.places[0] in phones and not re.search("[;,/]", phones[p.places[0]])
        ]

    def milestones(self, p: NearPhone) -> Milestones:
        return (
            Goal("The form for the nearest places is open", visited(Where("map", "/nearest"))),
            Goal(
                f"Places of the kind {p.shown} near {p.start_name} are listed",
                visited(Where("map", "/nearest", {"category": p.category, "near": p.start})),
            ),
            Goal("The nearest one's page is opened", visited(Where("map", f"/place/{p.places[0]}"))),
            Goal("The nearest one's page is in front", shows(Where("map", f"/place/{p.places[0]}"))),
        )

    def outcome(self, p: NearPhone) -> Outcome:
        return Outcome(answer=Phone(p.phone))

    async def solve(self, hand: Hand, p: NearPhone) -> str | None:
        await nearest(hand, p.shown, p.start_name)
        await hand.click("link", results(await hand.text(), p.shown)[0][0])
        return await hand.read(r"^Phone \| (.+)$")


TEMPLATES = (
    WalkMetres(),
    DriveMinutes(),
    OpenWalk(),
    OpenDrive(),
    WalkOrDrive(),
    WalkingTour(),
    NearestOne(),
    NearestThree(),
    NearestMetres(),
    NearestPhone(),
)
