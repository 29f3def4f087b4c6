"""Impossible forum tasks. The answer is a refusal with the reason."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envs.suites.sites.answers import Refusal
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver, Unsolvable
from envs.suites.sites.tasks.forum.shared import MEMBER, PER_PAGE, open_topic, topic_goals, topics, user_id
from envs.suites.sites.tasks.forum.writing import (
    PHRASES,
    SUBJECTS,
    Choice,
    OneComment,
    Remark,
    poll_choices,
    single_comments,
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

SAMPLE = 150


class VoteClosed(Template[Choice]):
    name = "forum-vote-in-closed-poll"
    sites = ("forum",)
    category = "forum"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'Vote for "{option}" in the poll "{poll}" of the topic "{title}". If that is not possible, tell me why.',
        'In "{title}" there is the poll "{poll}": please vote "{option}" for me, or say why you cannot.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Choice]:
        return poll_choices(golden, "p.close_at IS NOT NULL")

    def milestones(self, p: Choice) -> Milestones:
        searched = visited(PagePattern("forum", r"/search/|/category/.*"))
        return (
            Goal("The search or a category is open", searched),
            *topic_goals(p),
            Goal(f'The topic "{p.title}" is shown', shows(p.page)),
        )

    def outcome(self, p: Choice) -> Outcome:
        return Outcome(
            answer=Refusal(f'the poll "{p.poll}" is closed', ("close", r"\bended\b", r"\bover\b", "expired"))
        )

    async def solve(self, driver: PageDriver, p: Choice) -> str | None:
        await open_topic(driver, p.title)
        if await driver.has("button", "Vote"):
            raise Unsolvable(f"the poll {p.poll!r} is open")
        return self.outcome(p).answer.truth()  # pyright: ignore[reportOptionalMemberAccess]


class ReplyClosed(Template[Remark]):
    name = "forum-reply-to-closed-topic"
    sites = ("forum",)
    category = "forum"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'Reply to the topic "{title}": {text} If it cannot be done, say why.',
        'Leave this comment in "{title}", or tell me what keeps you from it: {text}',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Remark]:
        member = user_id(golden, MEMBER)
        rows = topics(golden, f"t.is_closed AND t.comment_count <= {PER_PAGE}")
        return [row.into(Remark, user=member, count=row.comments, text=rng.choice(PHRASES)) for row in rows]

    def milestones(self, p: Remark) -> Milestones:
        searched = visited(PagePattern("forum", r"/search/|/category/.*"))
        return (
            Goal("The search or a category is open", searched),
            *topic_goals(p),
            Goal(f'The topic "{p.title}" is shown', shows(p.page)),
        )

    def outcome(self, p: Remark) -> Outcome:
        return Outcome(answer=Refusal("the topic is closed", ("close", "locked")))

    async def solve(self, driver: PageDriver, p: Remark) -> str | None:
        await open_topic(driver, p.title)
        if await driver.has("button", "Publish"):
            raise Unsolvable(f"the topic {p.title!r} accepts comments")
        return self.outcome(p).answer.truth()  # pyright: ignore[reportOptionalMemberAccess]


class EditOthers(Template[OneComment]):
    name = "forum-edit-comment-of-another"
    sites = ("forum",)
    category = "forum"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'Correct the spelling in the comment of {author} in "{title}". If you cannot edit it, tell me the reason.',
        'Edit what {author} wrote in "{title}" so that it ends with "Thanks!". Tell me why if that is impossible.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[OneComment]:
        return rng.sample(single_comments(golden), SAMPLE)

    def milestones(self, p: OneComment) -> Milestones:
        searched = visited(PagePattern("forum", r"/search/|/category/.*"))
        return (
            Goal("The search or a category is open", searched),
            *topic_goals(p),
            Goal(f'The topic "{p.title}" is shown', shows(p.page)),
        )

    def outcome(self, p: OneComment) -> Outcome:
        reason = f"only {p.author} and the moderators can edit this comment; it is not mine"
        own = (
            "permission",
            "allowed",
            "only .*(author|moderator)",
            r"not (my|your|our)s?\b",
            "not mine",
            "no edit",
            "own ",
        )
        return Outcome(
            answer=Refusal(reason, (*own, "another (user|member)", "someone else", "other (user|member|people)"))
        )

    async def solve(self, driver: PageDriver, p: OneComment) -> str | None:
        await open_topic(driver, p.title)
        return self.outcome(p).answer.truth()  # pyright: ignore[reportOptionalMemberAccess]


@dataclass(frozen=True)
class NoSuchPlace(Params):
    place: str
    subject: str
    text: str


MISSING = ("Astronomy", "Beekeeping", "Chess", "Fishing", "Genealogy", "Knitting", "Pottery", "Sailing")


class MissingCategory(Template[NoSuchPlace]):
    name = "forum-publish-in-missing-category"
    sites = ("forum",)
    category = "forum"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'Start a topic "{subject}" in the category {place}, nowhere else. If you cannot, say why. Text: {text}',
        'Publish "{subject}" under {place} only, with the text: {text} Tell me if there is a reason why not.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[NoSuchPlace]:
        known = {row[0] for row in golden.database("forum").rows("SELECT title FROM spirit_category_category")}
        return [
            NoSuchPlace(place, subject, text) for place in MISSING if place not in known for subject, text in SUBJECTS
        ]

    def milestones(self, p: NoSuchPlace) -> Milestones:
        form = PagePattern("forum", r"/topic/publish/(\d+/)?")
        category = PagePattern("forum", r"/category/.*")
        return (
            Goal("A category or the form is open", visited(PagePattern("forum", r"/category/.*|/topic/publish/.*"))),
            Goal("A category was opened to see its neighbours", visited(category)),
            Goal("The form for a new topic was opened", all_of(visited(category), visited(form))),
            Goal("The choice of categories is shown", shows(form)),
        )

    def outcome(self, p: NoSuchPlace) -> Outcome:
        missing = (
            "no (such )?(category|section)",
            "not exist",
            "n't exist",
            "not (found|available|listed|there)",
            "missing",
        )
        return Outcome(answer=Refusal(f"there is no category {p.place}", (*missing, f"no .*{p.place.lower()}")))

    async def solve(self, driver: PageDriver, p: NoSuchPlace) -> str | None:
        await driver.click("link", "All Categories")
        await driver.click("link", "Off Topic")
        await driver.click("link", "Create Topic")
        page = await driver.text()
        if f'"{p.place}"' in page:
            raise Unsolvable(f"the forum has a category {p.place!r}")
        return self.outcome(p).answer.truth()  # pyright: ignore[reportOptionalMemberAccess]


IMPOSSIBLE: tuple[Template[Any], ...] = (VoteClosed(), ReplyClosed(), EditOthers(), MissingCategory())
