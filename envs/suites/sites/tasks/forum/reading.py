"""Forum tasks that open topics and look up facts."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from envs.suites.sites.answers import Day, Number, Text
from envs.suites.sites.clock import TODAY
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver, Unsolvable
from envs.suites.sites.tasks.forum.shared import (
    COMMENT,
    PER_PAGE,
    TOPIC,
    InTopic,
    comments_on,
    full_date,
    open_topic,
    topic_goals,
    topics,
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

SAMPLE = 200
"""Largest number of instances of a template that could have one per topic."""


class OpenTopic(Template[InTopic]):
    name = "forum-open-topic"
    sites = ("forum",)
    category = "forum"
    kind = "navigation"
    difficulty = "easy"
    wordings = (
        'Open the topic "{title}".',
        'Take me to the discussion called "{title}".',
        'I want to read "{title}" on the forum; please bring it up.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[InTopic]:
        return [row.into(InTopic) for row in rng.sample(topics(golden), SAMPLE)]

    def milestones(self, p: InTopic) -> Milestones:
        listed, opened = topic_goals(p)
        searched = visited(PagePattern("forum", r"/search/|/category/.*"))
        return (
            Goal("The search or a category is open", searched),
            listed,
            opened,
            Goal(f'The topic "{p.title}" is shown', shows(p.page)),
        )

    def outcome(self, p: InTopic) -> Outcome:
        return Outcome(page=p.page)

    async def solve(self, driver: PageDriver, p: InTopic) -> str | None:
        await open_topic(driver, p.title)
        return None


class Question(Template[InTopic]):
    """Asks a question that a topic's page answers."""

    sites = ("forum",)
    category = "forum"
    kind = "information"
    difficulty = "easy"

    def milestones(self, p: InTopic) -> Milestones:
        listed, opened = topic_goals(p)
        searched = visited(PagePattern("forum", r"/search/|/category/.*"))
        return (
            Goal("The search or a category is open", searched),
            listed,
            opened,
            Goal(f'The topic "{p.title}" is shown', shows(p.page)),
        )


@dataclass(frozen=True)
class Authored(InTopic):
    author: str
    full_name: str


class TopicAuthor(Question):
    name = "forum-topic-author"
    wordings = (
        'Who started the topic "{title}"? Answer with the username.',
        'I need the username of whoever opened "{title}".',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Authored]:
        rows = golden.database("forum").rows(
            f"SELECT t.id, u.username, u.first_name || ' ' || u.last_name FROM {TOPIC} t"
            " JOIN auth_user u ON u.id = t.user_id"
        )
        names = {topic: {"author": username, "full_name": full} for topic, username, full in rows}
        return [row.into(Authored, **names[row.topic]) for row in rng.sample(topics(golden), SAMPLE)]

    def outcome(self, p: InTopic) -> Outcome:
        assert isinstance(p, Authored)
        return Outcome(answer=Text(p.author, (p.full_name, f"@{p.author}")))

    async def solve(self, driver: PageDriver, p: InTopic) -> str | None:
        await open_topic(driver, p.title)
        return comments_on(await driver.text())[0].author


@dataclass(frozen=True)
class Dated(InTopic):
    day: date


class TopicDay(Question):
    name = "forum-topic-day"
    wordings = (
        'On which day was the topic "{title}" started? Answer with the full date, the year included.',
        'Tell me the date (day, month, year) of the first comment in "{title}".',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Dated]:
        days = dict(golden.database("forum").rows(f"SELECT id, date(date) FROM {TOPIC}"))
        dated = [row.into(Dated, day=date.fromisoformat(days[row.topic])) for row in topics(golden)]
        return rng.sample([topic for topic in dated if (TODAY - topic.day).days > 2], SAMPLE)

    def outcome(self, p: InTopic) -> Outcome:
        assert isinstance(p, Dated)
        return Outcome(answer=Day(p.day))

    async def solve(self, driver: PageDriver, p: InTopic) -> str | None:
        await open_topic(driver, p.title)
        return full_date(await driver.read(r"^(\d{1,2} [A-Z]\w{2}(?: '\d\d)?)$"))


@dataclass(frozen=True)
class Counted(InTopic):
    member: str
    count: int


