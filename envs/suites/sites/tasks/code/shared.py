"""What the code site's tasks share: who is who, tickets to draw from, milestones, and the hand's ways."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from envs.suites.sites.answers import Text
from envs.suites.sites.changes import Inserted, Noise, SqlValue, Updated
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import Name, PageDriver
from envs.suites.sites.templates import Check, Goal, Milestones, Params, World, any_of, shows, visited

NOISE = Noise(tables=frozenset({"session", "session_attribute", "cache", "auth_cookie"}))
"""Every visit is a session; what was last filtered by is kept as its attribute; Trac counts its own caches."""

MOST = 240
"""Instances drawn of a template."""
LOOKS = 5
DEVELOPER = "noor"
"""Who does the tasks of the usual persona."""
PRIORITIES = ("blocker", "critical", "major", "minor", "trivial")

P = TypeVar("P", bound=Params)


@dataclass(frozen=True)
class OneTicket(Params):
    """A task about one ticket."""

    ticket: int
    summary: str
    truth: str
    """What is asked for, or what is to be written."""


def people(world: World) -> dict[str, str]:
    """Account to full name, in the order of accounts."""
    return dict(
        world.database("code").rows(
            "SELECT sid, value FROM session_attribute WHERE name = 'name' AND authenticated = 1 ORDER BY sid"
        )
    )


def developers(world: World) -> dict[str, str]:
    """Those of `people` who commit and own tickets."""
    members = world.database("code").rows("SELECT username FROM permission WHERE action = 'developers'")
    return {user: name for user, name in people(world).items() if (user,) in members}


def tickets(world: World, column: str, where: str = "1") -> list[tuple[int, str, str]]:
    """Number, summary and a column of the tickets for which it is not empty, in the order of numbers."""
    return [
        (number, summary, value)
        for number, summary, value in world.database("code").rows(
            f"SELECT id, summary, {column} FROM ticket WHERE coalesce({column}, '') <> '' AND ({where}) ORDER BY id"
        )
    ]


def person(name: str, user: str) -> Text:
    """A person by full name or account."""
    return Text(name, (user, f"{name} ({user})", f"{user} ({name})"))


def drawn_from(candidates: Sequence[P], rng: random.Random) -> list[P]:
    return rng.sample(candidates, min(MOST, len(candidates)))


def ticket_page(ticket: int) -> PagePattern:
    return PagePattern("code", f"/ticket/{ticket}")


def found_ticket(p: OneTicket) -> Milestones:
    """The way to a ticket's page."""
    lists = PagePattern("code", r"/search|/report(/.*)?|/query|/milestone/.*|/timeline|/roadmap")
    return (
        Goal("Tickets are searched or listed", any_of(visited(lists), visited(ticket_page(p.ticket)))),
        Goal("A ticket is opened", visited(PagePattern("code", r"/ticket/\d+"))),
        Goal(f'The ticket "{p.summary}" is opened', visited(ticket_page(p.ticket))),
        Goal(f'The ticket "{p.summary}" is in front', shows(ticket_page(p.ticket))),
    )


def commented(ticket: int, text: str = "") -> Inserted:
    """The row that every change of a ticket leaves, with the comment."""
    return Inserted("ticket_change", {"ticket": ticket, "author": DEVELOPER, "field": "comment", "newvalue": text})


def added(row: Inserted) -> Check:
    """For a milestone: there is such a row now."""
    return lambda evidence: any(row.fits(change) for change in evidence.changed("code"))


def set_field(ticket: int, field: str, value: str) -> Inserted:
    return Inserted("ticket_change", {"ticket": ticket, "author": DEVELOPER, "field": field, "newvalue": value})


def ticket_row(ticket: int, **to: str) -> Updated:
    return Updated("ticket", {"id": ticket}, to, allowed=("changetime",))


def empty(value: SqlValue) -> bool:
    return value in (None, "")


async def open_ticket(driver: PageDriver, summary: str) -> None:
    """Searches for it and follows the result."""
    await driver.type("textbox", "Search:", summary, enter=True)
    await driver.click("link", re.compile(rf"^#\d+: \w+: {re.escape(summary)} \("))


async def shown(driver: PageDriver, role: str, name: Name) -> None:
    """Looks until a control is there: a busy server sends its forms, and the scripts that make them, late."""
    for _ in range(LOOKS):
        if await driver.has(role, name):
            return


async def unfold(driver: PageDriver) -> None:
    """Shows the form that changes a ticket; its heading is a link only once the page's scripts have run."""
    await shown(driver, "link", "Modify Ticket")
    await driver.click("link", "Modify Ticket")


async def open_page(driver: PageDriver, name: str) -> None:
    """A wiki page, by way of the index."""
    await driver.click("link", "Wiki")
    await driver.click("link", "Index")
    await driver.click("link", name)
