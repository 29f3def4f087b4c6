"""Code site tasks on the wiki: open pages, look up facts, edit, delete."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from envs.suites.sites.answers import Refusal, Text
from envs.suites.sites.changes import Inserted, SqlValue
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver, Unsolvable
from envs.suites.sites.tasks.code.shared import DEVELOPER, open_page, wait_for
from envs.suites.sites.templates import (
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    changed,
    shows,
    visited,
)


@dataclass(frozen=True)
class Page(Params):
    page: str


class OpenHistory(Template[Page]):
    name = "code-open-history"
    sites = ("code",)
    category = "code"
    kind = "navigation"
    difficulty = "easy"
    wordings = (
        'Open the change history of the wiki page "{page}".',
        'Who changed the wiki page "{page}", and when? Show me its history.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Page]:
        rows = golden.database("code").rows(
            "SELECT DISTINCT name FROM wiki WHERE name NOT IN ('TitleIndex', 'WikiStart') ORDER BY name"
        )
        return [Page(row[0]) for row in rows]

    def milestones(self, p: Page) -> Milestones:
        page = PagePattern("code", f"/wiki/{re.escape(p.page)}")
        return (
            Goal(
                "The wiki's index or a search is open", visited(PagePattern("code", r"/wiki/TitleIndex|/search|/wiki"))
            ),
            Goal(f"The page {p.page} is opened", visited(page)),
            Goal(f"The history of {p.page} is opened", visited(self._history(p))),
            Goal(f"The history of {p.page} is shown", shows(self._history(p))),
        )

    def outcome(self, p: Page) -> Outcome:
        return Outcome(page=self._history(p))

    async def solve(self, driver: PageDriver, p: Page) -> str | None:
        await open_page(driver, p.page)
        await driver.click("link", "History")
        return None

    def _history(self, p: Page) -> PagePattern:
        return PagePattern("code", f"/wiki/{re.escape(p.page)}", {"action": "history"})


@dataclass(frozen=True)
class Fact(Params):
    page: str
    question: str
    truth: str
    others: tuple[str, ...]
    source: str
    """A regular expression that reads the answer from the page."""


FACTS = (
    Fact("CommandLine", "What is the exit code of tidemark when a station is unknown?", "3", (), r"exit code is (\d+)"),
    Fact("Plotting", "How wide is a figure by default, in pixels?", "1200", ("1200 pixels",), r"is (\d+) by"),
    Fact("Team", "In which town does Kofi Mensah live?", "Tema", (), r"Kofi Mensah \| .* \| (\w+)"),
    Fact("Team", "In which town does Lucas Moreau live?", "Saint-Malo", (), r"Lucas Moreau \| .* \| ([\w-]+)"),
    Fact("Team", "In which town does Hanna Virtanen live?", "Turku", (), r"Hanna Virtanen \| .* \| (\w+)"),
    Fact("Team", "In which town does Mei Tanaka live?", "Yokohama", (), r"Mei Tanaka \| .* \| (\w+)"),
    Fact("Team", "In which town does Diego Alvarez live?", "Vigo", (), r"Diego Alvarez \| .* \| (\w+)"),
    Fact("Team", "In which town does Priya Raman live?", "Chennai", (), r"Priya Raman \| .* \| (\w+)"),
    Fact("ReleaseProcess", "Who is the deputy of the release manager?", "Tomasz Zielinski", ("tomasz",),
         r"Deputy: ([\w ]+)\."),
    Fact("SupportPolicy", "Until which day is version 0.6 supported (YYYY-MM-DD)?", "2026-06-30", (),
         r"0\.6 \| ([\d-]+)"),
    Fact("SupportPolicy", "Until which day is version 0.7 supported (YYYY-MM-DD)?", "2026-12-31", (),
         r"0\.7 \| ([\d-]+)"),
    Fact("Constituents", "What is the speed of the constituent K1, in degrees per hour?", "15.041", (),
         r"K1 \| ([\d.]+)"),
    Fact("Constituents", "What is the speed of the constituent M2, in degrees per hour?", "28.984", (),
         r"M2 \| ([\d.]+)"),
    Fact("Constituents", "What is the speed of the constituent N2, in degrees per hour?", "28.440", ("28.44",),
         r"N2 \| ([\d.]+)"),
    Fact("Stations", "How many stations does the catalogue hold?", "412", ("412 stations",), r"holds (\d+) stations"),
    Fact("Stations/Brest", "Since which year has the tide been observed at Brest?", "1807", (), r"since (\d+)"),
    Fact("Stations/Gdansk", "Since which year has the tide been observed at Gdansk?", "1886", (), r"since (\d+)"),
    Fact("Stations/Tema", "In which year was the gauge of Tema replaced?", "2019", (), r"replaced in (\d+)"),
    Fact("Alerts", "After how many days do subscriptions to warnings end?", "365", ("365 days",), r"after (\d+) days"),
    Fact("Cache", "How many megabytes may the cache hold at most?", "250", ("250 MB", "250 megabytes"),
         r"at most (\d+) MB"),
    Fact("CodingStyle", "How many characters may a line of code have at most?", "100", ("100 characters",),
         r"at most (\d+) char"),
    Fact("Sponsors", "Until which year is the domain paid for?", "2028", (), r"until (\d+)"),
    Fact("MailingList", "About how many readers does the mailing list have?", "340", ("340 readers", "about 340"),
         r"about (\d+) readers"),
)  # fmt: skip
"""Facts of the wiki. A fact is used only if its page exists."""


class WikiFact(Template[Fact]):
    name = "code-wiki-fact"
    sites = ("code",)
    category = "code"
    kind = "information"
    difficulty = "easy"
    wordings = (
        "{question} The project's wiki says it; answer with that alone.",
        "Look it up in the wiki of the project: {question} Answer with nothing else.",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Fact]:
        pages = {row[0] for row in golden.database("code").rows("SELECT name FROM wiki")}
        return [fact for fact in FACTS if fact.page in pages]

    def milestones(self, p: Fact) -> Milestones:
        page = PagePattern("code", f"/wiki/{re.escape(p.page)}")
        return (
            Goal("The wiki is open or searched", visited(PagePattern("code", r"/wiki(/.*)?|/search"))),
            Goal("A page that lists others is open", visited(PagePattern("code", r"/wiki/TitleIndex|/search|/wiki"))),
            Goal("The page with the answer is opened", visited(page)),
            Goal("The page with the answer is shown", shows(page)),
        )

    def outcome(self, p: Fact) -> Outcome:
        return Outcome(answer=Text(p.truth, p.others))

    async def solve(self, driver: PageDriver, p: Fact) -> str | None:
        await open_page(driver, p.page)
        return await driver.read(p.source)


@dataclass(frozen=True)
class Addition(Params):
    page: str
    line: str
    before: str
    """The text of the page before the edit."""


LINES = (
    "This page was checked in March 2026.",
    "Questions go to the mailing list.",
    "See also the notes of the last meeting.",
    "The next version changes this.",
)


class AppendToPage(Template[Addition]):
    name = "code-wiki-append"
    sites = ("code",)
    category = "code"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Add the line "{line}" at the end of the wiki page "{page}".',
        'Edit the wiki page "{page}": a last line is missing, namely "{line}".',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Addition]:
        rows = golden.database("code").rows(
            "SELECT name, text FROM wiki WHERE name NOT IN ('TitleIndex', 'WikiStart') ORDER BY name"
        )
        return [Addition(name, line, text) for name, text in rows for line in rng.sample(LINES, 2)]

    def milestones(self, p: Addition) -> Milestones:
        page = PagePattern("code", f"/wiki/{re.escape(p.page)}")
        return (
            Goal(f"The page {p.page} is opened", visited(page)),
            Goal(f"The editor of {p.page} is open", visited(PagePattern("code", page.path, {"action": "edit"}))),
            Goal("The page has a new version", changed("code", "wiki", name=p.page, author=DEVELOPER)),
            Goal("The new line is the last line of the page", changed("code", "wiki", name=p.page, text=_lines(p))),
        )

    def outcome(self, p: Addition) -> Outcome:
        row = {"name": p.page, "version": 2, "author": DEVELOPER, "text": _lines(p), "readonly": 0}
        return Outcome(changes={"code": (Inserted("wiki", row),)})

    async def solve(self, driver: PageDriver, p: Addition) -> str | None:
        await open_page(driver, p.page)
        await driver.click("button", "Edit this page")
        await wait_for(driver, "textbox", "text")
        await driver.type("textbox", "text", f"{p.before.rstrip()}\n\n{p.line}\n")
        await driver.click("button", "Submit changes")
        return None


class _EndsWith:
    """Tests that a text is the old page with the new line at its end. Empty lines are ignored."""

    def __init__(self, p: Addition) -> None:
        self._expected = [*_nonempty_lines(p.before), p.line]

    def __call__(self, text: SqlValue) -> bool:
        return isinstance(text, str) and _nonempty_lines(text) == self._expected


def _nonempty_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _lines(p: Addition) -> _EndsWith:
    return _EndsWith(p)


class DeletePage(Template[Page]):
    """Impossible: only an administrator may delete a page."""

    name = "code-wiki-delete"
    sites = ("code",)
    category = "code"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'Delete the wiki page "{page}". If that cannot be done, answer "N/A: " and the reason.',
        'The wiki page "{page}" is obsolete: delete it. If you cannot, say "N/A: " and why.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Page]:
        return OpenHistory().candidates(golden, rng)

    def milestones(self, p: Page) -> Milestones:
        page = PagePattern("code", f"/wiki/{re.escape(p.page)}")
        return (
            Goal("The wiki or a search is open", visited(PagePattern("code", r"/wiki(/.*)?|/search"))),
            Goal("A page that lists others is open", visited(PagePattern("code", r"/wiki/TitleIndex|/search|/wiki"))),
            Goal(f"The page {p.page} is opened", visited(page)),
            Goal(f"The page {p.page} is shown", shows(page)),
        )

    def outcome(self, p: Page) -> Outcome:
        reason = "there is no button to delete it: I do not have the permission"
        mentions = (
            r"permission|privilege|right|allow|authori|admin",
            r"\bno .*(delete|button|option|way)",
            r"not? .*offer",
        )
        return Outcome(answer=Refusal(reason, mentions))

    async def solve(self, driver: PageDriver, p: Page) -> str | None:
        await open_page(driver, p.page)
        if "Delete" in await driver.text():
            raise Unsolvable("the page can be deleted")
        return "N/A: there is no button to delete it: I do not have the permission"


TEMPLATES = (OpenHistory(), WikiFact(), AppendToPage(), DeletePage())
