"""Code site tasks of the administrator: milestones, versions, components and values of ticket fields."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from envs.suites.sites.changes import Inserted, Updated
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.code.shared import empty, people, wait_for
from envs.suites.sites.templates import (
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    any_of,
    changed,
    visited,
)

DAYS = ("2026-04-24", "2026-05-08", "2026-05-29", "2026-06-26", "2026-07-10", "2026-08-21", "2026-10-02", "2026-11-13")
WORDS = ("storm surges", "faster tables", "small harbours", "mobile", "numpy 3", "translations", "spring cleaning")
FORMAT = re.compile("^Format")
"""The name of the field for a due date."""
ADMINISTRATOR: Mapping[SiteName, str] = {"code": "admin"}


def microseconds(day: str) -> int:
    """17:00 UTC of *day*, in microseconds since 1970."""
    return int(datetime.fromisoformat(f"{day}T17:00:00+00:00").timestamp()) * 1_000_000


@dataclass(frozen=True)
class Due(Params):
    milestone: str
    day: str


class NewMilestone(Template[Due]):
    name = "code-new-milestone"
    sites = ("code",)
    category = "code"
    kind = "configuration"
    difficulty = "medium"
    personas = ADMINISTRATOR
    wordings = (
        'Create a milestone "{milestone}", due on {day} at 17:00 UTC.',
        'We need a new milestone called "{milestone}". It is due on {day}, 17:00 UTC.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Due]:
        return [Due(word, day) for word in WORDS for day in rng.sample(DAYS, 6)]

    def milestones(self, p: Due) -> Milestones:
        lists = PagePattern("code", r"/roadmap|/admin/ticket/milestones")
        form = PagePattern("code", r"/milestone|/admin/ticket/milestones")
        return (
            Goal("The roadmap or the list of milestones is open", visited(lists)),
            Goal("The form for a new milestone is open", visited(form)),
            Goal(f'There is a milestone "{p.milestone}"', changed("code", "milestone", name=p.milestone)),
            Goal(
                f'The milestone "{p.milestone}" has its due date',
                changed("code", "milestone", name=p.milestone, due=microseconds(p.day)),
            ),
        )

    def outcome(self, p: Due) -> Outcome:
        row = {"name": p.milestone, "due": microseconds(p.day), "completed": 0, "description": empty}
        return Outcome(changes={"code": (Inserted("milestone", row),)})

    async def solve(self, driver: PageDriver, p: Due) -> str | None:
        await driver.click("link", "Roadmap")
        await driver.click("button", "Add new milestone")
        await wait_for(driver, "textbox", "Name:")
        await driver.type("textbox", "Name:", p.milestone)
        await driver.click("checkbox", "Due:")
        await driver.type("textbox", FORMAT, f"{p.day}T17:00:00Z")
        await driver.click("button", "Add milestone")
        return None


class MoveDue(Template[Due]):
    name = "code-move-due"
    sites = ("code",)
    category = "code"
    kind = "configuration"
    difficulty = "medium"
    personas = ADMINISTRATOR
    wordings = (
        'The milestone "{milestone}" is late: set its due date to {day} at 17:00 UTC.',
        'Change the due date of the milestone "{milestone}" to {day}, 17:00 UTC.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Due]:
        rows = golden.database("code").rows(
            "SELECT name FROM milestone WHERE coalesce(completed, 0) = 0 AND due > 0 ORDER BY name"
        )
        return [Due(name, day) for (name,) in rows for day in DAYS]

    def milestones(self, p: Due) -> Milestones:
        page = PagePattern("code", f"/milestone/{re.escape(p.milestone)}")
        panel = PagePattern("code", f"/admin/ticket/milestones/{re.escape(p.milestone)}")
        return (
            Goal("The roadmap is open", visited(PagePattern("code", r"/roadmap|/admin/ticket/milestones"))),
            Goal(f'The milestone "{p.milestone}" is opened', any_of(visited(page), visited(panel))),
            Goal(
                f'The form of the milestone "{p.milestone}" is opened',
                any_of(visited(PagePattern("code", page.path, {"action": "edit"})), visited(panel)),
            ),
            Goal(
                f'The milestone "{p.milestone}" has its new due date',
                changed("code", "milestone", name=p.milestone, due=microseconds(p.day)),
            ),
        )

    def outcome(self, p: Due) -> Outcome:
        row = Updated("milestone", {"name": p.milestone}, {"due": microseconds(p.day)})
        return Outcome(changes={"code": (row,)})

    async def solve(self, driver: PageDriver, p: Due) -> str | None:
        await driver.click("link", "Roadmap")
        await driver.click("link", f"Milestone: {p.milestone}")
        await driver.click("button", "Edit milestone")
        await wait_for(driver, "textbox", FORMAT)
        await driver.type("textbox", FORMAT, f"{p.day}T17:00:00Z")
        await driver.click("button", "Submit changes")
        return None


def panel_goals(panel: str) -> tuple[Goal, Goal]:
    """The first two milestones of a task in a panel of the administration."""
    return (
        Goal("The administration is open", visited(PagePattern("code", r"/admin(/.*)?"))),
        Goal(
            f"The panel of {panel.rpartition('/')[2]} is open", visited(PagePattern("code", rf"/admin/{panel}(/.*)?"))
        ),
    )


@dataclass(frozen=True)
class Version(Params):
    version: str
    day: str


class NewVersion(Template[Version]):
    name = "code-new-version"
    sites = ("code",)
    category = "code"
    kind = "configuration"
    difficulty = "medium"
    personas = ADMINISTRATOR
    wordings = (
        'Add the version "{version}" for tickets, released on {day} at 17:00 UTC.',
        'Tickets shall be able to name version "{version}". Enter it with the release time {day}, 17:00 UTC.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Version]:
        names = ("0.6.1", "0.6.2", "0.7.1", "0.7.2", "0.8a1", "0.8b1", "0.8rc1")
        days = ("2026-02-20", "2026-02-27", "2026-03-02", "2026-03-06", "2026-03-11", "2026-03-13")
        return [Version(name, day) for name in names for day in days]

    def milestones(self, p: Version) -> Milestones:
        return (
            *panel_goals("ticket/versions"),
            Goal(f'There is a version "{p.version}"', changed("code", "version", name=p.version)),
            Goal(
                f'The version "{p.version}" has its release time',
                changed("code", "version", name=p.version, time=microseconds(p.day)),
            ),
        )

    def outcome(self, p: Version) -> Outcome:
        row = Inserted("version", {"name": p.version, "time": microseconds(p.day), "description": empty})
        return Outcome(changes={"code": (row,)})

    async def solve(self, driver: PageDriver, p: Version) -> str | None:
        await driver.click("link", "Admin")
        await driver.click("link", "Versions")
        await wait_for(driver, "textbox", "Name:")
        await driver.type("textbox", "Name:", p.version)
        await driver.type("textbox", "Released:", f"{p.day}T17:00:00Z")
        await driver.click("button", "Add")
        return None


@dataclass(frozen=True)
class Part(Params):
    component: str
    user: str


class NewComponent(Template[Part]):
    name = "code-new-component"
    sites = ("code",)
    category = "code"
    kind = "configuration"
    difficulty = "medium"
    personas = ADMINISTRATOR
    wordings = (
        'Add a component "{component}" for tickets. Its owner is the user "{user}".',
        'Tickets need a new component, "{component}", owned by the account "{user}". Set it up.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Part]:
        names = ("surges", "forecast", "website", "sensors", "exports", "themes", "benchmarks")
        return [Part(name, user) for name in names for user in rng.sample(list(people(golden)), 5)]

    def milestones(self, p: Part) -> Milestones:
        return (
            *panel_goals("ticket/components"),
            Goal(f'There is a component "{p.component}"', changed("code", "component", name=p.component)),
            Goal(
                f'The component "{p.component}" has its owner',
                changed("code", "component", name=p.component, owner=p.user),
            ),
        )

    def outcome(self, p: Part) -> Outcome:
        row = Inserted("component", {"name": p.component, "owner": p.user, "description": empty})
        return Outcome(changes={"code": (row,)})

    async def solve(self, driver: PageDriver, p: Part) -> str | None:
        await driver.click("link", "Admin")
        await driver.click("link", "Components")
        await wait_for(driver, "textbox", "Name:")
        await driver.type("textbox", "Name:", p.component)
        await driver.select("combobox", "Owner:", p.user)
        await driver.click("button", "Add")
        return None


@dataclass(frozen=True)
class Choice(Params):
    word: str
    list: str
    """Its name in the administration, such as `Resolutions`."""
    what: str
    """The singular, such as `resolution`."""
    panel: str
    kind: str
    """Its name in the database."""


CHOICES = {
    "Resolutions": ("resolution", "resolution", "resolution", ("postponed", "upstream", "obsolete", "by design")),
    "Ticket Types": ("ticket type", "type", "ticket_type", ("question", "regression", "research", "security")),
    "Severities": ("severity", "severity", "severity", ("cosmetic", "annoying", "harmful", "dangerous")),
    "Priorities": ("priority", "priority", "priority", ("urgent", "whenever", "this week", "next week")),
}


class NewChoice(Template[Choice]):
    """Adds a value for a field of tickets."""

    name = "code-new-choice"
    sites = ("code",)
    category = "code"
    kind = "configuration"
    difficulty = "easy"
    personas = ADMINISTRATOR
    wordings = (
        'Add "{word}" to the values that the {what} of a ticket can have.',
        'Tickets need a new {what} to choose: "{word}". Set it up in the administration.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Choice]:
        return [
            Choice(word, title, what, panel, kind)
            for title, (what, panel, kind, words) in CHOICES.items()
            for word in words
        ]

    def milestones(self, p: Choice) -> Milestones:
        return (
            *panel_goals(f"ticket/{p.panel}"),
            Goal(f"There is a new {p.what}", changed("code", "enum", type=p.kind)),
            Goal(f'It is "{p.word}"', changed("code", "enum", type=p.kind, name=p.word)),
        )

    def outcome(self, p: Choice) -> Outcome:
        row = Inserted("enum", {"type": p.kind, "name": p.word, "description": empty})
        return Outcome(changes={"code": (row,)})

    async def solve(self, driver: PageDriver, p: Choice) -> str | None:
        await driver.click("link", "Admin")
        await driver.click("link", p.list)
        await wait_for(driver, "textbox", "Name:")
        await driver.type("textbox", "Name:", p.word)
        await driver.click("button", "Add")
        return None


TEMPLATES = (NewMilestone(), MoveDue(), NewVersion(), NewComponent(), NewChoice())
