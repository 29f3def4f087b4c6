"""Creates the tickets with their comments and resolutions, the same in every build."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

from trac.ticket.model import Ticket

from envs.suites.sites.apps.code.people import COMPONENTS, DEVELOPERS, REPORTERS
from envs.suites.sites.apps.code.project import RELEASES

COUNT = 200
SEED = 41
FIRST = datetime(2025, 1, 15, 9, 0, tzinfo=UTC)
LAST = datetime(2026, 3, 15, 18, 0, tzinfo=UTC)

MILESTONES: dict[str, tuple[str, str]] = {
    **{version: (day, day) for version, day in RELEASES.items()},
    "0.8": ("2026-04-17", ""),
    "0.9": ("2026-06-12", ""),
    "1.0": ("2026-09-18", ""),
    "docs sprint": ("2026-03-06", ""),
    "someday": ("", ""),
}
"""Milestone to due date and completion date; empty if there is none."""
OPEN_MILESTONES = tuple(name for name, (_, completed) in MILESTONES.items() if not completed)

THINGS: dict[str, tuple[str, ...]] = {
    "alerts": ("flood warning", "mail subscription", "warning text", "alert threshold"),
    "cache": ("table cache", "cache directory", "eviction", "freshness check"),
    "cli": ("tidemark export", "tidemark today", "tidemark stations", "the --year option"),
    "datum": ("chart datum offset", "mean sea level conversion", "datum lookup", "height conversion"),
    "documentation": ("installation guide", "command line page", "plotting tutorial", "glossary"),
    "harmonics": ("nodal correction", "tide prediction", "constituent table", "phase computation"),
    "packaging": ("wheel build", "source distribution", "dependency list", "release script"),
    "plotting": ("tide curve", "night shading", "axis labels", "SVG output"),
    "readers": ("CSV reader", "JSON reader", "netCDF reader", "format detection"),
    "stations": ("station search", "nearest station", "station catalogue", "time zone lookup"),
}
CONDITIONS = (
    "names with accents",
    "a series with gaps",
    "leap years",
    "an empty file",
    "southern latitudes",
    "very long series",
    "paths with spaces",
    "daylight saving time",
    "negative heights",
    "two stations of one name",
)
FAULTS = (
    "{thing} fails for {condition}",
    "{thing} gives a wrong result for {condition}",
    "{thing} is slow for {condition}",
)
WISHES = ("metric and imperial units", "a quiet mode", "JSON output", "a progress display", "parallel runs", "dry runs")
REQUESTS = ("{thing}: support {wish}", "Offer {wish} in {thing}")
CHORES = ("Review the tests of {thing}", "Simplify {thing}", "Rename internals of {thing}")
TEXTS = ("Explain {thing} with an example", "{thing}: document the limits")

KEYWORDS = ("regression", "beginner", "windows", "performance", "api", "upstream", "timezone", "numpy")
REMARKS = (
    "I can confirm this with the current master.",
    "Could you attach the file you used?",
    "This also happens with the previous version.",
    "The cause is in the rounding, a fix is on its way.",
    "Let us decide this at the next meeting.",
    "A test that shows the problem would help.",
    "Works for me after a clean installation.",
    "I will look into it this week.",
)
CLOSING = {
    "fixed": "Fixed on master, with a test.",
    "wontfix": "Out of scope for this library.",
    "duplicate": "We have this already.",
    "invalid": "This is how it is meant to work.",
    "worksforme": "Cannot be reproduced.",
}


@dataclass(frozen=True, slots=True)
class Draft:
    """Type, component and summary of a ticket."""

    kind: str
    component: str
    summary: str


def insert_tickets(env: Any) -> None:
    """Inserts all tickets and their histories into Trac's database."""
    source = random.Random(SEED)
    drafts = _drafts(source)
    span = LAST - FIRST
    for number, draft in enumerate(drafts):
        opened = FIRST + span * (number / len(drafts)) + timedelta(minutes=source.randint(0, 900))
        _insert(env, source, draft, min(opened, LAST))


