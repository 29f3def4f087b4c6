"""Shared parts of the CMS templates: table names, noise, page queries, milestones and driver steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from envs.core.actions import Wait
from envs.suites.sites.changes import Expected, Inserted, Noise, Updated
from envs.suites.sites.evidence import Evidence, PagePattern
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.requests import Request
from envs.suites.sites.templates import Check, Goal, GoldenStates, Milestones, Params, any_of, shows, visited

PAGE = "wagtailcore_page"
REVISION = "wagtailcore_revision"
EVENT = "website_eventpage"
ARTICLE = "website_articlepage"
IN_ADMIN: Mapping[SiteName, str] = {"cms": "/admin/"}

NOISE = Noise(
    tables=frozenset(
        {
            "django_session",
            "wagtailadmin_editingsession",
            "wagtailadmin_formstate",
            "wagtailcore_modellogentry",
            "wagtailcore_pagelogentry",
            "wagtailcore_pagesubscription",
            "wagtailcore_referenceindex",
            "wagtailimages_rendition",
            "wagtailsearch_indexentry",
            "wagtailusers_userprofile",
        }
    ),
    columns={"auth_user": frozenset({"last_login"})},
)
"""Logs, indexes and image renditions follow from other rows. Opening a form stores an editing session."""

STAMPS = (
    "draft_title",
    "first_published_at",
    "last_published_at",
    "latest_revision_created_at",
    "latest_revision_id",
    "live_revision_id",
)
"""Columns of a page that a new revision sets."""


@dataclass(frozen=True)
class InPage(Params):
    """A task about one page."""

    page: int
    title: str
    section: str
    """Title of its parent page."""
    parent: int

    @property
    def form(self) -> PagePattern:
        """The page's edit form."""
        return PagePattern("cms", rf"/admin/pages/{self.page}/edit/")


T = TypeVar("T", bound=InPage)


class PageRow(NamedTuple):
    """A page below a section, in the golden state."""

    page: int
    title: str
    section: str
    parent: int
    path: str
    """Its path on the public site."""

    def into(self, kind: type[T], **more: Any) -> T:
        """Task parameters of type *kind* about this page."""
        return kind(page=self.page, title=self.title, section=self.section, parent=self.parent, **more)


LIVE = "p.live AND NOT p.has_unpublished_changes"
DRAFT = (
    "NOT p.live AND p.go_live_at IS NULL AND NOT EXISTS"
    " (SELECT 1 FROM wagtailcore_workflowstate w WHERE w.object_id = CAST(p.id AS TEXT))"
)


def pages(golden: GoldenStates, where: str) -> tuple[PageRow, ...]:
    """Pages below the sections that match the SQL condition on `p` (the page) and `s` (its section), ordered by id."""
    rows = golden.database("cms").rows(
        f"SELECT p.id, p.title, s.title, s.id, substr(p.url_path, 6) FROM {PAGE} p"
        f" JOIN {PAGE} s ON s.path = substr(p.path, 1, length(p.path) - 4)"
        f" WHERE p.depth = 4 AND ({where}) ORDER BY p.id"
    )
    return tuple(PageRow(*row) for row in rows)


def revisions(page: int) -> tuple[Expected, ...]:
    """Allowed changes of this page's revisions: drafts may be saved before publishing."""
    own = {"object_id": str(page)}
    return Inserted(REVISION, own), Updated(REVISION, own, {}, allowed=("approved_go_live_at", "content"))


def page_stamps(page: int) -> Updated:
    """The allowed change of a page's row when a new revision is published."""
    return Updated(PAGE, {"id": page}, {}, allowed=STAMPS)


def title_searched(path: str, argument: str, title: str) -> Check:
    """Checks that words of *title* were searched for."""

    def searches(request: Request) -> bool:
        words = (request.argument(argument) or "").casefold().split()
        return (
            request.status == 200
            and re.fullmatch(path, request.path) is not None
            and bool(words)
            and all(word in title.casefold() for word in words)
        )

    def check(evidence: Evidence) -> bool:
        return any(searches(request) for request in evidence.sites["cms"].requests)

    return check


def listed_in_admin(title: str, parent: int) -> Check:
    """Checks that the admin showed a list that contains this page."""
    listed = visited(PagePattern("cms", rf"/admin/pages/{parent}/(results/)?"))
    return any_of(title_searched(r"/admin/pages/search/(results/)?", "q", title), listed)


def form_goals(p: InPage) -> tuple[Goal, Goal]:
    """The first two milestones of tasks that edit a page."""
    return (
        Goal(f'"{p.title}" is found in the admin', any_of(listed_in_admin(p.title, p.parent), visited(p.form))),
        Goal(f'The form of "{p.title}" is open', visited(p.form)),
    )


def reading_milestones(title: str, path: str) -> Milestones:
    """The milestones of a question that one page of the public site answers."""
    page = PagePattern("cms", re.escape(path))
    section = PagePattern("cms", re.escape(path.rsplit("/", 2)[0] + "/"))
    listed = any_of(visited(section), title_searched("/search/", "query", title))
    return (
        Goal("A section or the search is open", visited(PagePattern("cms", r"/\w+/"))),
        Goal(f'A list with "{title}" is open', listed),
        Goal(f'"{title}" was opened', visited(page)),
        Goal(f'"{title}" is shown', shows(page)),
    )


async def open_form(driver: PageDriver, title: str) -> None:
    """Opens a page's edit form from any page of the admin: two actions, more if the server is slow."""
    await driver.type("textbox", "Search", title, enter=True)
    await wait_for(driver, "link", title)
    await driver.click("link", title)
    await wait_for(driver, "textbox", "Title*")


async def wait_for(driver: PageDriver, role: str, name: str, *, row: str | None = None) -> None:
    """Waits until a control appears, for at most three wait actions."""
    for _ in range(3):
        if await driver.has(role, name, row=row):
            return
        await driver.act(Wait())


async def choose(driver: PageDriver, title: str) -> None:
    """Selects the page in the open chooser and waits until the chooser is closed."""
    await wait_for(driver, "link", title)
    await driver.click("link", title)
    for _ in range(3):
        if not await driver.has("button", "Close"):
            return
        await driver.act(Wait())


async def publish(driver: PageDriver) -> None:
    """Publishes the open form: two actions."""
    await driver.click("button", "More actions")
    await driver.click("button", "Publish")