class CommentsOfMember(Question):
    name = "forum-comments-of-member"
    wordings = (
        'How many comments did {member} write in the topic "{title}", the opening one included? Answer with a number.',
        'Count the posts by {member} in "{title}" and tell me the number.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Counted]:
        fitting = {row.topic: row for row in topics(golden, f"t.comment_count BETWEEN 3 AND {PER_PAGE}")}
        counts = golden.database("forum").rows(
            f"SELECT c.topic_id, u.username, count(*) FROM {COMMENT} c JOIN auth_user u ON u.id = c.user_id"
            " GROUP BY c.topic_id, u.username HAVING count(*) > 1 ORDER BY 1, 2"
        )
        return [
            fitting[topic].into(Counted, member=name, count=number)
            for topic, name, number in counts
            if topic in fitting
        ]

    def outcome(self, p: InTopic) -> Outcome:
        assert isinstance(p, Counted)
        return Outcome(answer=Number(p.count))

    async def solve(self, driver: PageDriver, p: InTopic) -> str | None:
        assert isinstance(p, Counted)
        await open_topic(driver, p.title)
        return str(sum(comment.author == p.member for comment in comments_on(await driver.text())))


class MostLiked(Question):
    name = "forum-most-liked"
    wordings = (
        'Who wrote the comment with the most likes in the topic "{title}"? Answer with the username.',
        'In "{title}" one comment is liked more than all others. Which user posted it?',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Authored]:
        comments: dict[int, list[tuple[int, str, str]]] = {}
        for topic, likes, *names in golden.database("forum").rows(
            f"SELECT c.topic_id, c.likes_count, u.username, u.first_name || ' ' || u.last_name FROM {COMMENT} c"
            " JOIN auth_user u ON u.id = c.user_id ORDER BY c.topic_id, c.likes_count DESC, c.id"
        ):
            comments.setdefault(topic, []).append((likes, names[0], names[1]))
        clear = {topic: best for topic, (best, *rest) in comments.items() if rest and best[0] > rest[0][0]}
        return [
            row.into(Authored, author=clear[row.topic][1], full_name=clear[row.topic][2])
            for row in topics(golden, f"t.comment_count BETWEEN 4 AND {PER_PAGE}")
            if row.topic in clear
        ]

    def outcome(self, p: InTopic) -> Outcome:
        assert isinstance(p, Authored)
        return Outcome(answer=Text(p.author, (p.full_name, f"@{p.author}")))

    async def solve(self, driver: PageDriver, p: InTopic) -> str | None:
        await open_topic(driver, p.title)
        return max(comments_on(await driver.text()), key=lambda comment: comment.likes).author


@dataclass(frozen=True)
class Polled(InTopic):
    poll: str
    end: str
    """`most` or `fewest`."""
    option: str


class PollEnd(Question):
    name = "forum-poll-leader"
    wordings = (
        'Which option of the poll "{poll}" in the topic "{title}" has the {end} votes so far?',
        'Look at the results of the poll "{poll}" (it is in "{title}"): which choice got the {end} votes?',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Polled]:
        rows = golden.database("forum").rows(
            "SELECT c.topic_id, p.title, h.description, h.vote_count FROM spirit_comment_poll_commentpollchoice h"
            " JOIN spirit_comment_poll_commentpoll p ON p.id = h.poll_id"
            f" JOIN {COMMENT} c ON c.id = p.comment_id ORDER BY c.topic_id, h.vote_count"
        )
        polls: dict[tuple[int, str], list[tuple[Any, ...]]] = {}
        for topic, poll, *choice in rows:
            polls.setdefault((topic, poll), []).append(tuple(choice))
        places = {row.topic: row for row in topics(golden)}
        ends: list[Polled] = []
        for (topic, poll), choices in polls.items():
            if choices[0][1] < choices[1][1]:
                ends.append(places[topic].into(Polled, poll=poll, end="fewest", option=choices[0][0]))
            if choices[-1][1] > choices[-2][1]:
                ends.append(places[topic].into(Polled, poll=poll, end="most", option=choices[-1][0]))
        return ends

    def outcome(self, p: InTopic) -> Outcome:
        assert isinstance(p, Polled)
        return Outcome(answer=Text(p.option))

    async def solve(self, driver: PageDriver, p: InTopic) -> str | None:
        assert isinstance(p, Polled)
        await open_topic(driver, p.title)
        if await driver.has("link", "Show results"):
            await driver.click("link", "Show results")
        shares = re.findall(r"^(.+), (\d+)%", await driver.text(), re.MULTILINE)
        if not shares:
            raise Unsolvable("the page shows no results of a poll")
        ordered = sorted(shares, key=lambda share: int(share[1]))
        return ordered[-1 if p.end == "most" else 0][0]


@dataclass(frozen=True)
class Joined(InTopic):
    author: str
    author_id: int
    day: date


class AuthorJoined(Template[Joined]):
    name = "forum-author-joined"
    sites = ("forum",)
    category = "forum"
    kind = "information"
    difficulty = "medium"
    wordings = (
        'Since when has the member who started "{title}" been with the forum? Give the full date with the year.',
        'Somebody opened the topic "{title}". On which day did that person join? Answer with day, month and year.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Joined]:
        rows = golden.database("forum").rows(
            f"SELECT t.id, u.username, u.id, date(u.date_joined) FROM {TOPIC} t JOIN auth_user u ON u.id = t.user_id"
        )
        people = {
            topic: {"author": username, "author_id": user, "day": date.fromisoformat(day)}
            for topic, username, user, day in rows
        }
        return [row.into(Joined, **people[row.topic]) for row in rng.sample(topics(golden), SAMPLE)]

    def milestones(self, p: Joined) -> Milestones:
        profile = PagePattern("forum", rf"/user/{p.author_id}/[^/]+/")
        return (
            *topic_goals(p),
            Goal(f"The profile of {p.author} was opened", all_of(visited(p.page), visited(profile))),
            Goal(f"The profile of {p.author} is shown", shows(profile)),
        )

    def outcome(self, p: Joined) -> Outcome:
        return Outcome(answer=Day(p.day))

    async def solve(self, driver: PageDriver, p: Joined) -> str | None:
        await open_topic(driver, p.title)
        author = comments_on(await driver.text())[0].author
        header = (await driver.text()).split("\n# ")[0].count(f'"{author}"')
        await driver.click("link", re.compile(rf"^{author}(?: Original Poster)?$"), nth=header)
        return full_date(await driver.read(r"Joined at\n(\d{1,2} [A-Z]\w{2} '\d\d)"))


@dataclass(frozen=True)
class Pair(Params):
    first: InTopic
    second: InTopic
    title: str
    other: str
    longer: str


class LongerTopic(Template[Pair]):
    name = "forum-longer-topic"
    sites = ("forum",)
    category = "forum"
    kind = "information"
    difficulty = "medium"
    wordings = (
        'Which topic has more comments, "{title}" or "{other}"? Answer with its title.',
        'Compare "{title}" with "{other}": give me the title of the one with the larger number of comments.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Pair]:
        rows = rng.sample(topics(golden), SAMPLE)
        pairs = zip(rows[::2], rows[1::2], strict=False)
        return [
            Pair(
                first=first.into(InTopic),
                second=second.into(InTopic),
                title=first.title,
                other=second.title,
                longer=max(first, second, key=lambda row: row.comments).title,
            )
            for first, second in pairs
            if first.comments != second.comments
        ]

    def milestones(self, p: Pair) -> Milestones:
        return *topic_goals(p.first), *topic_goals(p.second)

    def outcome(self, p: Pair) -> Outcome:
        return Outcome(answer=Text(p.longer))

    async def solve(self, driver: PageDriver, p: Pair) -> str | None:
        counts: dict[str, int] = {}
        for title in (p.title, p.other):
            await driver.click("link", "search")
            await driver.type("searchbox", "Search:", title, enter=True)
            counts[title] = int(await driver.read(rf'link "{re.escape(title)}"\n[^\n]+\n(\d+)$'))
            await driver.click("link", title)
        return max(counts, key=lambda title: counts[title])


READING: tuple[Template[Any], ...] = (
    OpenTopic(),
    TopicAuthor(),
    TopicDay(),
    CommentsOfMember(),
    MostLiked(),
    PollEnd(),
    AuthorJoined(),
    LongerTopic(),
)
