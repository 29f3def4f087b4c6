"""CMS tasks that look up facts on the museum's public site and open forms in its admin."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from envs.suites.sites.answers import Answer, Day, Number, Text
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.cms.shared import (
    ARTICLE,
    EVENT,
    IN_ADMIN,
    InPage,
    PageRow,
    form_goals,
    open_form,
    pages,
    reading_milestones,
)
from envs.suites.sites.templates import (
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    all_of,
    shows,
    visited,
)


@dataclass(frozen=True)
class EventFact(InPage):
    path: str
    question: str
    fact: str
    """The row label in the event's table."""
    value: str


QUESTIONS: dict[str, str] = {
    "Day": "On which date does it take place (day, month and year)?",
    "Place": "Where does it take place?",
    "Price": "What does it cost, in euros (0 if it is free)?",
    "Seats": "How many seats are there?",
}


def events(golden: GoldenStates) -> dict[int, dict[str, str]]:
    """Facts of all events, by page id."""
    rows = golden.database("cms").rows(f"SELECT page_ptr_id, day, place, price, seats FROM {EVENT}")
    return {row[0]: {name: str(value) for name, value in zip(QUESTIONS, row[1:], strict=True)} for row in rows}


class AboutEvent(Template[EventFact]):
    name = "cms-event-fact"
    sites = ("cms",)
    category = "cms"
    kind = "information"
    difficulty = "easy"
    wordings = (
        'About the event "{title}": {question} Answer with that alone.',
        'Look up "{title}" on the museum\'s site. {question} Give just the answer.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[EventFact]:
        facts = events(golden)
        return [
            row.into(EventFact, path=row.path, question=question, fact=fact, value=facts[row.page][fact])
            for row in pages(golden, "p.live AND s.title = 'Events'")
            for fact, question in QUESTIONS.items()
        ]

    def milestones(self, p: EventFact) -> Milestones:
        return reading_milestones(p.title, p.path)

    def outcome(self, p: EventFact) -> Outcome:
        answers: dict[str, Callable[[str], Answer]] = {
            "Day": lambda value: Day(date.fromisoformat(value)),
            "Place": lambda value: Text(value, (f"the {value}", f"in the {value}")),
            "Price": lambda value: Number(Decimal(value)),
            "Seats": lambda value: Number(int(value)),
        }
        return Outcome(answer=answers[p.fact](p.value))

    async def solve(self, driver: PageDriver, p: EventFact) -> str | None:
        await driver.click("link", p.section)
        await driver.click("link", p.title)
        shown = await driver.read(rf"^{p.fact} \| (.+)$")
        return "0" if shown == "free" else shown.partition(", ")[2] if p.fact == "Day" else shown


@dataclass(frozen=True)
class Byline(InPage):
    path: str
    author: str


class ArticleAuthor(Template[Byline]):
    name = "cms-article-author"
    sites = ("cms",)
    category = "cms"
    kind = "information"
    difficulty = "easy"
    wordings = (
        'Who wrote "{title}" on the museum\'s site? Answer with the name.',
        'Find the page "{title}" in the section {section} and tell me its author\'s name.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Byline]:
        authors = dict(golden.database("cms").rows(f"SELECT page_ptr_id, author FROM {ARTICLE}"))
        live = pages(golden, "p.live")
        return [row.into(Byline, path=row.path, author=authors[row.page]) for row in live if row.page in authors]

    def milestones(self, p: Byline) -> Milestones:
        return reading_milestones(p.title, p.path)

    def outcome(self, p: Byline) -> Outcome:
        return Outcome(answer=Text(p.author))

    async def solve(self, driver: PageDriver, p: Byline) -> str | None:
        await driver.click("link", p.section)
        await driver.click("link", p.title)
        return await driver.read(r"^By ([^,]+), ")


@dataclass(frozen=True)
class VisitorFact(InPage):
    path: str
    question: str
    value: int


FACTS: tuple[tuple[str, str, int], ...] = (
    ("Tickets", "How many euros does an adult pay?", 9),
    ("Tickets", "How many euros is the ticket for a student?", 5),
    ("Tickets", "How many euros does a ticket for a whole year cost?", 32),
    ("Tickets", "Up to which age (in years, not included) do children come in for nothing?", 12),
    ("Getting here", "Which tram stops at the museum?", 9),
    ("Café", "How many people can sit in the café?", 38),
    ("Groups", "How many minutes does a guided tour for a group take?", 75),
    ("Groups", "How many euros does a guided tour for a group cost?", 60),
    ("History", "In which year was the museum founded?", 1897),
    ("History", "In which year did the museum move to its present place?", 1931),
    ("Friends of the museum", "How many friends does the museum have?", 640),
    ("Friends of the museum", "How many euros is the membership of the friends of the museum?", 45),
)
"""Page, question, answer. Questions whose answer is not on the page are skipped."""


class AboutVisit(Template[VisitorFact]):
    name = "cms-visitor-fact"
    sites = ("cms",)
    category = "cms"
    kind = "information"
    difficulty = "easy"
    wordings = (
        "{question} The museum's site says it. Answer with a number.",
        "I am planning a visit to the Tidewater Museum. {question} Just the number, please.",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[VisitorFact]:
        bodies = dict(golden.database("cms").rows("SELECT page_ptr_id, body FROM website_infopage"))
        known = {row.title: row for row in pages(golden, "p.live") if row.page in bodies}
        return [
            known[title].into(VisitorFact, path=known[title].path, question=question, value=value)
            for title, question, value in FACTS
            if title in known and re.search(rf"\b{value}\b", bodies[known[title].page])
        ]

    def milestones(self, p: VisitorFact) -> Milestones:
        return reading_milestones(p.title, p.path)

    def outcome(self, p: VisitorFact) -> Outcome:
        return Outcome(answer=Number(p.value))

    async def solve(self, driver: PageDriver, p: VisitorFact) -> str | None:
        await driver.click("link", p.section)
        await driver.click("link", p.title)
        return await driver.read(rf"\b({p.value})\b")


@dataclass(frozen=True)
class ThreeEvents(Params):
    one: str
    two: str
    three: str
    measure: str
    column: str
    best: str
    paths: tuple[str, str, str]


class CompareEvents(Template[ThreeEvents]):
    name = "cms-compare-events"
    sites = ("cms",)
    category = "cms"
    kind = "information"
    difficulty = "medium"
    wordings = (
        'Which of these events {measure}: "{one}", "{two}" or "{three}"? Answer with its title.',
        'I cannot decide between "{one}", "{two}" and "{three}". Tell me the title of the one that {measure}.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[ThreeEvents]:
        facts, live = events(golden), pages(golden, "p.live AND s.title = 'Events'")
        comparisons: list[ThreeEvents] = []
        for _ in range(120):
            chosen = rng.sample(live, 3)
            for measure, column, sign in (("has the most seats", "Seats", 1), ("costs the most", "Price", 1)):
                ranked = sorted(chosen, key=lambda row: sign * Decimal(facts[row.page][column]), reverse=True)
                if facts[ranked[0].page][column] != facts[ranked[1].page][column]:
                    comparisons.append(self._task(chosen, measure, column, ranked[0].title))
        return list(dict.fromkeys(comparisons))

    @staticmethod
    def _task(chosen: Sequence[PageRow], measure: str, column: str, best: str) -> ThreeEvents:
        one, two, three = chosen
        return ThreeEvents(one.title, two.title, three.title, measure, column, best, (one.path, two.path, three.path))

    def milestones(self, p: ThreeEvents) -> Milestones:
        one, two, three = (visited(PagePattern("cms", re.escape(path))) for path in p.paths)
        return (
            Goal("The events or the search are open", visited(PagePattern("cms", r"/events/|/search/"))),
            Goal(f'"{p.one}" was opened', one),
            Goal(f'"{p.two}" was opened too', all_of(one, two)),
            Goal("All three were opened", all_of(one, two, three)),
        )

    def outcome(self, p: ThreeEvents) -> Outcome:
        return Outcome(answer=Text(p.best))

    async def solve(self, driver: PageDriver, p: ThreeEvents) -> str | None:
        values: dict[str, Decimal] = {}
        await driver.click("link", "Events")
        for title in (p.one, p.two, p.three):
            await driver.click("link", title)
            shown = await driver.read(rf"^{p.column} \| (.+)$")
            values[title] = Decimal(re.sub(r"[^\d.]", "", shown) or "0")
            if title != p.three:
                await driver.back()
        return max(values, key=lambda title: values[title])


class OpenForm(Template[InPage]):
    name = "cms-open-editor"
    sites = ("cms",)
    category = "cms"
    kind = "navigation"
    difficulty = "easy"
    start = IN_ADMIN
    wordings = (
        'Open the page "{title}" for editing.',
        'In the admin, bring up the form in which "{title}" ({section}) is edited.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[InPage]:
        return [row.into(InPage) for row in pages(golden, "1")]

    def milestones(self, p: InPage) -> Milestones:
        listed, opened = form_goals(p)
        lists = PagePattern("cms", r"/admin/pages/(search/(results/)?|\d+/.*)?")
        return (
            Goal("A list of pages or the search is open", visited(lists)),
            listed,
            opened,
            Goal("The form is shown", shows(p.form)),
        )

    def outcome(self, p: InPage) -> Outcome:
        return Outcome(page=p.form)

    async def solve(self, driver: PageDriver, p: InPage) -> str | None:
        await open_form(driver, p.title)
        return None


READING: tuple[Template[Any], ...] = (AboutEvent(), ArticleAuthor(), AboutVisit(), CompareEvents(), OpenForm())
