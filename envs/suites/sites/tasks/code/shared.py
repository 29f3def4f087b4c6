"""Shared parts of the code site's tasks: people, tickets, expected rows, milestones and driver steps."""

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
from envs.suites.sites.templates import Check, Goal, GoldenStates, Milestones, Params, any_of, shows, visited

NOISE = Noise(tables=frozenset({"session", "session_attribute", "cache", "auth_cookie"}))
"""Each visit writes a session, its last filter as an attribute, and Trac's cache counters."""

MOST = 240
"""Largest number of instances of a template."""
MAX_OBSERVATIONS = 5
DEVELOPER = "noor"
"""The account of the default persona."""
PRIORITIES = ("blocker", "critical", "major", "minor", "trivial")

P = TypeVar("P", bound=Params)


@dataclass(frozen=True)
class OneTicket(Params):
    """A task about one ticket."""

    ticket: int
    summary: str
    truth: str
    """The expected answer, or the text to write."""


def people(golden: GoldenStates) -> dict[str, str]:
    """Maps accounts to full names, ordered by account."""
    return dict(
        golden.database("code").rows(
            "SELECT sid, value FROM session_attribute WHERE name = 'name' AND authenticated = 1 ORDER BY sid"
        )
    )


def developers(golden: GoldenStates) -> dict[str, str]:
    """The people who commit and own tickets."""
    members = golden.database("code").rows("SELECT username FROM permission WHERE action = 'developers'")
    return {user: name for user, name in people(golden).items() if (user,) in members}


def tickets(golden: GoldenStates, column: str, where: str = "1") -> list[tuple[int, str, str]]:
    """Number, summary and *column* of the tickets whose *column* is not empty, ordered by number."""
    return [
        (number, summary, value)
        for number, summary, value in golden.database("code").rows(
            f"SELECT id, summary, {column} FROM ticket WHERE coalesce({column}, '') <> '' AND ({where}) ORDER BY id"
        )
    ]


def person(name: str, user: str) -> Text:
    """The answer that names a person, by full name or account."""
    return Text(name, (user, f"{name} ({user})", f"{user} ({name})"))


def sample_instances(candidates: Sequence[P], rng: random.Random) -> list[P]:
    """At most MOST of *candidates*, in random order."""
    return rng.sample(candidates, min(MOST, len(candidates)))


def ticket_page(ticket: int) -> PagePattern:
    return PagePattern("code", f"/ticket/{ticket}")


def ticket_milestones(p: OneTicket) -> Milestones:
    """The milestones of opening a ticket's page."""
    lists = PagePattern("code", r"/search|/report(/.*)?|/query|/milestone/.*|/timeline|/roadmap")
    return (
        Goal("Tickets are searched or listed", any_of(visited(lists), visited(ticket_page(p.ticket)))),
        Goal("A ticket is opened", visited(PagePattern("code", r"/ticket/\d+"))),
        Goal(f'The ticket "{p.summary}" is opened', visited(ticket_page(p.ticket))),
        Goal(f'The ticket "{p.summary}" is shown', shows(ticket_page(p.ticket))),
    )


def comment_row(ticket: int, text: str = "") -> Inserted:
    """The row that every change of a ticket inserts, with the comment."""
    return Inserted("ticket_change", {"ticket": ticket, "author": DEVELOPER, "field": "comment", "newvalue": text})


def row_added(row: Inserted) -> Check:
    """Checks that this row was inserted."""
    return lambda evidence: any(row.fits(change) for change in evidence.changed("code"))


def field_row(ticket: int, field: str, value: str) -> Inserted:
    """The row that a change of one field inserts."""
    return Inserted("ticket_change", {"ticket": ticket, "author": DEVELOPER, "field": field, "newvalue": value})


def ticket_row(ticket: int, **to: str) -> Updated:
    return Updated("ticket", {"id": ticket}, to, allowed=("changetime",))


def empty(value: SqlValue) -> bool:
    return value in (None, "")


async def open_ticket(driver: PageDriver, summary: str) -> None:
    """Searches for a ticket and opens it."""
    await driver.type("textbox", "Search:", summary, enter=True)
    await driver.click("link", re.compile(rf"^#\d+: \w+: {re.escape(summary)} \("))


async def wait_for(driver: PageDriver, role: str, name: Name) -> None:
    """Observes until a control appears. A busy server delivers forms and their scripts late."""
    for _ in range(MAX_OBSERVATIONS):
        if await driver.has(role, name):
            return


async def open_ticket_form(driver: PageDriver) -> None:
    """Opens the form that changes a ticket. Its heading becomes a link after the page's scripts have run."""
    await wait_for(driver, "link", "Modify Ticket")
    await driver.click("link", "Modify Ticket")


async def open_page(driver: PageDriver, name: str) -> None:
    """Opens a wiki page through the index."""
    await driver.click("link", "Wiki")
    await driver.click("link", "Index")
    await driver.click("link", name)
