"""Code site tasks that look up facts of tickets, and impossible requests about tickets."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from envs.suites.sites.answers import Number, Refusal, Text
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver, Unsolvable
from envs.suites.sites.tasks.code.shared import (
    DEVELOPER,
    OneTicket,
    open_ticket,
    open_ticket_form,
    people,
    person,
    sample_instances,
    ticket_milestones,
    tickets,
)
from envs.suites.sites.templates import Goal, GoldenStates, Milestones, Outcome, Params, Template, shows, visited


class AboutTicket(Template[OneTicket]):
    """Looks up a fact on a ticket's page."""

    sites = ("code",)
    category = "code"
    kind = "information"
    difficulty = "easy"
    column: ClassVar[str]
    row: ClassVar[str]
    """The label before the fact on the page."""

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[OneTicket]:
        return sample_instances([OneTicket(*row) for row in tickets(golden, self.column)], rng)

    def milestones(self, p: OneTicket) -> Milestones:
        return ticket_milestones(p)

    async def solve(self, driver: PageDriver, p: OneTicket) -> str | None:
        await open_ticket(driver, p.summary)
        return await driver.read(rf'{self.row}: \| (?:\[\d+\] link ")?([^"|]+)')


@dataclass(frozen=True)
class TicketOf(OneTicket):
    """A ticket whose asked-for value is a person."""

    full_name: str


class WhoReported(Template[TicketOf]):
    name = "code-ticket-reporter"
    sites = ("code",)
    category = "code"
    kind = "information"
    difficulty = "easy"
    wordings = (
        'Who reported the ticket "{summary}"? Answer with the name.',
        'Find the ticket "{summary}" and tell me the name of the person who opened it.',
    )
    column: ClassVar[str] = "reporter"
    row: ClassVar[str] = "Reported by"

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[TicketOf]:
        names = people(golden)
        return sample_instances([TicketOf(*row, names[row[2]]) for row in tickets(golden, self.column)], rng)

    def milestones(self, p: TicketOf) -> Milestones:
        return ticket_milestones(p)

    def outcome(self, p: TicketOf) -> Outcome:
        return Outcome(answer=person(p.full_name, p.truth))

    async def solve(self, driver: PageDriver, p: TicketOf) -> str | None:
        await open_ticket(driver, p.summary)
        return await driver.read(rf'{self.row}: \| \[\d+\] link "([^"]+)"')


class WhoOwns(WhoReported):
    name = "code-ticket-owner"
    wordings = (
        'Who owns the ticket "{summary}"? Answer with the name.',
        'Whose job is the ticket "{summary}"? Tell me the owner\'s name.',
    )
    column = "owner"
    row = "Owned by"


class WhichMilestone(AboutTicket):
    name = "code-ticket-milestone"
    wordings = (
        'For which milestone is the ticket "{summary}" planned? Answer with the milestone\'s name.',
        'Look up the milestone of the ticket "{summary}".',
    )
    column = "milestone"
    row = "Milestone"

    def outcome(self, p: OneTicket) -> Outcome:
        return Outcome(answer=Text(p.truth, (f"milestone {p.truth}",)))


@dataclass(frozen=True)
class Share(Params):
    milestone: str
    component: str
    active: int


class CountActive(Template[Share]):
    name = "code-count-active"
    sites = ("code",)
    category = "code"
    kind = "information"
    difficulty = "easy"
    wordings = (
        'How many active tickets of the component "{component}" are planned for the milestone "{milestone}"? Answer '
        "with a number.",
        'Count the tickets of milestone "{milestone}" that are still active in the component "{component}".',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Share]:
        rows = golden.database("code").rows(
            "SELECT milestone, component, count(*) FROM ticket JOIN milestone ON milestone.name = milestone"
            " WHERE status <> 'closed' AND coalesce(completed, 0) = 0 GROUP BY 1, 2 ORDER BY 1, 2"
        )
        return [Share(*row) for row in rows]

    def milestones(self, p: Share) -> Milestones:
        page = PagePattern("code", f"/milestone/{re.escape(p.milestone)}")
        lists = PagePattern("code", r"/milestone/.*|/query|/report.*")
        return (
            Goal(
                "The roadmap or a list of tickets is open", visited(PagePattern("code", r"/roadmap|/query|/report.*"))
            ),
            Goal("A milestone is opened", visited(lists)),
            Goal(f'The milestone "{p.milestone}" is opened', visited(page)),
            Goal(f'The milestone "{p.milestone}" is shown', shows(page)),
        )

    def outcome(self, p: Share) -> Outcome:
        return Outcome(answer=Number(p.active))

    async def solve(self, driver: PageDriver, p: Share) -> str | None:
        await driver.click("link", "Roadmap")
        await driver.click("link", f"Milestone: {p.milestone}")
        return await driver.read(rf'link "{p.component}"\n.*link "(\d+)/\d+ active"')


@dataclass(frozen=True)
class Load(Params):
    user: str
    full_name: str
    active: int


