"""Forum tasks of an ordinary member: like, vote, reply, publish, edit, follow."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envs.suites.sites.changes import Inserted, Updated
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.forum.shared import (
    COMMENT,
    FOLLOWS,
    LIKE,
    MEMBER,
    NOTIFICATION,
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

SAMPLE = 200
PHRASES = (
    "Thank you, that settled it for me.",
    "Count me in, I will bring a lamp.",
    "Could somebody post a picture?",
    "I tried this on Sunday and it works.",
    "Please ask at the desk in Mill Row.",
    "Mine arrived today, in two pieces.",
    "The second answer is the right one.",
    "I will try it again in May.",
)
SUBJECTS = (
    ("Lost: green umbrella", "I left it on the number 9 tram on Friday. It has a wooden handle."),
    ("Looking for a quiet desk", "Two mornings a week would be enough. I bring my own lamp."),
    ("Who has a key to the shed?", "Mine broke in the lock this morning."),
    ("Questions about the new timetable", "Does anyone understand the footnotes?"),
    ("A small thank you", "To the person who returned my wallet: there is cake for you."),
    ("Advice for a beginner", "I started last week and already have three questions."),
)


@dataclass(frozen=True)
class OneComment(InTopic):
    user: int
    comment: int
    author: str
    likes: int
    text: str


def single_comments(golden: GoldenStates) -> list[OneComment]:
    """Comments by others in short topics (one page), each the only one of its author in the topic."""
    member = user_id(golden, MEMBER)
    fitting = {row.topic: row for row in topics(golden, f"t.comment_count BETWEEN 3 AND {PER_PAGE // 2}")}
    rows = golden.database("forum").rows(
        f"SELECT c.topic_id, c.id, u.username, c.likes_count, c.comment FROM {COMMENT} c"
        " JOIN auth_user u ON u.id = c.user_id WHERE c.user_id <> ?"
        f" AND NOT EXISTS (SELECT 1 FROM {LIKE} l WHERE l.comment_id = c.id AND l.user_id = ?)"
        f" AND NOT EXISTS (SELECT 1 FROM {COMMENT} o WHERE o.topic_id = c.topic_id AND o.id <> c.id"
        " AND (o.user_id = c.user_id OR o.comment = c.comment))"
        " AND instr(c.comment, char(10)) = 0 ORDER BY c.id",
        member,
        member,
    )
    return [
        fitting[topic].into(OneComment, user=member, comment=comment, author=author, likes=likes, text=text)
        for topic, comment, author, likes, text in rows
        if topic in fitting
    ]


class LikeComment(Template[OneComment]):
    name = "forum-like"
    sites = ("forum",)
    category = "forum"
    kind = "content"
    difficulty = "easy"
    wordings = (
        'Like the comment that {author} wrote in the topic "{title}".',
        'In "{title}", give {author}\'s comment a like.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[OneComment]:
        return rng.sample(single_comments(golden), SAMPLE)

    def milestones(self, p: OneComment) -> Milestones:
        return (
            *topic_goals(p),
            Goal("A like was given", sent(PagePattern("forum", r"/comment/like/\d+/create/"))),
            Goal(f"{p.author}'s comment is liked", changed("forum", LIKE, user_id=p.user, comment_id=p.comment)),
        )

    def outcome(self, p: OneComment) -> Outcome:
        like = Inserted(LIKE, {"user_id": p.user, "comment_id": p.comment})
        return Outcome(changes={"forum": (like, Updated(COMMENT, {"id": p.comment}, {"likes_count": p.likes + 1}))})

    async def solve(self, driver: PageDriver, p: OneComment) -> str | None:
        await open_topic(driver, p.title)
        await click_below(driver, p.text, re.compile(r"^like \("))
        return None


@dataclass(frozen=True)
class Choice(InTopic):
    user: int
    poll: str
    choice: int
    option: str
    votes: int


def poll_choices(golden: GoldenStates, where: str) -> list[Choice]:
    member = user_id(golden, MEMBER)
    places = {row.topic: row for row in topics(golden)}
    rows = golden.database("forum").rows(
        "SELECT c.topic_id, p.title, h.id, h.description, h.vote_count"
        " FROM spirit_comment_poll_commentpollchoice h"
        " JOIN spirit_comment_poll_commentpoll p ON p.id = h.poll_id"
        f" JOIN {COMMENT} c ON c.id = p.comment_id WHERE {where} ORDER BY h.id"
    )
    return [
        places[topic].into(Choice, user=member, poll=poll, choice=choice, option=option, votes=votes)
        for topic, poll, choice, option, votes in rows
    ]


class Vote(Template[Choice]):
    name = "forum-vote"
    sites = ("forum",)
    category = "forum"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Vote for "{option}" in the poll "{poll}" of the topic "{title}".',
        'There is a poll called "{poll}" in "{title}". Give my vote to "{option}".',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Choice]:
        return poll_choices(golden, "p.close_at IS NULL")

    def milestones(self, p: Choice) -> Milestones:
        voted = "spirit_comment_poll_commentpollvote"
        return (
            *topic_goals(p),
            Goal("A vote was sent", sent(PagePattern("forum", r"/comment/poll/.*vote/.*"))),
            Goal(f'The vote is for "{p.option}"', changed("forum", voted, voter_id=p.user, choice_id=p.choice)),
        )

    def outcome(self, p: Choice) -> Outcome:
        vote = Inserted("spirit_comment_poll_commentpollvote", {"voter_id": p.user, "choice_id": p.choice})
        count = Updated("spirit_comment_poll_commentpollchoice", {"id": p.choice}, {"vote_count": p.votes + 1})
        return Outcome(changes={"forum": (vote, count)})

    async def solve(self, driver: PageDriver, p: Choice) -> str | None:
        await open_topic(driver, p.title)
        await driver.click("radio", p.option)
        await driver.click("button", "Vote")
        return None


@dataclass(frozen=True)
class Remark(InTopic):
    user: int
    count: int
    text: str


class Reply(Template[Remark]):
    name = "forum-reply"
    sites = ("forum",)
    category = "forum"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Reply to the topic "{title}" with exactly this text: {text}',
        'Write a comment in "{title}". It should say: {text}',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Remark]:
        rows = topics(golden, f"NOT t.is_closed AND t.comment_count < {PER_PAGE}")
        member = user_id(golden, MEMBER)
        return [
            row.into(Remark, user=member, count=row.comments, text=rng.choice(PHRASES))
            for row in rng.sample(rows, SAMPLE)
        ]

    def milestones(self, p: Remark) -> Milestones:
        return (
            *topic_goals(p),
            Goal("A comment was sent", sent(PagePattern("forum", rf"/comment/{p.topic}/publish/"))),
            Goal("The comment says what it should", changed("forum", COMMENT, topic_id=p.topic, comment=p.text)),
        )

    def outcome(self, p: Remark) -> Outcome:
        comment = Inserted(COMMENT, {"topic_id": p.topic, "user_id": p.user, "comment": p.text, "is_removed": 0})
        count = Updated(TOPIC, {"id": p.topic}, {"comment_count": p.count + 1}, allowed=("last_active",))
        return Outcome(changes={"forum": (comment, count)}, allowed={"forum": FOLLOWS})

    async def solve(self, driver: PageDriver, p: Remark) -> str | None:
        await open_topic(driver, p.title)
        await driver.type("textbox", "Write comment...", p.text)
        await driver.click("button", "Publish")
        return None


@dataclass(frozen=True)
class NewTopic(Params):
    user: int
    subject: str
    text: str
    category: int
    place: str


class Publish(Template[NewTopic]):
    name = "forum-publish"
    sites = ("forum",)
    category = "forum"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Start a topic "{subject}" in the category {place}. Its text: {text}',
        'Open a new discussion in {place}, titled "{subject}", that begins with this comment: {text}',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[NewTopic]:
        places = golden.database("forum").rows(
            f"SELECT id, title FROM spirit_category_category WHERE id <> {PRIVATE_CATEGORY} ORDER BY id"
        )
        member = user_id(golden, MEMBER)
        return [
            NewTopic(member, subject, text, category, place) for category, place in places for subject, text in SUBJECTS
        ]

    def milestones(self, p: NewTopic) -> Milestones:
        form = PagePattern("forum", r"/topic/publish/(\d+/)?")
        return (
            Goal("The form for a new topic is open", visited(form)),
            Goal("The new topic was sent", sent(form)),
            Goal("A topic with this title exists", changed("forum", TOPIC, title=p.subject, user_id=p.user)),
            Goal(f"The topic is in {p.place}", changed("forum", TOPIC, title=p.subject, category_id=p.category)),
        )

    def outcome(self, p: NewTopic) -> Outcome:
        values = {"title": p.subject, "category_id": p.category, "user_id": p.user, "comment_count": 1}
        comment = Inserted(COMMENT, {"comment": p.text, "user_id": p.user})
        return Outcome(changes={"forum": (Inserted(TOPIC, values), comment)}, allowed={"forum": FOLLOWS})

    async def solve(self, driver: PageDriver, p: NewTopic) -> str | None:
        await driver.click("link", "Create Topic")
        await driver.type("textbox", "Title:", p.subject)
        page = await driver.text()
        nested = f'"--- {p.place}"' in page
        await driver.select("combobox", "Category:", f"--- {p.place}" if nested else p.place)
        await driver.type("textbox", "Comment:", p.text)
        await driver.click("button", "Publish")
        return None


@dataclass(frozen=True)
class Letter(Params):
    user: int
    partner: int
    username: str
    subject: str
    text: str


class PrivateTopic(Template[Letter]):
    name = "forum-private-topic"
    sites = ("forum",)
    category = "forum"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Send {username} a private topic titled "{subject}" that says: {text}',
        'Write privately to the member {username}. Title: "{subject}". Text: {text}',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Letter]:
        member = user_id(golden, MEMBER)
        people = golden.database("forum").rows("SELECT id, username FROM auth_user WHERE id <> ? ORDER BY id", member)
        return [Letter(member, partner, name, *rng.choice(SUBJECTS)) for partner, name in people]

    def milestones(self, p: Letter) -> Milestones:
        form = PagePattern("forum", r"/topic/private/publish/(\d+/)?")
        invited = changed("forum", "spirit_topic_private_topicprivate", user_id=p.partner)
        return (
            Goal("The form for a private topic is open", visited(form)),
            Goal("The private topic was sent", sent(form)),
            Goal("A private topic with this title exists", changed("forum", TOPIC, title=p.subject)),
            Goal(
                f"{p.username} takes part in the private topic",
                all_of(changed("forum", TOPIC, title=p.subject), invited),
            ),
        )

    def outcome(self, p: Letter) -> Outcome:
        topic = {"title": p.subject, "category_id": PRIVATE_CATEGORY, "user_id": p.user, "comment_count": 1}
        changes = (
            Inserted(TOPIC, topic),
            Inserted(COMMENT, {"comment": p.text, "user_id": p.user}),
            Inserted("spirit_topic_private_topicprivate", {"user_id": p.user}),
            Inserted("spirit_topic_private_topicprivate", {"user_id": p.partner}),
        )
        return Outcome(changes={"forum": changes}, allowed={"forum": FOLLOWS})

    async def solve(self, driver: PageDriver, p: Letter) -> str | None:
        await driver.click("link", MEMBER)
        await driver.click("link", "Private topics")
        await driver.click("link", "Create private topic")
        await driver.type("textbox", "Title:", p.subject)
        await driver.type("textbox", "Invite users:", p.username)
        await driver.type("textbox", "Comment:", p.text)
        await driver.click("button", "Publish")
        return None


@dataclass(frozen=True)
class OwnComment(InTopic):
    comment: int
    text: str
    new: str


class EditComment(Template[OwnComment]):
    name = "forum-edit-comment"
    sites = ("forum",)
    category = "forum"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Replace the text of my comment in "{title}" by: {new}',
        'I wrote one comment in the topic "{title}". Change it so that it says only this: {new}',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[OwnComment]:
        fitting = {row.topic: row for row in topics(golden, f"t.comment_count <= {PER_PAGE // 2}")}
        own = golden.database("forum").rows(
            f"SELECT topic_id, id, comment FROM {COMMENT} WHERE user_id = ? AND instr(comment, char(10)) = 0"
            " GROUP BY topic_id HAVING count(*) = 1 ORDER BY topic_id",
            user_id(golden, MEMBER),
        )
        return [
            fitting[topic].into(OwnComment, comment=comment, text=text, new=rng.choice(PHRASES))
            for topic, comment, text in own
            if topic in fitting
        ]

    def milestones(self, p: OwnComment) -> Milestones:
        form = PagePattern("forum", rf"/comment/{p.comment}/update/")
        return (
            *topic_goals(p),
            Goal("The form of my comment is open", visited(form)),
            Goal("The comment says the new text", changed("forum", COMMENT, id=p.comment, comment=p.new)),
        )

    def outcome(self, p: OwnComment) -> Outcome:
        edited = Updated(
            COMMENT, {"id": p.comment}, {"comment": p.new}, allowed=("comment_html", "is_modified", "modified_count")
        )
        kept = Inserted("spirit_comment_history_commenthistory", {"comment_fk_id": p.comment})
        return Outcome(changes={"forum": (edited,)}, allowed={"forum": (kept,)})

    async def solve(self, driver: PageDriver, p: OwnComment) -> str | None:
        await open_topic(driver, p.title)
        await click_below(driver, p.text, re.compile("^edit$"))
        await driver.type("textbox", "Comment:", p.new)
        await driver.click("button", "Publish")
        return None


@dataclass(frozen=True)
class Preferences(Params):
    user: int
    town: str
    often: str
    code: int


class EditProfile(Template[Preferences]):
    name = "forum-preferences"
    sites = ("forum",)
    category = "forum"
    kind = "configuration"
    difficulty = "medium"
    wordings = (
        "In my preferences, set my location to {town} and e-mail notifications to {often}.",
        "I have moved to {town}: change the location in my profile, and have notifications mailed {often}.",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Preferences]:
        forum = golden.database("forum")
        member = user_id(golden, MEMBER)
        rows = forum.rows("SELECT DISTINCT location FROM spirit_user_userprofile WHERE user_id <> ? ORDER BY 1", member)
        here = forum.value("SELECT location FROM spirit_user_userprofile WHERE user_id = ?", member)
        towns = [town for (town,) in rows if town and town != here]
        base = 8 | 16  # mentions and replies keep their settings
        return [
            Preferences(member, town, often, base | code)
            for town in towns
            for often, code in (("Immediately", 2), ("Weekly", 4))
        ]

    def milestones(self, p: Preferences) -> Milestones:
        profile = "spirit_user_userprofile"
        form = PagePattern("forum", "/user/")
        moved = changed("forum", profile, user_id=p.user, location=p.town)
        return (
            Goal("The preferences are open", visited(form)),
            Goal("The preferences were saved", sent(form)),
            Goal(f"The location is {p.town}", moved),
            Goal(f"Notifications come {p.often}", all_of(moved, changed("forum", profile, notify=p.code))),
        )

    def outcome(self, p: Preferences) -> Outcome:
        to = {"location": p.town, "notify": p.code}
        return Outcome(changes={"forum": (Updated("spirit_user_userprofile", {"user_id": p.user}, to),)})

    async def solve(self, driver: PageDriver, p: Preferences) -> str | None:
        await driver.click("link", MEMBER)
        await driver.click("link", "Profile")
        await driver.click("link", "Preferences")
        await driver.type("textbox", "Location:", p.town)
        await driver.select("combobox", "Email notifications:", p.often)
        await driver.click("button", "Save")
        return None


@dataclass(frozen=True)
class Followed(InTopic):
    user: int


class Follow(Template[Followed]):
    name = "forum-follow"
    sites = ("forum",)
    category = "forum"
    kind = "configuration"
    difficulty = "easy"
    wordings = (
        'Have me notified of new comments in the topic "{title}".',
        'Switch on notifications for "{title}".',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Followed]:
        member = user_id(golden, MEMBER)
        free = f"NOT EXISTS (SELECT 1 FROM {NOTIFICATION} n WHERE n.topic_id = t.id AND n.user_id = ?)"
        rows = topics(golden, f"t.comment_count <= {PER_PAGE} AND {free}", member)
        return [row.into(Followed, user=member) for row in rng.sample(rows, min(SAMPLE, len(rows)))]

    def milestones(self, p: Followed) -> Milestones:
        return (
            *topic_goals(p),
            Goal("The subscription was sent", sent(PagePattern("forum", rf"/topic/notification/{p.topic}/create/"))),
            Goal("New comments are notified", changed("forum", NOTIFICATION, topic_id=p.topic, is_active=1)),
        )

    def outcome(self, p: Followed) -> Outcome:
        row = Inserted(NOTIFICATION, {"topic_id": p.topic, "user_id": p.user, "is_active": 1})
        return Outcome(changes={"forum": (row,)})

    async def solve(self, driver: PageDriver, p: Followed) -> str | None:
        await open_topic(driver, p.title)
        await driver.click("button", "Notify Me")
        return None


WRITING: tuple[Template[Any], ...] = (
    LikeComment(),
    Vote(),
    Reply(),
    Publish(),
    PrivateTopic(),
    EditComment(),
    EditProfile(),
    Follow(),
)
