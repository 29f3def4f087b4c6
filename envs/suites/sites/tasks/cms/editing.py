"""CMS tasks that edit, publish, unpublish, schedule and create pages."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envs.suites.sites.changes import Inserted, SqlValue, Test, Updated
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.cms.shared import (
    ARTICLE,
    DRAFT,
    EVENT,
    IN_ADMIN,
    LIVE,
    PAGE,
    REVISION,
    STAMPS,
    InPage,
    form_goals,
    open_form,
    page_stamps,
    pages,
    publish,
    revisions,
    title_searched,
    wait_for,
)
from envs.suites.sites.templates import (
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    any_of,
    changed,
    sent,
    visited,
)

TITLES = (
    "What the tide table knows",
    "Forty years behind the counter",
    "A door that was never locked",
    "The smallest room in the house",
    "Notes from the Rope Loft",
    "How to pack a bell",
    "Two sisters and a sextant",
    "Left behind on platform three",
)
AUTHORS = ("Bastian Okoro", "Celia Marchetti", "Dov Halloran", "Emeline Strand")


@dataclass(frozen=True)
class Retitled(InPage):
    new: str


class EditTitle(Template[Retitled]):
    name = "cms-edit-title"
    sites = ("cms",)
    category = "cms"
    kind = "content"
    difficulty = "medium"
    start = IN_ADMIN
    wordings = (
        'Change the title of the page "{title}" to "{new}" and publish it.',
        'The page "{title}" in {section} should be called "{new}" from now on, on the live site too.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Retitled]:
        return [row.into(Retitled, new=rng.choice(TITLES)) for row in pages(golden, LIVE)]

    def milestones(self, p: Retitled) -> Milestones:
        return (
            *form_goals(p),
            Goal("The new title is saved", changed("cms", PAGE, id=p.page, draft_title=p.new)),
            Goal("The new title is live", changed("cms", PAGE, id=p.page, title=p.new, has_unpublished_changes=0)),
        )

    def outcome(self, p: Retitled) -> Outcome:
        to = {"title": p.new, "live": 1, "has_unpublished_changes": 0}
        return Outcome(
            changes={"cms": (Updated(PAGE, {"id": p.page}, to, allowed=STAMPS),)}, allowed={"cms": revisions(p.page)}
        )

    async def solve(self, driver: PageDriver, p: Retitled) -> str | None:
        await open_form(driver, p.title)
        await driver.type("textbox", "Title*", p.new)
        await publish(driver)
        return None


@dataclass(frozen=True)
class NewFact(InPage):
    label: str
    column: str
    new: str

    @property
    def value(self) -> str | int:
        """The new value as the database stores it."""
        return int(self.new) if self.column == "seats" else self.new


class EditEvent(Template[NewFact]):
    name = "cms-edit-event"
    sites = ("cms",)
    category = "cms"
    kind = "content"
    difficulty = "medium"
    start = IN_ADMIN
    wordings = (
        'For the event "{title}", set the {column} to {new} and publish the change.',
        'The {column} of "{title}" has changed: it is now {new}. Update the event and publish it.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[NewFact]:
        now = golden.database("cms").rows(f"SELECT page_ptr_id, place, seats FROM {EVENT}")
        places = sorted({row[1] for row in now})
        facts = {row[0]: row[1:] for row in now}
        facts_to_edit: list[NewFact] = []
        for row in pages(golden, f"{LIVE} AND s.title = 'Events'"):
            place, seats = facts[row.page]
            other = rng.choice([name for name in places if name != place])
            facts_to_edit.append(row.into(NewFact, label="Place*", column="place", new=other))
            facts_to_edit.append(row.into(NewFact, label="Seats*", column="seats", new=str(seats + rng.randint(3, 40))))
        return facts_to_edit

    def milestones(self, p: NewFact) -> Milestones:
        expected: dict[str, SqlValue] = {"page_ptr_id": p.page, p.column: p.value}
        return (
            *form_goals(p),
            Goal("The form was sent", sent(p.form)),
            Goal(f"The new {p.column} is live", changed("cms", EVENT, was=None, **expected)),
        )

    def outcome(self, p: NewFact) -> Outcome:
        fact = Updated(EVENT, {"page_ptr_id": p.page}, {p.column: p.value})
        return Outcome(changes={"cms": (fact,)}, allowed={"cms": (*revisions(p.page), page_stamps(p.page))})

    async def solve(self, driver: PageDriver, p: NewFact) -> str | None:
        await open_form(driver, p.title)
        role = "spinbutton" if await driver.has("spinbutton", p.label) else "textbox"
        await driver.type(role, p.label, p.new)
        await publish(driver)
        return None


class PublishDraft(Template[InPage]):
    name = "cms-publish-draft"
    sites = ("cms",)
    category = "cms"
    kind = "configuration"
    difficulty = "easy"
    start = IN_ADMIN
    wordings = (
        'Publish the draft "{title}".',
        'The page "{title}" in {section} is ready: put it on the live site.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[InPage]:
        return [row.into(InPage) for row in pages(golden, DRAFT)]

    def milestones(self, p: InPage) -> Milestones:
        return (
            *form_goals(p),
            Goal("The form was sent", sent(p.form)),
            Goal("The page is live", changed("cms", PAGE, id=p.page, live=1)),
        )

    def outcome(self, p: InPage) -> Outcome:
        to = {"live": 1, "has_unpublished_changes": 0}
        return Outcome(
            changes={"cms": (Updated(PAGE, {"id": p.page}, to, allowed=STAMPS),)}, allowed={"cms": revisions(p.page)}
        )

    async def solve(self, driver: PageDriver, p: InPage) -> str | None:
        await open_form(driver, p.title)
        await publish(driver)
        return None


class Unpublish(Template[InPage]):
    name = "cms-unpublish"
    sites = ("cms",)
    category = "cms"
    kind = "configuration"
    difficulty = "medium"
    start = IN_ADMIN
    wordings = (
        'Take the page "{title}" off the live site, but keep it as a draft.',
        'Unpublish "{title}" (it is in {section}).',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[InPage]:
        return [row.into(InPage) for row in pages(golden, LIVE)]

    def milestones(self, p: InPage) -> Milestones:
        question = PagePattern("cms", rf"/admin/pages/{p.page}/unpublish/")
        listed, opened = form_goals(p)
        return (
            listed,
            Goal(opened.text, any_of(opened.met, visited(question))),
            Goal("The question whether to unpublish the page is open", visited(question)),
            Goal("The page is a draft", changed("cms", PAGE, id=p.page, live=0)),
        )

    def outcome(self, p: InPage) -> Outcome:
        to = {"live": 0, "has_unpublished_changes": 1}
        return Outcome(
            changes={"cms": (Updated(PAGE, {"id": p.page}, to, allowed=STAMPS),)}, allowed={"cms": revisions(p.page)}
        )

    async def solve(self, driver: PageDriver, p: InPage) -> str | None:
        await open_form(driver, p.title)
        await driver.click("button", "Actions")
        await driver.click("link", "Unpublish")
        await driver.click("button", "Yes, unpublish it")
        return None


@dataclass(frozen=True)
class Scheduled(InPage):
    day: str
    shown: str


DAYS = (("2026-03-20", "20 March 2026"), ("2026-04-01", "1 April 2026"), ("2026-04-17", "17 April 2026"))


class Schedule(Template[Scheduled]):
    name = "cms-schedule"
    sites = ("cms",)
    category = "cms"
    kind = "configuration"
    difficulty = "hard"
    start = IN_ADMIN
    wordings = (
        'Schedule the draft "{title}" to be published on {shown} at 09:00.',
        'Let the page "{title}" go live by itself at 9 am on {shown}; it must not be published before.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Scheduled]:
        return [row.into(Scheduled, day=day, shown=shown) for row in pages(golden, DRAFT) for day, shown in DAYS]

    def milestones(self, p: Scheduled) -> Milestones:
        planned = {"object_id": str(p.page), "approved_go_live_at": f"{p.day} 09:00:00"}
        return (
            *form_goals(p),
            Goal("The form was sent", sent(p.form)),
            Goal(f"The page is to go live on {p.shown}", changed("cms", REVISION, was=None, **planned)),
        )

    def outcome(self, p: Scheduled) -> Outcome:
        when = f"{p.day} 09:00:00"
        plan = Inserted(REVISION, {"object_id": str(p.page), "approved_go_live_at": when})
        page = Updated(
            PAGE, {"id": p.page}, {"live": 0, "go_live_at": when}, allowed=(*STAMPS, "has_unpublished_changes")
        )
        draft = Inserted(REVISION, {"object_id": str(p.page), "approved_go_live_at": None})
        return Outcome(changes={"cms": (plan, page)}, allowed={"cms": (draft,)})

    async def solve(self, driver: PageDriver, p: Scheduled) -> str | None:
        await open_form(driver, p.title)
        if not await driver.has("button", "Set schedule"):
            await driver.click("button", "Toggle status")
        await driver.click("button", "Set schedule")
        await driver.type("textbox", "Go live date/time", f"{p.day} 09:00")
        await driver.press("Tab")  # the calendar covers the button; leaving both fields closes it
        await driver.press("Tab")
        if re.search(r'button "Save schedule".* focused', await driver.text()):
            await driver.press("Enter")  # the calendar may close slowly
        else:
            await driver.click("button", "Save schedule")
        await wait_for(driver, "button", "More actions")
        await driver.click("button", "More actions")
        await driver.click("button", "Schedule to publish")
        return None


@dataclass(frozen=True)
class NewArticle(Params):
    section: str
    parent: int
    children: int
    path: str
    new: str
    day: str
    shown: str
    author: str
    summary: str


SUMMARIES = (
    "A short history in seven objects.",
    "What we learned, and what we still do not know.",
    "An afternoon with the people who keep the house running.",
)


def below(path: str) -> Test:
    """Tests for the path of a child page of *path*."""
    return lambda value: isinstance(value, str) and value.startswith(path) and value.count("/") == path.count("/") + 1


class CreateArticle(Template[NewArticle]):
    name = "cms-create-article"
    sites = ("cms",)
    category = "cms"
    kind = "content"
    difficulty = "hard"
    start = IN_ADMIN
    wordings = (
        'Add and publish an article page in {section}. Title: "{new}"; date: {shown}; author: {author};'
        ' summary: "{summary}"',
        'Write a new article called "{new}" below {section}, dated {shown}, by {author}, with the summary "{summary}",'
        " and publish it. Body and picture stay empty.",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[NewArticle]:
        sections = golden.database("cms").rows(
            f"SELECT title, id, numchild, url_path FROM {PAGE}"
            " WHERE depth = 3 AND title IN ('News', 'Exhibitions', 'Collection') ORDER BY id"
        )
        return [
            NewArticle(section, page, children, path, new, day, shown, rng.choice(AUTHORS), rng.choice(SUMMARIES))
            for section, page, children, path in sections
            for new in TITLES
            for day, shown in DAYS[:2]
        ]

    def milestones(self, p: NewArticle) -> Milestones:
        form = PagePattern("cms", rf"/admin/pages/add/website/articlepage/{p.parent}/")
        lists = visited(PagePattern("cms", rf"/admin/pages/({p.parent}/.*)?"))
        listed = any_of(lists, title_searched(r"/admin/pages/search/(results/)?", "q", p.section), visited(form))
        return (
            Goal(f"{p.section} is found in the admin", listed),
            Goal("The form for a new article is open", visited(form)),
            Goal("An article with this title is saved", changed("cms", PAGE, draft_title=p.new)),
            Goal("The article is live", changed("cms", PAGE, title=p.new, live=1)),
        )

    def outcome(self, p: NewArticle) -> Outcome:
        page = {"title": p.new, "live": 1, "has_unpublished_changes": 0, "url_path": below(p.path)}
        article = {"published": p.day, "author": p.author, "summary": p.summary, "body": "", "picture_id": None}
        section = Updated(PAGE, {"id": p.parent}, {"numchild": p.children + 1})
        return Outcome(
            changes={"cms": (Inserted(PAGE, page), Inserted(ARTICLE, article), section)},
            allowed={"cms": (Inserted(REVISION, {}),)},
        )

    async def solve(self, driver: PageDriver, p: NewArticle) -> str | None:
        await driver.type("textbox", "Search", p.section, enter=True)
        await driver.click("button", f"More options for '{p.section}'")
        await driver.click("link", "Add child page")
        await driver.click("link", "Article page")
        await wait_for(driver, "textbox", "Title*")
        await driver.type("textbox", "Title*", p.new)
        await driver.type("textbox", "Date*", p.day)
        await driver.type("textbox", "Author*", p.author)
        await driver.type("textbox", "Summary*", p.summary)
        await publish(driver)
        return None


EDITING: tuple[Template[Any], ...] = (
    EditTitle(),
    EditEvent(),
    PublishDraft(),
    Unpublish(),
    Schedule(),
    CreateArticle(),
)