class CountOwned(Template[Load]):
    name = "code-count-owned"
    sites = ("code",)
    category = "code"
    kind = "information"
    difficulty = "easy"
    wordings = (
        "How many tickets that are not closed does {full_name} own? Answer with a number.",
        "{full_name} wonders how many open tickets there still are in that name (owner). Answer with the number.",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Load]:
        names = people(golden)
        rows = golden.database("code").rows(
            "SELECT owner, count(*) FROM ticket WHERE status <> 'closed' AND owner <> ? GROUP BY 1 ORDER BY 1",
            DEVELOPER,
        )
        own = golden.database("code").value(
            "SELECT count(*) FROM ticket WHERE status <> 'closed' AND owner = ?", DEVELOPER
        )
        return [Load(user, names[user], number) for user, number in (*rows, (DEVELOPER, own))]

    def milestones(self, p: Load) -> Milestones:
        query = PagePattern("code", "/query", {"owner": p.user})
        return (
            Goal("Reports and queries are listed", visited(PagePattern("code", r"/report.*|/query"))),
            Goal("A query or a report is open", visited(PagePattern("code", r"/report/\d+|/query"))),
            Goal(f"Tickets of {p.full_name} are asked for", visited(query)),
            Goal("The query is shown", shows(query)),
        )

    def outcome(self, p: Load) -> Outcome:
        return Outcome(answer=Number(p.active))

    async def solve(self, driver: PageDriver, p: Load) -> str | None:
        await driver.click("link", "View Tickets")
        await driver.click("link", "New Custom Query")
        await driver.select("combobox", "", p.full_name, row="Owner", nth=1)
        await driver.click("button", "Update")
        return await driver.read(r"Custom Query \((\d+) match")


@dataclass(frozen=True)
class Missing(Params):
    ticket: int
    resolution: str


class NoSuchTicket(Template[Missing]):
    name = "code-no-such-ticket"
    sites = ("code",)
    category = "code"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'Close ticket #{ticket} as {resolution}. If that cannot be done, answer "N/A: " and the reason.',
        'Resolve the ticket with the number {ticket} as {resolution}; should it not be possible, say "N/A: " and why.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Missing]:
        last = int(golden.database("code").value("SELECT max(id) FROM ticket"))
        numbers = rng.sample(range(last + 20, last + 700), 40)
        return [Missing(number, rng.choice(("fixed", "invalid", "wontfix"))) for number in numbers]

    def milestones(self, p: Missing) -> Milestones:
        search = PagePattern("code", "/search", {"q": f"#{p.ticket}"})
        last = PagePattern("code", r"/report/6", {})
        return (
            Goal("The ticket is searched for", visited(PagePattern("code", "/search"))),
            Goal(f"The number {p.ticket} is searched for", visited(search)),
            Goal("All tickets are listed", visited(last)),
            Goal("The list of all tickets is shown", shows(last)),
        )

    def outcome(self, p: Missing) -> Outcome:
        reason = f"there is no ticket #{p.ticket}"
        return Outcome(
            answer=Refusal(reason, (r"\bno (such )?ticket", r"not (exist|found|there)", r"no match", r"n't exist"))
        )

    async def solve(self, driver: PageDriver, p: Missing) -> str | None:
        await driver.type("textbox", "Search:", f"#{p.ticket}", enter=True)
        if "No matches found" not in await driver.text():
            raise Unsolvable("the search has results")
        await driver.click("link", "View Tickets")
        await driver.click("link", "{6} All Tickets By Milestone (Including closed)")
        return f"N/A: there is no ticket #{p.ticket}"


STRANGERS = ("Marta Oliveira", "Jonas Weber", "Aiko Mori", "Pavel Novak", "Greta Holm", "Samuel Okafor")


class AssignStranger(Template[OneTicket]):
    """Asks to assign a ticket to a person without an account."""

    name = "code-assign-stranger"
    sites = ("code",)
    category = "code"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'Reassign the ticket "{summary}" to {truth}. If that cannot be done, answer "N/A: " and the reason.',
        'Make {truth} the owner of the ticket "{summary}". If it is not possible, say "N/A: " and why.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[OneTicket]:
        rows = tickets(golden, "owner", "status = 'new'")
        return [OneTicket(number, summary, rng.choice(STRANGERS)) for number, summary, _ in rows]

    def milestones(self, p: OneTicket) -> Milestones:
        return ticket_milestones(p)

    def outcome(self, p: OneTicket) -> Outcome:
        reason = f"there is no user {p.truth} who could own it"
        mentions = (
            r"\bno (such )?(user|account|person|developer|member|one|owner|option)",
            r"\b(not|n't)\b.* (list|option|user|account|exist|found|choose|chosen|select|available|known|member)",
        )
        return Outcome(answer=Refusal(reason, mentions))

    async def solve(self, driver: PageDriver, p: OneTicket) -> str | None:
        await open_ticket(driver, p.summary)
        await open_ticket_form(driver)
        if p.truth in await driver.text():
            raise Unsolvable(f"{p.truth} can be chosen")
        return f"N/A: there is no user {p.truth} who could own it"


TEMPLATES = (
    WhoReported(),
    WhoOwns(),
    WhichMilestone(),
    CountActive(),
    CountOwned(),
    NoSuchTicket(),
    AssignStranger(),
)
