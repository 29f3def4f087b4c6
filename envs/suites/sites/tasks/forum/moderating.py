"""Forum tasks of a moderator."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envs.suites.sites.changes import Inserted, SqlValue, Updated
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.forum.shared import (
    AS_MODERATOR,
    COMMENT,
    MODERATOR,
    PER_PAGE,
    PRIVATE_CATEGORY,
    TOPIC,
    InTopic,
    click_below,
    open_topic,
    topic_goals,
    topics,
    user_id,
)
from envs.suites.sites.tasks.forum.writing import OneComment, single_comments
from envs.suites.sites.templates import (
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    all_of,
    changed,
    sent,
    visited,
)

SAMPLE = 150
MOVED, CLOSED, PINNED = 1, 2, 4
"""`action` of the comment that Spirit adds to a moderated topic."""


@dataclass(frozen=True)
class Moderated(InTopic):
    user: int


class OneClick(Template[Moderated]):
    """Closes or pins a topic through its moderation menu."""

    sites = ("forum",)
    category = "forum"
    kind = "configuration"
    difficulty = "medium"
    personas = AS_MODERATOR
    link: str
    path: str
    column: str
    action: int

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Moderated]:
        moderator = user_id(golden, MODERATOR)
        rows = topics(golden, f"NOT t.{self.column} AND t.comment_count <= {PER_PAGE}")
        return [row.into(Moderated, user=moderator) for row in rng.sample(rows, SAMPLE)]

    def milestones(self, p: Moderated) -> Milestones:
        where = PagePattern("forum", rf"/topic/moderate/{self.path}/{p.topic}/")
        mark: dict[str, SqlValue] = {"id": p.topic, self.column: 1}
        return (
            *topic_goals(p),
            Goal("The moderation was sent", sent(where)),
            Goal("The topic has its mark", changed("forum", TOPIC, was=None, **mark)),
        )

    def outcome(self, p: Moderated) -> Outcome:
        marked = Updated(TOPIC, {"id": p.topic}, {self.column: 1}, allowed=("reindex_at",))
        notice = Inserted(COMMENT, {"topic_id": p.topic, "user_id": p.user, "action": self.action})
        return Outcome(changes={"forum": (marked, notice)})

    async def solve(self, driver: PageDriver, p: Moderated) -> str | None:
        await open_topic(driver, p.title)
        await driver.click("link", "Moderate")
        await driver.click("link", self.link)
        return None


class CloseTopic(OneClick):
    name = "forum-close-topic"
    wordings = (
        'Close the topic "{title}" so that nobody can reply any more.',
        'The discussion "{title}" has run its course: close it.',
    )
    link, path, column, action = "Close topic", "lock", "is_closed", CLOSED


class PinTopic(OneClick):
    name = "forum-pin-topic"
    wordings = (
        'Pin the topic "{title}" in its category (not globally).',
        'Keep "{title}" at the top of its own category by pinning it there.',
    )
    link, path, column, action = "Pin topic", "pin", "is_pinned", PINNED


@dataclass(frozen=True)
class Moved(Moderated):
    target: int
    place: str


def _places(golden: GoldenStates) -> tuple[tuple[Any, ...], ...]:
    return golden.database("forum").rows(
        f"SELECT id, title FROM spirit_category_category WHERE id <> {PRIVATE_CATEGORY} ORDER BY id"
    )


async def _move(driver: PageDriver, title: str, place: str) -> None:
    """Moves a topic to another category: six actions."""
    await open_topic(driver, title)
    await driver.click("link", "edit", row=f"# {title}")
    nested = f'"--- {place}"' in await driver.text()
    await driver.select("combobox", "Category:", f"--- {place}" if nested else place)
    await driver.click("button", "Update")


def _moved(topic: int, user: int, target: int) -> tuple[Updated, Inserted]:
    return (
        Updated(TOPIC, {"id": topic}, {"category_id": target}, allowed=("reindex_at",)),
        Inserted(COMMENT, {"topic_id": topic, "user_id": user, "action": MOVED}),
    )


class MoveTopic(Template[Moved]):
    name = "forum-move-topic"
    sites = ("forum",)
    category = "forum"
    kind = "configuration"
    difficulty = "medium"
    personas = AS_MODERATOR
    wordings = (
        'Move the topic "{title}" to the category {place}.',
        '"{title}" is in the wrong place; it belongs in {place}. Please move it there.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Moved]:
        moderator, places = user_id(golden, MODERATOR), _places(golden)
        moves: list[Moved] = []
        for row in rng.sample(topics(golden, f"t.comment_count <= {PER_PAGE}"), SAMPLE):
            target, place = rng.choice([place for place in places if place[0] != row.category])
            moves.append(row.into(Moved, user=moderator, target=target, place=place))
        return moves

    def milestones(self, p: Moved) -> Milestones:
        return (
            *topic_goals(p),
            Goal("The form of the topic is open", visited(PagePattern("forum", rf"/topic/update/{p.topic}/"))),
            Goal(f"The topic is in {p.place}", changed("forum", TOPIC, id=p.topic, category_id=p.target)),
        )

    def outcome(self, p: Moved) -> Outcome:
        return Outcome(changes={"forum": _moved(p.topic, p.user, p.target)})

    async def solve(self, driver: PageDriver, p: Moved) -> str | None:
        await _move(driver, p.title, p.place)
        return None


@dataclass(frozen=True)
class TwoMoved(Params):
    first: InTopic
    second: InTopic
    title: str
    other: str
    user: int
    target: int
    place: str


class MoveTwo(Template[TwoMoved]):
    name = "forum-move-two-topics"
    sites = ("forum",)
    category = "forum"
    kind = "configuration"
    difficulty = "hard"
    personas = AS_MODERATOR
    wordings = (
        'Move both "{title}" and "{other}" to the category {place}.',
        'Two topics belong in {place}: "{title}" and "{other}". Move them there.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[TwoMoved]:
        moderator, places = user_id(golden, MODERATOR), _places(golden)
        rows = rng.sample(topics(golden, f"t.comment_count <= {PER_PAGE}"), SAMPLE)
        moves: list[TwoMoved] = []
        for first, second in zip(rows[::2], rows[1::2], strict=False):
            target, place = rng.choice([place for place in places if place[0] not in (first.category, second.category)])
            moves.append(
                TwoMoved(first.into(InTopic), second.into(InTopic), first.title, second.title, moderator, target, place)
            )
        return moves

    def milestones(self, p: TwoMoved) -> Milestones:
        first = changed("forum", TOPIC, id=p.first.topic, category_id=p.target)
        second = changed("forum", TOPIC, id=p.second.topic, category_id=p.target)
        return (
            Goal(f'The topic "{p.title}" is open', visited(p.first.page)),
            Goal(f'"{p.title}" is in {p.place}', first),
            Goal(f'The topic "{p.other}" is open', visited(p.second.page)),
            Goal(f"Both topics are in {p.place}", all_of(first, second)),
        )

    def outcome(self, p: TwoMoved) -> Outcome:
        first = _moved(p.first.topic, p.user, p.target)
        return Outcome(changes={"forum": (*first, *_moved(p.second.topic, p.user, p.target))})

    async def solve(self, driver: PageDriver, p: TwoMoved) -> str | None:
        await _move(driver, p.title, p.place)
        await _move(driver, p.other, p.place)
        return None


class DeleteComment(Template[OneComment]):
    name = "forum-delete-comment"
    sites = ("forum",)
    category = "forum"
    kind = "content"
    difficulty = "easy"
    personas = AS_MODERATOR
    wordings = (
        'Delete the comment by {author} in the topic "{title}"; leave the rest as it is.',
        '{author} has asked us to remove what they wrote in "{title}". Please delete that comment.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[OneComment]:
        return rng.sample([comment for comment in single_comments(golden) if comment.author != MODERATOR], SAMPLE)

    def milestones(self, p: OneComment) -> Milestones:
        return (
            *topic_goals(p),
            Goal("A comment was deleted", sent(PagePattern("forum", r"/comment/\d+/delete/"))),
            Goal(f"The deleted comment is {p.author}'s", changed("forum", COMMENT, id=p.comment, is_removed=1)),
        )

    def outcome(self, p: OneComment) -> Outcome:
        return Outcome(changes={"forum": (Updated(COMMENT, {"id": p.comment}, {"is_removed": 1}),)})

    async def solve(self, driver: PageDriver, p: OneComment) -> str | None:
        await open_topic(driver, p.title)
        await click_below(driver, p.text, re.compile("^delete$"))
        return None


@dataclass(frozen=True)
class Flagged(Params):
    topic: int
    title: str
    comment: int
    flag: int
    author: str
    user: int


class HandleFlag(Template[Flagged]):
    name = "forum-handle-flag"
    sites = ("forum",)
    category = "forum"
    kind = "configuration"
    difficulty = "hard"
    personas = AS_MODERATOR
    wordings = (
        'A comment in "{title}" was flagged. Delete the flagged comment and mark the flag as closed.',
        'Deal with the open flag on a comment in the topic "{title}": remove the comment, then close the flag.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Flagged]:
        rows = golden.database("forum").rows(
            f"SELECT t.id, t.title, c.id, f.id, u.username FROM spirit_comment_flag_commentflag f"
            f" JOIN {COMMENT} c ON c.id = f.comment_id JOIN {TOPIC} t ON t.id = c.topic_id"
            " JOIN auth_user u ON u.id = c.user_id WHERE NOT f.is_closed ORDER BY f.id"
        )
        moderator = user_id(golden, MODERATOR)
        return [Flagged(*row, user=moderator) for row in rows]

    def milestones(self, p: Flagged) -> Milestones:
        flag = "spirit_comment_flag_commentflag"
        removed = changed("forum", COMMENT, id=p.comment, is_removed=1)
        return (
            Goal("The list of flags is open", visited(PagePattern("forum", r"/st/admin/comment/flag/(opened/)?"))),
            Goal(
                f'The flag in "{p.title}" is open', visited(PagePattern("forum", rf"/st/admin/comment/flag/{p.flag}/"))
            ),
            Goal("The comment is deleted", removed),
            Goal("The flag is closed", all_of(removed, changed("forum", flag, id=p.flag, is_closed=1))),
        )

    def outcome(self, p: Flagged) -> Outcome:
        closed = Updated("spirit_comment_flag_commentflag", {"id": p.flag}, {"is_closed": 1, "moderator_id": p.user})
        return Outcome(changes={"forum": (Updated(COMMENT, {"id": p.comment}, {"is_removed": 1}), closed)})

    async def solve(self, driver: PageDriver, p: Flagged) -> str | None:
        await driver.click("link", MODERATOR)
        await driver.click("link", "Admin")
        await driver.click("link", "Show menu")
        await driver.click("link", "Flags")
        await click_below(driver, f'link "{p.title}"', re.compile("^moderate$"))
        await driver.click("link", "delete")
        await driver.back()
        await driver.click("checkbox", "Is closed:")
        await driver.click("button", "Save")
        return None


@dataclass(frozen=True)
class Described(Params):
    target: int
    place: str
    text: str


DESCRIPTIONS = (
    "Please search before you ask.",
    "Moderated by volunteers.",
    "One topic per question, please.",
    "For everything that fits nowhere else in here.",
)


class DescribeCategory(Template[Described]):
    name = "forum-describe-category"
    sites = ("forum",)
    category = "forum"
    kind = "configuration"
    difficulty = "medium"
    personas = AS_MODERATOR
    wordings = (
        "Change the description of the category {place} to: {text}",
        "In the forum's administration, give the category {place} this description: {text}",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Described]:
        return [Described(target, place, text) for target, place in _places(golden) for text in DESCRIPTIONS]

    def milestones(self, p: Described) -> Milestones:
        form = PagePattern("forum", rf"/st/admin/category/update/{p.target}/")
        return (
            Goal("The administration is open", visited(PagePattern("forum", r"/st/admin/.*"))),
            Goal("The list of categories is open", visited(PagePattern("forum", r"/st/admin/category/"))),
            Goal(f"The form of {p.place} is open", visited(form)),
            Goal("The description is changed", changed("forum", "spirit_category_category", description=p.text)),
        )

    def outcome(self, p: Described) -> Outcome:
        edited = Updated("spirit_category_category", {"id": p.target}, {"description": p.text}, allowed=("reindex_at",))
        return Outcome(changes={"forum": (edited,)})

    async def solve(self, driver: PageDriver, p: Described) -> str | None:
        await driver.click("link", MODERATOR)
        await driver.click("link", "Admin")
        await driver.click("link", "Show menu")
        await driver.click("link", "Categories")
        await click_below(driver, f'link "{p.place}"', re.compile("^edit$"))
        await driver.type("textbox", re.compile("[Dd]escription"), p.text)
        await driver.click("button", "Save")
        return None


MODERATING: tuple[Template[Any], ...] = (
    CloseTopic(),
    PinTopic(),
    MoveTopic(),
    MoveTwo(),
    DeleteComment(),
    HandleFlag(),
    DescribeCategory(),
)
