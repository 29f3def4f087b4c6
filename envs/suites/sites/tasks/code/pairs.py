"""Code site tasks on two tickets."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.code.shared import (
    comment_row,
    field_row,
    open_ticket,
    open_ticket_form,
    row_added,
    ticket_page,
    ticket_row,
    tickets,
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
    changed,
    visited,
)


@dataclass(frozen=True)
class TwoTickets(Params):
    first: int
    first_summary: str
    second: int
    second_summary: str
    milestone: str


class MoveTwo(Template[TwoTickets]):
    name = "code-move-two"
    sites = ("code",)
    category = "code"
    kind = "content"
    difficulty = "hard"
    wordings = (
        'Move the tickets "{first_summary}" and "{second_summary}" to the milestone "{milestone}".',
        'Both "{first_summary}" and "{second_summary}" belong to the milestone "{milestone}": change '
        "these two tickets.",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[TwoTickets]:
        rows = tickets(golden, "milestone", "status <> 'closed'")
        milestones = sorted({milestone for *_, milestone in rows})
        moves: dict[tuple[int, int], TwoTickets] = {}
        for _ in range(120):
            (first, summary, old), (second, other_summary, other) = rng.sample(rows, 2)
            milestone = rng.choice([name for name in milestones if name not in (old, other)])
            moves[first, second] = TwoTickets(first, summary, second, other_summary, milestone)
        return list(moves.values())

    def milestones(self, p: TwoTickets) -> Milestones:
        moved = [changed("code", "ticket", id=ticket, milestone=p.milestone) for ticket in (p.first, p.second)]
        opened = [visited(ticket_page(ticket)) for ticket in (p.first, p.second)]
        return (
            Goal("One of the two tickets is opened", any_of(*opened)),
            Goal(f'One of the two tickets is in the milestone "{p.milestone}"', any_of(*moved)),
            Goal("Both tickets were opened", all_of(*opened)),
            Goal(f'Both tickets are in the milestone "{p.milestone}"', all_of(*moved)),
        )

    def outcome(self, p: TwoTickets) -> Outcome:
        rows = [
            row
            for ticket in (p.first, p.second)
            for row in (
                ticket_row(ticket, milestone=p.milestone),
                field_row(ticket, "milestone", p.milestone),
                comment_row(ticket),
            )
        ]
        return Outcome(changes={"code": rows})

    async def solve(self, driver: PageDriver, p: TwoTickets) -> str | None:
        for summary in (p.first_summary, p.second_summary):
            await open_ticket(driver, summary)
            await open_ticket_form(driver)
            await driver.select("combobox", "Milestone:", p.milestone)
            await driver.click("button", "Submit changes")
        return None


@dataclass(frozen=True)
class Duplicate(Params):
    ticket: int
    summary: str
    original: int
    original_summary: str


class CloseDuplicate(Template[Duplicate]):
    """The comment on one ticket must contain the number of the other."""

    name = "code-close-duplicate"
    sites = ("code",)
    category = "code"
    kind = "content"
    difficulty = "hard"
    wordings = (
        'The ticket "{summary}" is the same as "{original_summary}": close it as duplicate, set its priority '
        'to trivial, and comment "Same as #N", where N is the number of the other ticket.',
        'Resolve "{summary}" as duplicate of "{original_summary}". Lower its priority to trivial, and let the comment '
        'be "Same as #N" with the number of the other ticket for N.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Duplicate]:
        rows = tickets(golden, "status", "status <> 'closed' AND priority <> 'trivial'")
        duplicates: list[Duplicate] = []
        for ticket, summary, _ in rows:
            original, other, _ = rng.choice([row for row in rows if row[0] != ticket])
            duplicates.append(Duplicate(ticket, summary, original, other))
        return duplicates

    def milestones(self, p: Duplicate) -> Milestones:
        closed = changed("code", "ticket", id=p.ticket, resolution="duplicate", priority="trivial")
        return (
            Goal(
                "One of the two tickets is looked for",
                visited(PagePattern("code", r"/search|/report/\d+|/query|/ticket/.*")),
            ),
            Goal(f'The ticket "{p.summary}" is opened', visited(ticket_page(p.ticket))),
            Goal("The ticket is closed as duplicate, with trivial priority", closed),
            Goal(
                "The comment names the other ticket",
                all_of(closed, row_added(comment_row(p.ticket, f"Same as #{p.original}"))),
            ),
        )

    def outcome(self, p: Duplicate) -> Outcome:
        return Outcome(
            changes={
                "code": (
                    ticket_row(p.ticket, status="closed", resolution="duplicate", priority="trivial"),
                    field_row(p.ticket, "status", "closed"),
                    field_row(p.ticket, "resolution", "duplicate"),
                    field_row(p.ticket, "priority", "trivial"),
                    comment_row(p.ticket, f"Same as #{p.original}"),
                )
            }
        )

    async def solve(self, driver: PageDriver, p: Duplicate) -> str | None:
        await open_ticket(driver, p.original_summary)
        number = await driver.read(r'^# \[\d+\] link "#(\d+)"')
        await open_ticket(driver, p.summary)
        await open_ticket_form(driver)
        await driver.select("combobox", "Priority:", "trivial")
        await driver.click("radio", "resolve")
        await driver.select("combobox", "", "duplicate")
        await driver.type("textbox", "You may use WikiFormatting here.", f"Same as #{number}")
        await driver.click("button", "Submit changes")
        return None


TEMPLATES = (MoveTwo(), CloseDuplicate())
