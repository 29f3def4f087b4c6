"""Code site tasks that create, comment, close, reassign and replan tickets."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from envs.suites.sites.changes import Inserted
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.code.shared import (
    DEVELOPER,
    PRIORITIES,
    OneTicket,
    comment_row,
    developers,
    empty,
    field_row,
    open_ticket,
    open_ticket_form,
    row_added,
    ticket_milestones,
    ticket_row,
    tickets,
    wait_for,
)
from envs.suites.sites.templates import (
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    all_of,
    changed,
    visited,
)


@dataclass(frozen=True)
class NewTicket(Params):
    summary: str
    description: str
    type: str
    priority: str
    milestone: str
    component: str


IDEAS = (
    ("Tide table for two days in a row", "A second day would fit on the same page."),
    ("Show moonrise beside high water", "The moon explains the spring tides."),
    ("Print the name of the datum in every table", "Readers guess wrongly which one it is."),
    ("Warn when a station has moved", "Its old offsets are of no use then."),
    ("Read gauge files with a byte order mark", "The first line is skipped today."),
    ("Keep the last ten searches", "People look for the same harbours every day."),
    ("Round heights to centimetres", "Millimetres promise too much."),
    ("Say which constituents were used", "It belongs below the curve."),
    ("Let alerts pause at night", "Nobody reads them between midnight and six."),
    ("Check the checksums of cached tables", "A damaged file gave strange curves."),
    ("Offer a compact table for phones", "Three columns are enough there."),
    ("Name the source of every station", "Some licences ask for it."),
)


class CreateTicket(Template[NewTicket]):
    name = "code-new-ticket"
    sites = ("code",)
    category = "code"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'File a ticket "{summary}" with the description "{description}": type {type}, priority {priority}, component '
        '{component}, milestone "{milestone}".',
        "Open a new ticket of type {type} and priority {priority} for the component {component} and the milestone "
        '"{milestone}". Its summary is "{summary}" and its description "{description}".',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[NewTicket]:
        database = golden.database("code")
        components = [row[0] for row in database.rows("SELECT name FROM component ORDER BY name")]
        milestones = [
            row[0] for row in database.rows("SELECT name FROM milestone WHERE coalesce(completed, 0) = 0 ORDER BY name")
        ]
        types = ("enhancement", "task", "documentation")
        return [
            NewTicket(*idea, rng.choice(types), rng.choice(("critical", "minor", "trivial")), milestone, component)
            for idea in IDEAS
            for milestone in milestones
            for component in rng.sample([name for name in components if name != "documentation"], 2)
        ]

    def milestones(self, p: NewTicket) -> Milestones:
        return (
            Goal("The form for a new ticket is open", visited(PagePattern("code", "/newticket"))),
            Goal("A ticket is created", changed("code", "ticket", reporter=DEVELOPER)),
            Goal(f'A ticket "{p.summary}" of the component {p.component} is created',
                 changed("code", "ticket", summary=p.summary, component=p.component)),
            Goal(f'The ticket "{p.summary}" has the right type, priority and milestone',
                 changed("code", "ticket", type=p.type, priority=p.priority, milestone=p.milestone, summary=p.summary)),
        )  # fmt: skip

    def outcome(self, p: NewTicket) -> Outcome:
        row = {
            "summary": p.summary,
            "description": p.description,
            "type": p.type,
            "priority": p.priority,
            "milestone": p.milestone,
            "component": p.component,
            "reporter": DEVELOPER,
            "status": "new",
            "version": empty,
            "keywords": empty,
        }
        return Outcome(changes={"code": (Inserted("ticket", row),)})

    async def solve(self, driver: PageDriver, p: NewTicket) -> str | None:
        await driver.click("link", "New Ticket")
        await wait_for(driver, "textbox", "Summary:")
        await driver.type("textbox", "Summary:", p.summary)
        await driver.type("textbox", re.compile("^Description"), p.description)
        await driver.select("combobox", "Type:", p.type)
        await driver.select("combobox", "Priority:", p.priority)
        await driver.select("combobox", "Milestone:", p.milestone)
        await driver.select("combobox", "Component:", p.component)
        await driver.click("button", "Create ticket")
        return None


REMARKS = (
    "The new test covers this case.",
    "I saw it again this morning in Rotterdam.",
    "Please try it with the branch dark-plots.",
    "We agreed to wait for numpy 3.",
    "A workaround is on the wiki.",
    "The file is on the mailing list.",
)


class AddComment(Template[OneTicket]):
    name = "code-comment"
    sites = ("code",)
    category = "code"
    kind = "content"
    difficulty = "easy"
    wordings = (
        'Add the comment "{truth}" to the ticket "{summary}".',
        'Write "{truth}" below the ticket "{summary}", as a comment.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[OneTicket]:
        rows = tickets(golden, "status", "status <> 'closed'")
        return [OneTicket(number, summary, rng.choice(REMARKS)) for number, summary, _ in rows]

    def milestones(self, p: OneTicket) -> Milestones:
        first, _, third, _ = ticket_milestones(p)
        return (
            first,
            third,
            Goal("The ticket has a new comment", changed("code", "ticket_change", ticket=p.ticket, field="comment")),
            Goal(f'The comment says "{p.truth}"', row_added(comment_row(p.ticket, p.truth))),
        )

    def outcome(self, p: OneTicket) -> Outcome:
        return Outcome(changes={"code": (comment_row(p.ticket, p.truth),)}, allowed={"code": (ticket_row(p.ticket),)})

    async def solve(self, driver: PageDriver, p: OneTicket) -> str | None:
        await open_ticket(driver, p.summary)
        await driver.type("textbox", "You may use WikiFormatting here.", p.truth)
        await driver.click("button", "Submit changes")
        return None


@dataclass(frozen=True)
class Closing(OneTicket):
    """`truth` is the comment."""

    resolution: str


REASONS = {
    "fixed": "Fixed in the last commit.",
    "invalid": "The manual says so too.",
    "wontfix": "Nobody has time for it.",
    "worksforme": "It works with version 0.7.",
}


class CloseTicket(Template[Closing]):
    name = "code-close-ticket"
    sites = ("code",)
    category = "code"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Close the ticket "{summary}" as {resolution}, with the comment "{truth}".',
        'The ticket "{summary}" is done: resolve it as {resolution} and comment "{truth}".',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Closing]:
        rows = tickets(golden, "status", "status <> 'closed'")
        closings: list[Closing] = []
        for number, summary, _ in rows:
            resolution = rng.choice(tuple(REASONS))
            closings.append(Closing(number, summary, REASONS[resolution], resolution))
        return closings

    def milestones(self, p: Closing) -> Milestones:
        first, _, third, _ = ticket_milestones(p)
        return (
            first,
            third,
            Goal("The ticket is closed", changed("code", "ticket", id=p.ticket, status="closed")),
            Goal(
                f"The ticket is closed as {p.resolution}, with the comment",
                all_of(
                    changed("code", "ticket", id=p.ticket, resolution=p.resolution),
                    row_added(comment_row(p.ticket, p.truth)),
                ),
            ),
        )

    def outcome(self, p: Closing) -> Outcome:
        return Outcome(
            changes={
                "code": (
                    ticket_row(p.ticket, status="closed", resolution=p.resolution),
                    field_row(p.ticket, "status", "closed"),
                    field_row(p.ticket, "resolution", p.resolution),
                    comment_row(p.ticket, p.truth),
                )
            }
        )

    async def solve(self, driver: PageDriver, p: Closing) -> str | None:
        await open_ticket(driver, p.summary)
        await open_ticket_form(driver)
        await driver.click("radio", "resolve")
        if p.resolution != "fixed":
            await driver.select("combobox", "", p.resolution)
        await driver.type("textbox", "You may use WikiFormatting here.", p.truth)
        await driver.click("button", "Submit changes")
        return None


@dataclass(frozen=True)
class Handover(OneTicket):
    """`truth` is the account of the new owner."""

    full_name: str


class Reassign(Template[Handover]):
    name = "code-reassign"
    sites = ("code",)
    category = "code"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Give the ticket "{summary}" to {full_name}.',
        'Reassign the ticket "{summary}": from now on {full_name} owns it.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Handover]:
        names = developers(golden)
        handovers: list[Handover] = []
        for number, summary, owner in tickets(golden, "owner", "status = 'new'"):
            user = rng.choice([account for account in names if account not in (owner, DEVELOPER)])
            handovers.append(Handover(number, summary, user, names[user]))
        return handovers

    def milestones(self, p: Handover) -> Milestones:
        first, _, third, _ = ticket_milestones(p)
        return (
            first,
            third,
            Goal("The ticket is assigned", changed("code", "ticket", id=p.ticket, status="assigned")),
            Goal(f"{p.full_name} owns the ticket", changed("code", "ticket", id=p.ticket, owner=p.truth)),
        )

    def outcome(self, p: Handover) -> Outcome:
        return Outcome(
            changes={
                "code": (
                    ticket_row(p.ticket, owner=p.truth, status="assigned"),
                    field_row(p.ticket, "owner", p.truth),
                    field_row(p.ticket, "status", "assigned"),
                    comment_row(p.ticket),
                )
            }
        )

    async def solve(self, driver: PageDriver, p: Handover) -> str | None:
        await open_ticket(driver, p.summary)
        await open_ticket_form(driver)
        await driver.click("radio", "reassign")
        await driver.select("combobox", "action_reassign_reassign_owner", p.full_name)
        await driver.click("button", "Submit changes")
        return None


@dataclass(frozen=True)
class Replanning(OneTicket):
    """`truth` is the new milestone."""

    priority: str


class Replan(Template[Replanning]):
    name = "code-replan"
    sites = ("code",)
    category = "code"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Move the ticket "{summary}" to the milestone "{truth}" and give it the priority {priority}.',
        'The ticket "{summary}" is planned anew: priority {priority}, milestone "{truth}".',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Replanning]:
        database = golden.database("code")
        milestones = [
            row[0] for row in database.rows("SELECT name FROM milestone WHERE coalesce(completed, 0) = 0 ORDER BY name")
        ]
        rows = database.rows("SELECT id, summary, milestone, priority FROM ticket WHERE status <> 'closed' ORDER BY id")
        return [
            Replanning(
                number,
                summary,
                rng.choice([choice for choice in milestones if choice != milestone]),
                rng.choice([choice for choice in PRIORITIES if choice != priority]),
            )
            for number, summary, milestone, priority in rows
        ]

    def milestones(self, p: Replanning) -> Milestones:
        first, _, third, _ = ticket_milestones(p)
        return (
            first,
            third,
            Goal("The ticket is changed", changed("code", "ticket", id=p.ticket)),
            Goal("The ticket has the new milestone and priority",
                 changed("code", "ticket", id=p.ticket, milestone=p.truth, priority=p.priority)),
        )  # fmt: skip

    def outcome(self, p: Replanning) -> Outcome:
        return Outcome(
            changes={
                "code": (
                    ticket_row(p.ticket, milestone=p.truth, priority=p.priority),
                    field_row(p.ticket, "milestone", p.truth),
                    field_row(p.ticket, "priority", p.priority),
                    comment_row(p.ticket),
                )
            }
        )

    async def solve(self, driver: PageDriver, p: Replanning) -> str | None:
        await open_ticket(driver, p.summary)
        await open_ticket_form(driver)
        await driver.select("combobox", "Priority:", p.priority)
        await driver.select("combobox", "Milestone:", p.truth)
        await driver.click("button", "Submit changes")
        return None


TEMPLATES = (
    CreateTicket(),
    AddComment(),
    CloseTicket(),
    Reassign(),
    Replan(),
)
