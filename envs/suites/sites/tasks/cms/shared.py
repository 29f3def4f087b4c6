"""What the CMS's templates have in common: tables, noise, the ways to a page."""

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
from envs.suites.sites.templates import Check, Goal, Milestones, Params, World, any_of, shows, visited

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
"""Logs, indexes and sizes of pictures follow from other rows; opening a form announces the editor."""

STAMPS = (
    "draft_title",
    "first_published_at",
    "last_published_at",
    "latest_revision_created_at",
    "latest_revision_id",
    "live_revision_id",
)
"""Columns of a page that a new revision of it sets."""


@dataclass(frozen=True)
class InPage(Params):
    """A task about one page."""

    page: int
    title: str
    section: str
    """Title of the page above it."""
    parent: int

    @property
    def form(self) -> PagePattern:
        return PagePattern("cms", rf"/admin/pages/{self.page}/edit/")


T = TypeVar("T", bound=InPage)


class PageRow(NamedTuple):
    """A page below a section, as the golden state has it."""

    page: int
    title: str
    section: str
    parent: int
    path: str
    """Its path on the public site."""

    def into(self, kind: type[T], **more: Any) -> T:
        """Parameters about this page."""
        return kind(page=self.page, title=self.title, section=self.section, parent=self.parent, **more)


LIVE = "p.live AND NOT p.has_unpublished_changes"
DRAFT = (
    "NOT p.live AND p.go_live_at IS NULL AND NOT EXISTS"
    " (SELECT 1 FROM wagtailcore_workflowstate w WHERE w.object_id = CAST(p.id AS TEXT))"
)


def pages(world: World, where: str) -> tuple[PageRow, ...]:
    """Pages below the sections that fit the SQL condition on `p` (the page) and `s` (its section), by id."""
    rows = world.database("cms").rows(
        f"SELECT p.id, p.title, s.title, s.id, substr(p.url_path, 6) FROM {PAGE} p"
        f" JOIN {PAGE} s ON s.path = substr(p.path, 1, length(p.path) - 4)"
        f" WHERE p.depth = 4 AND ({where}) ORDER BY p.id"
    )
    return tuple(PageRow(*row) for row in rows)


def revised(page: int) -> tuple[Expected, ...]:
    """Revisions of this page: saving a draft on the way to publishing it does no harm."""
    own = {"object_id": str(page)}
    return Inserted(REVISION, own), Updated(REVISION, own, {}, allowed=("approved_go_live_at", "content"))


def stamped(page: int) -> Updated:
    """The row of a page of which a new revision was published."""
    return Updated(PAGE, {"id": page}, {}, allowed=STAMPS)


def asked_for(path: str, argument: str, title: str) -> Check:
    """A search for words of *title* was made."""

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


def found_in_admin(title: str, parent: int) -> Check:
    """A list of the admin with this page was asked for."""
    listed = visited(PagePattern("cms", rf"/admin/pages/{parent}/(results/)?"))
    return any_of(asked_for(r"/admin/pages/search/(results/)?", "q", title), listed)


def way_to_form(p: InPage) -> tuple[Goal, Goal]:
    """The first two milestones of editing a page."""
    return (
        Goal(f'"{p.title}" is found in the admin', any_of(found_in_admin(p.title, p.parent), visited(p.form))),
        Goal(f'The form of "{p.title}" is open', visited(p.form)),
    )


def reading(title: str, path: str) -> Milestones:
    """Of a question that one page of the public site answers."""
    page = PagePattern("cms", re.escape(path))
    section = PagePattern("cms", re.escape(path.rsplit("/", 2)[0] + "/"))
    listed = any_of(visited(section), asked_for("/search/", "query", title))
    return (
        Goal("A section or the search is open", visited(PagePattern("cms", r"/\w+/"))),
        Goal(f'A list with "{title}" is open', listed),
        Goal(f'"{title}" was opened', visited(page)),
        Goal(f'"{title}" is in front', shows(page)),
    )


async def open_form(driver: PageDriver, title: str) -> None:
    """From any page of the admin, two actions where the server is not slow."""
    await driver.type("textbox", "Search", title, enter=True)
    await appears(driver, "link", title)
    await driver.click("link", title)
    await appears(driver, "textbox", "Title*")


async def appears(driver: PageDriver, role: str, name: str, *, row: str | None = None) -> None:
    """Waits for a control that the server or a script is still writing; an action a look, three at most."""
    for _ in range(3):
        if await driver.has(role, name, row=row):
            return
        await driver.act(Wait())


async def choose(driver: PageDriver, title: str) -> None:
    """Picks the page in the open chooser and waits until the chooser is gone."""
    await appears(driver, "link", title)
    await driver.click("link", title)
    for _ in range(3):
        if not await driver.has("button", "Close"):
            return
        await driver.act(Wait())


async def publish(driver: PageDriver) -> None:
    """Two actions."""
    await driver.click("button", "More actions")
    await driver.click("button", "Publish")
