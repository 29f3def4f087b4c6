"""Map tasks about the nearest places of a category."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from envs.suites.sites.answers import Names, Number, Text
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.map.shared import (
    KINDS,
    PLAIN,
    Phone,
    landmarks,
    nearest,
    results,
    sample_instances,
    truth,
)
from envs.suites.sites.templates import Goal, GoldenStates, Milestones, Outcome, Params, Template, shows, visited


@dataclass(frozen=True)
class Near(Params):
    category: str
    shown: str
    kind: str
    start: str
    start_name: str
    places: tuple[str, ...]
    """Ids of the places, nearest first."""
    names: tuple[str, ...]
    metres: int
    """Walking distance to the nearest one."""


def nearest_of(golden: GoldenStates, rng: random.Random, number: int) -> list[Near]:
    """Pairs of landmark and category whose *number* nearest places are unambiguous."""
    names = landmarks(golden)
    rows = truth(golden).rows(
        "SELECT walk.start, category, place.id, name, metres FROM walk JOIN place ON place.id = walk.place"
        " ORDER BY walk.start, category, metres, place.id"
    )
    lists: dict[tuple[str, str], list[tuple[str, str, int]]] = {}
    for start, category, place, name, metres in rows:
        if start in names and category in KINDS:
            lists.setdefault((start, category), []).append((place, name, metres))
    instances = [
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
    return sample_instances(instances, rng)


def _clear(known: Sequence[tuple[str, str, int]], number: int) -> bool:
    """Are the distances clearly different and the names plain and distinct?"""
    head = known[: number + 1]
    metres, names = [m for _, _, m in head], [name for _, name, _ in head[:number]]
    apart = all(after - before >= 5 for before, after in pairwise(metres))
    return apart and len({name.lower() for name in names}) == number and all(PLAIN.fullmatch(name) for name in names)


class ByDistance(Template[Near]):
    """Asks for the nearest places of a kind."""

    sites = ("map",)
    category = "map"
    kind = "information"
    difficulty = "easy"
    number: ClassVar[int] = 1

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Near]:
        return nearest_of(golden, rng, self.number)

    def milestones(self, p: Near) -> Milestones:
        page = PagePattern("map", "/nearest", {"category": p.category, "near": p.start})
        return (
            Goal("The form for the nearest places is open", visited(PagePattern("map", "/nearest"))),
            Goal(f"Places near {p.start_name} are listed", visited(PagePattern("map", "/nearest", {"near": p.start}))),
            Goal(f"Places of the kind {p.shown} near {p.start_name} are listed", visited(page)),
            Goal(f"The list of places of the kind {p.shown} is shown", shows(page)),
        )

    async def solve(self, driver: PageDriver, p: Near) -> str | None:
        await nearest(driver, p.shown, p.start_name)
        listed = results(await driver.text(), p.shown)
        return self.answer(listed[: self.number])

    def answer(self, listed: Sequence[tuple[str, int]]) -> str:
        return "; ".join(name for name, _ in listed)


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

    def answer(self, listed: Sequence[tuple[str, int]]) -> str:
        return str(listed[0][1])


@dataclass(frozen=True)
class NearPhone(Near):
    phone: str


class NearestPhone(Template[NearPhone]):
    """Asks for the phone number of the nearest place: one list, then one page."""

    name = "map-nearest-phone"
    sites = ("map",)
    category = "map"
    kind = "information"
    difficulty = "medium"
    wordings = (
        "Find the {kind} that is the nearest to {start_name} on foot and answer with its phone number.",
        'I am at "{start_name}" and want to call the closest {kind}. Which number do I dial?',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[NearPhone]:
        phones = dict(truth(golden).rows("SELECT id, phone FROM place WHERE phone GLOB '*[0-9]*'"))
        instances = nearest_of(golden, rng, 1)
        return [
            NearPhone(**{name: getattr(p, name) for name in p.__dataclass_fields__}, phone=phones[p.places[0]])
            for p in instances
            if p.places[0] in phones and not re.search("[;,/]", phones[p.places[0]])
        ]

    def milestones(self, p: NearPhone) -> Milestones:
        return (
            Goal("The form for the nearest places is open", visited(PagePattern("map", "/nearest"))),
            Goal(
                f"Places of the kind {p.shown} near {p.start_name} are listed",
                visited(PagePattern("map", "/nearest", {"category": p.category, "near": p.start})),
            ),
            Goal("The page of the nearest place is opened", visited(PagePattern("map", f"/place/{p.places[0]}"))),
            Goal("The page of the nearest place is shown", shows(PagePattern("map", f"/place/{p.places[0]}"))),
        )

    def outcome(self, p: NearPhone) -> Outcome:
        return Outcome(answer=Phone(p.phone))

    async def solve(self, driver: PageDriver, p: NearPhone) -> str | None:
        await nearest(driver, p.shown, p.start_name)
        await driver.click("link", results(await driver.text(), p.shown)[0][0])
        return await driver.read(r"^Phone \| (.+)$")


TEMPLATES = (NearestOne(), NearestThree(), NearestMetres(), NearestPhone())
