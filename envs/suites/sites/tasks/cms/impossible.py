"""Impossible CMS tasks about things that the site does not have. The answer is a refusal with the reason."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envs.suites.sites.answers import Refusal
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver, Unsolvable
from envs.suites.sites.tasks.cms.shared import IN_ADMIN, PAGE, listed_in_admin, title_searched
from envs.suites.sites.templates import Goal, GoldenStates, Milestones, Outcome, Params, Template, shows, visited

UNKNOWN = (
    "Pottery afternoon",
    "Sandcastle contest",
    "Whale song at midnight",
    "Origami for sailors",
    "Blindfold chess in the courtyard",
    "Perfume workshop",
    "Puppet theatre: the flying fish",
    "Yoga among the figureheads",
    "Wine tasting in the stores",
    "Robot regatta",
)
NOT_THERE = (
    "no (such )?(event|page)",
    "no event",
    "not exist",
    "n't exist",
    r"not (found|listed|on the)",
    "could not find",
    "couldn't find",
    "nothing",
)


@dataclass(frozen=True)
class NoEvent(Params):
    event: str


class MissingEvent(Template[NoEvent]):
    name = "cms-missing-event"
    sites = ("cms",)
    category = "cms"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'What does the event "{event}" cost? If the site does not say, tell me so and why.',
        'How many seats are there at "{event}" in the museum? Say so if that cannot be answered, with the reason.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[NoEvent]:
        titles = {row[0] for row in golden.database("cms").rows(f"SELECT title FROM {PAGE}")}
        return [NoEvent(event) for event in UNKNOWN if event not in titles]

    def milestones(self, p: NoEvent) -> Milestones:
        search = PagePattern("cms", "/search/")
        return (
            Goal("The events or the search are open", visited(PagePattern("cms", "/events/|/search/"))),
            Goal("The list of events is open", visited(PagePattern("cms", "/events/"))),
            Goal("The event was searched for", title_searched("/search/", "query", p.event)),
            Goal("The answer of the search is shown", shows(search)),
        )

    def outcome(self, p: NoEvent) -> Outcome:
        return Outcome(answer=Refusal(f'there is no event called "{p.event}" on the site', NOT_THERE))

    async def solve(self, driver: PageDriver, p: NoEvent) -> str | None:
        await driver.click("link", "Events")
        if await driver.has("link", p.event):
            raise Unsolvable(f"the site has an event {p.event!r}")
        await driver.type("searchbox", "Search", p.event, enter=True)
        await driver.read(r"(Nothing was found)")
        return self.outcome(p).answer.truth()  # pyright: ignore[reportOptionalMemberAccess]


@dataclass(frozen=True)
class NoType(Params):
    type: str
    section: str
    page: int


TYPES = ("Gallery page", "Video page", "Quiz page", "Shop page")


class MissingPageType(Template[NoType]):
    name = "cms-missing-page-type"
    sites = ("cms",)
    category = "cms"
    kind = "impossible"
    difficulty = "easy"
    start = IN_ADMIN
    wordings = (
        'Add a page of the type "{type}" below {section}; no other type will do. If that is impossible, say why.',
        'Create a "{type}" in the section {section}. Do not use another page type; tell me if you cannot, and why.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[NoType]:
        rows = golden.database("cms").rows(f"SELECT title, id FROM {PAGE} WHERE depth = 3 ORDER BY id")
        return [NoType(kind, section, page) for section, page in rows for kind in TYPES]

    def milestones(self, p: NoType) -> Milestones:
        types = PagePattern("cms", rf"/admin/pages/{p.page}/add_subpage/")
        lists = PagePattern("cms", r"/admin/pages/(search/(results/)?|\d+/.*)?")
        return (
            Goal("A list of pages or the search is open", visited(lists)),
            Goal(f"{p.section} is found", listed_in_admin(p.section, p.page)),
            Goal("The choice of page types was opened", visited(types)),
            Goal("The choice of page types is shown", shows(types)),
        )

    def outcome(self, p: NoType) -> Outcome:
        missing = (
            *NOT_THERE,
            "no .*page type",
            "no .*type",
            f"no .*{p.type.lower()}",
            "not (available|offered|allowed)",
        )
        return Outcome(answer=Refusal(f'there is no page type "{p.type}" to choose below {p.section}', missing))

    async def solve(self, driver: PageDriver, p: NoType) -> str | None:
        await driver.type("textbox", "Search", p.section, enter=True)
        await driver.click("button", f"More options for '{p.section}'")
        await driver.click("link", "Add child page")
        if await driver.has("link", p.type):
            raise Unsolvable(f"the CMS has a page type {p.type!r}")
        return self.outcome(p).answer.truth()  # pyright: ignore[reportOptionalMemberAccess]


IMPOSSIBLE: tuple[Template[Any], ...] = (MissingEvent(), MissingPageType())
