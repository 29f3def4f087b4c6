"""Map tasks about routes between places."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from envs.suites.sites.answers import Number
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.map.shared import (
    TwoPlaces,
    directions,
    distance,
    landmarks,
    pairs,
    route,
    route_milestones,
    truth,
)
from envs.suites.sites.templates import (
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    all_of,
    any_of,
    shows,
    visited,
)


class OneRoute(Template[TwoPlaces]):
    """A task about one route between two landmarks."""

    sites = ("map",)
    category = "map"
    by: ClassVar[str]

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[TwoPlaces]:
        return pairs(golden, self.by, rng)

    def milestones(self, p: TwoPlaces) -> Milestones:
        return route_milestones(p, self.by)


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

    async def solve(self, driver: PageDriver, p: TwoPlaces) -> str | None:
        await route(driver, p.start_name, p.end_name)
        return str(await distance(driver))


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

    async def solve(self, driver: PageDriver, p: TwoPlaces) -> str | None:
        await route(driver, p.start_name, p.end_name, car=True)
        return await driver.read(r"^Time: (\d+) min")


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

    async def solve(self, driver: PageDriver, p: TwoPlaces) -> str | None:
        await driver.type("searchbox", "Search places", p.end_name, enter=True)
        await driver.click("link", p.end_name)
        await driver.click("link", "Directions to this place")
        await driver.type("textbox", "From", p.start_name)
        await driver.click("button", "Get directions")
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

    async def solve(self, driver: PageDriver, p: TwoPlaces) -> str | None:
        await route(driver, p.start_name, p.end_name, car=True)
        return None


@dataclass(frozen=True)
class Both(TwoPlaces):
    driven: int
    """Length of the drive in metres."""


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

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Both]:
        driven = {(a, b): m for a, b, m in truth(golden).rows("SELECT start, end, metres FROM route WHERE by = 'car'")}
        return [
            Both(p.start, p.start_name, p.end, p.end_name, p.metres, p.minutes, driven[p.start, p.end])
            for p in pairs(golden, "foot", rng)
            if abs(driven.get((p.start, p.end), p.metres) - p.metres) > 20
        ]

    def milestones(self, p: Both) -> Milestones:
        foot, car = directions(p.start, p.end, "foot"), directions(p.start, p.end, "car")
        return (
            Goal("The directions form is open", visited(PagePattern("map", "/directions"))),
            Goal("One of the two ways is found", any_of(visited(foot), visited(car))),
            Goal("Both ways are found", all_of(visited(foot), visited(car))),
            Goal(
                "Both ways were found and one is shown",
                any_of(all_of(visited(foot), shows(car)), all_of(visited(car), shows(foot))),
            ),
        )

    def outcome(self, p: Both) -> Outcome:
        return Outcome(answer=Number(abs(p.driven - p.metres)))

    async def solve(self, driver: PageDriver, p: Both) -> str | None:
        await route(driver, p.start_name, p.end_name)
        walked = await distance(driver)
        await driver.select("combobox", "By", "By car")
        await driver.click("button", "Get directions")
        return str(abs(await distance(driver) - walked))


MANY_TOURS = 150
"""Number of random tours and choices; those with short legs are skipped."""


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

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Tour]:
        names = landmarks(golden)
        rows = truth(golden).rows("SELECT start, end, metres FROM route WHERE by = 'foot' AND metres > 150")
        lengths = {(a, b): m for a, b, m in rows}
        tours: dict[tuple[str, str, str, str], Tour] = {}
        for _ in range(MANY_TOURS):
            a, b, c, d = rng.sample(list(names), 4)
            legs = ((a, b), (b, c), (c, d))
            if all(leg in lengths for leg in legs):
                metres = sum(lengths[leg] for leg in legs)
                tours[a, b, c, d] = Tour(names[a], names[b], names[c], names[d], (a, b, c, d), metres)
        return list(tours.values())

    def milestones(self, p: Tour) -> Milestones:
        a, b, c, d = p.ids
        legs = [visited(directions(*leg, "foot")) for leg in ((a, b), (b, c), (c, d))]
        return (
            Goal("The directions form is open", visited(PagePattern("map", "/directions"))),
            Goal(f"The walk from {p.first} to {p.second} is found", legs[0]),
            Goal(f"The walk from {p.second} to {p.third} is found too", all_of(*legs[:2])),
            Goal("All three walks are found", all_of(*legs)),
        )

    def outcome(self, p: Tour) -> Outcome:
        return Outcome(answer=Number(p.metres))

    async def solve(self, driver: PageDriver, p: Tour) -> str | None:
        metres = 0
        stops = (p.first, p.second, p.third, p.fourth)
        for number, (start, end) in enumerate(pairwise(stops)):
            await route(driver, start, end, fresh=number == 0)
            metres += await distance(driver)
        return str(metres)


@dataclass(frozen=True)
class Choice(Params):
    start: str
    first: str
    second: str
    third: str
    ids: tuple[str, str, str, str]
    """Ids of the start and the three destinations."""
    metres: int


class ShortestDrive(Template[Choice]):
    """Asks for the shortest of three drives."""

    name = "map-shortest-drive"
    sites = ("map",)
    category = "map"
    kind = "information"
    difficulty = "hard"
    wordings = (
        "I drive from {start} to one of {first}, {second} and {third}, whichever is the shortest drive. How many "
        "metres is it?",
        "Of {first}, {second} and {third}, one is the nearest to {start} by car. How long is the drive there, in "
        "metres?",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Choice]:
        names = landmarks(golden)
        rows = truth(golden).rows("SELECT start, end, metres FROM route WHERE by = 'car' AND metres > 150")
        lengths = {(a, b): m for a, b, m in rows}
        choices: dict[tuple[str, ...], Choice] = {}
        for _ in range(MANY_TOURS):
            a, b, c, d = rng.sample(list(names), 4)
            drives = sorted(lengths.get((a, end), 0) for end in (b, c, d))
            if drives[0] and drives[1] - drives[0] > 20:
                choices[a, b, c, d] = Choice(names[a], names[b], names[c], names[d], (a, b, c, d), drives[0])
        return list(choices.values())

    def milestones(self, p: Choice) -> Milestones:
        drives = [visited(directions(p.ids[0], end, "car")) for end in p.ids[1:]]
        two = any_of(all_of(*drives[:2]), all_of(*drives[1:]), all_of(drives[0], drives[2]))
        return (
            Goal("The directions form is open", visited(PagePattern("map", "/directions"))),
            Goal(f"A drive from {p.start} to one of the three is found", any_of(*drives)),
            Goal("Two of the three drives are found", two),
            Goal("All three drives are found", all_of(*drives)),
        )

    def outcome(self, p: Choice) -> Outcome:
        return Outcome(answer=Number(p.metres))

    async def solve(self, driver: PageDriver, p: Choice) -> str | None:
        await route(driver, p.start, p.first, car=True)
        metres = [await distance(driver)]
        for end in (p.second, p.third):
            await driver.type("textbox", "To", end)
            await driver.click("button", "Get directions")
            metres.append(await distance(driver))
        return str(min(metres))


TEMPLATES = (
    WalkMetres(),
    DriveMinutes(),
    OpenWalk(),
    OpenDrive(),
    WalkOrDrive(),
    WalkingTour(),
    ShortestDrive(),
)