def _drafts(source: random.Random) -> list[Draft]:
    """COUNT tickets, no two with the same summary, in random order."""
    pools = [
        (
            0.55,
            "defect",
            [Draft("defect", c, f.format(thing=t, condition=w)) for c, t, f, w in _with(FAULTS, CONDITIONS)],
        ),
        (
            0.28,
            "enhancement",
            [Draft("enhancement", c, f.format(thing=t, wish=w)) for c, t, f, w in _with(REQUESTS, WISHES)],
        ),
        (0.09, "task", [Draft("task", c, f.format(thing=t)) for c, t, f, _ in _with(CHORES, ("",))]),
        (0.08, "doc", [Draft("documentation", c, f.format(thing=t)) for c, t, f, _ in _with(TEXTS, ("",))]),
    ]
    chosen = [draft for share, _, pool in pools for draft in source.sample(pool, round(share * COUNT))]
    source.shuffle(chosen)
    return [Draft(d.kind, d.component, d.summary[0].upper() + d.summary[1:]) for d in chosen]


def _with(patterns: tuple[str, ...], words: tuple[str, ...]) -> list[tuple[str, str, str, str]]:
    things = [(component, thing) for component, names in THINGS.items() for thing in names]
    return [(component, thing, pattern, word) for (component, thing), pattern, word in product(things, patterns, words)]


def _insert(env: Any, source: random.Random, draft: Draft, opened: datetime) -> None:
    developers = [person.user for person in DEVELOPERS]
    reporter = source.choice(developers if source.random() < 0.55 else [person.user for person in REPORTERS])
    owner = COMPONENTS[draft.component] if source.random() < 0.6 else source.choice(developers)
    released = [version for version, day in RELEASES.items() if _day(day) < opened]
    ticket = Ticket(env)
    ticket["type"] = draft.kind
    ticket["component"] = draft.component
    ticket["summary"] = draft.summary
    ticket["description"] = _description(draft, released).replace("\n", "\r\n")  # as a browser sends it
    ticket["reporter"] = reporter
    ticket["owner"] = owner
    ticket["status"] = "new"
    ticket["priority"] = source.choices(("blocker", "critical", "major", "minor", "trivial"), (4, 12, 46, 28, 10))[0]
    ticket["version"] = released[-1] if released and draft.kind == "defect" else ""
    ticket["keywords"] = ", ".join(sorted(source.sample(KEYWORDS, source.choice((0, 0, 1, 1, 2)))))
    ticket["cc"] = ", ".join(sorted(source.sample(developers, source.choice((0, 0, 0, 1, 2)))))
    ends = opened + timedelta(days=source.randint(1, 60), minutes=source.randint(0, 600))
    is_closed = ends < LAST and source.random() < 0.74
    ticket["milestone"] = _next_milestone(ends) if is_closed else source.choice((*OPEN_MILESTONES, "0.8", ""))
    ticket.insert(when=opened)
    _talk(source, ticket, opened, ends if ends < LAST else LAST)
    if is_closed:
        _close(source, ticket, owner, ends)
    elif source.random() < 0.45:
        ticket["status"] = source.choice(("assigned", "accepted"))
        ticket.save_changes(owner, "", when=min(ends, LAST) + timedelta(minutes=7))


def _description(draft: Draft, released: list[str]) -> str:
    seen = f"Seen with version {released[-1]}." if released else "Seen with a checkout of master."
    match draft.kind:
        case "defect":
            return f"{draft.summary}.\n\n{seen}\n\nExpected: the same result as for ordinary input."
        case "enhancement":
            return f"{draft.summary}.\n\nSeveral people have asked for it on the mailing list."
        case _:
            return f"{draft.summary}.\n\nNothing that users see may change without a note in CHANGES.md."


def _talk(source: random.Random, ticket: Any, opened: datetime, until: datetime) -> None:
    number = source.choice((0, 0, 1, 1, 2, 3))
    speakers = [person.user for person in DEVELOPERS]
    for place in range(number):
        when = opened + (until - opened) * ((place + 1) / (number + 2))
        ticket.save_changes(source.choice(speakers), source.choice(REMARKS), when=when.replace(microsecond=0))


def _close(source: random.Random, ticket: Any, owner: str, when: datetime) -> None:
    resolution = source.choices(tuple(CLOSING), (70, 8, 8, 7, 7))[0]
    ticket["status"] = "closed"
    ticket["resolution"] = resolution
    ticket.save_changes(owner, CLOSING[resolution], when=when)


def _next_milestone(when: datetime) -> str:
    """The milestone of the next release after *when*."""
    return next((name for name, (due, _) in MILESTONES.items() if due and _day(due) >= when), "0.8")


def _day(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}T17:00:00+00:00")
