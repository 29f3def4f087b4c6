"""Shared parts of the forum's templates: table names, noise, topic queries, milestones and driver steps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from envs.suites.sites.changes import Expected, Inserted, Noise, Updated
from envs.suites.sites.evidence import Evidence, PagePattern
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.page_driver import PageDriver, Unsolvable
from envs.suites.sites.requests import Request
from envs.suites.sites.templates import Check, Goal, GoldenStates, Params, visited

TOPIC = "spirit_topic_topic"
COMMENT = "spirit_comment_comment"
LIKE = "spirit_comment_like_commentlike"
NOTIFICATION = "spirit_topic_notification_topicnotification"
PRIVATE_CATEGORY = 1
PER_PAGE = 20
"""Comments on one page of a topic."""
MEMBER = "robin_hale"
MODERATOR = "sam_ellery"

NOISE = Noise(
    tables=frozenset({"django_session", "spirit_comment_bookmark_commentbookmark", "spirit_topic_unread_topicunread"}),
    columns={
        TOPIC: frozenset({"view_count"}),
        NOTIFICATION: frozenset({"is_read"}),
        "spirit_user_userprofile": frozenset({"last_seen", "last_ip", "last_post_hash", "last_post_on"}),
        "auth_user": frozenset({"last_login"}),
    },
)
"""Reading marks a topic as read, bookmarks its page and counts the view."""

FOLLOWS: tuple[Expected, ...] = (
    Inserted(NOTIFICATION, {}),
    Updated(NOTIFICATION, {}, {}, allowed=("comment_id", "date", "action", "is_read")),
)
"""A member who takes part in a topic gets notifications of later comments."""


AS_MODERATOR: Mapping[SiteName, str] = {"forum": "moderator"}


@dataclass(frozen=True)
class InTopic(Params):
    """A task inside one topic."""

    topic: int
    title: str
    category: int

    @property
    def page(self) -> PagePattern:
        """The topic's page."""
        return PagePattern("forum", rf"/topic/{self.topic}/[^/]+/")


T = TypeVar("T", bound=InTopic)


class TopicRow(NamedTuple):
    """A public topic of the golden state."""

    topic: int
    title: str
    category: int
    comments: int
    """Number of comments, including the opening one."""

    def into(self, kind: type[T], **more: Any) -> T:
        """Task parameters of type *kind* in this topic."""
        return kind(topic=self.topic, title=self.title, category=self.category, **more)


def topics(golden: GoldenStates, where: str = "1", *values: str | int) -> tuple[TopicRow, ...]:
    """Public topics that match the SQL condition on `t`, ordered by id."""
    rows = golden.database("forum").rows(
        f"SELECT t.id, t.title, t.category_id, t.comment_count FROM {TOPIC} t"
        f" WHERE t.category_id <> {PRIVATE_CATEGORY} AND ({where}) ORDER BY t.id",
        *values,
    )
    return tuple(TopicRow(*row) for row in rows)


def user_id(golden: GoldenStates, username: str) -> int:
    return int(golden.database("forum").value("SELECT id FROM auth_user WHERE username = ?", username))


def topic_searched(p: InTopic) -> Check:
    """Checks that a list with the topic was shown: its category, or a search for words of its title."""

    def lists_it(request: Request) -> bool:
        words = (request.argument("q") or "").casefold().split()
        searched = request.path == "/search/" and bool(words) and all(word in p.title.casefold() for word in words)
        return request.status == 200 and (
            searched or re.fullmatch(rf"/category/{p.category}/.*", request.path) is not None
        )

    def check(evidence: Evidence) -> bool:
        return any(lists_it(request) for request in evidence.sites["forum"].requests)

    return check


def topic_goals(p: InTopic) -> tuple[Goal, Goal]:
    """The first two milestones of tasks in a topic."""
    return (
        Goal(f'A list with "{p.title}" is open', topic_searched(p)),
        Goal(f'The topic "{p.title}" is open', visited(p.page)),
    )


async def open_topic(driver: PageDriver, title: str) -> None:
    """Searches for a topic and opens it: three actions."""
    await driver.click("link", "search")
    await driver.type("searchbox", "Search:", title, enter=True)
    await driver.click("link", title)


async def click_below(driver: PageDriver, text: str, name: re.Pattern[str]) -> None:
    """Clicks the first link of this name below the line that contains *text*."""
    page = (await driver.observe()).text
    if text not in page:
        raise Unsolvable(f"{text!r} is not on the page")
    above = page[: page.index(text)]
    links = re.findall(r'\] link "((?:[^"\\]|\\.)*)"', above)
    await driver.click("link", name, nth=sum(name.search(link) is not None for link in links))


class ShownComment(NamedTuple):
    """A comment as a page shows it."""

    author: str
    likes: int


_COMMENT_PATTERN = re.compile(
    r'^\[\d+\] link "([a-z]+_[a-z]+)(?: Original Poster)?"$[\s\S]*?(?:like \((\d+)\)"|^\((\d+)\)$)', re.MULTILINE
)


def comments_on(page: str) -> Sequence[ShownComment]:
    """The comments on a topic's page, in order. Raises Unsolvable if there are none."""
    body = page.partition("\n# ")[2]
    comments = [ShownComment(match[1], int(match[2] or match[3])) for match in _COMMENT_PATTERN.finditer(body)]
    if not comments:
        raise Unsolvable("the page shows no comments")
    return comments


def full_date(shown: str) -> str:
    """A date with its full year. The page shows `4 May '25`, or `4 May` in the current year."""
    return re.sub(r"'(\d\d)$", r"20\1", shown) if "'" in shown else f"{shown} 2026"
