"""Fills the forum: members, categories, topics, comments, likes, polls, private topics, flags."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

from django.contrib.auth import get_user_model
from spirit.admin.forms import BasicConfigForm
from spirit.category.models import Category
from spirit.comment.flag.models import CommentFlag, Flag
from spirit.comment.like.models import CommentLike
from spirit.comment.models import Comment
from spirit.comment.poll.models import CommentPoll, CommentPollChoice, CommentPollVote
from spirit.core.conf import settings
from spirit.core.utils.markdown import Markdown
from spirit.topic.models import Topic
from spirit.topic.notification.models import TopicNotification
from spirit.topic.private.models import TopicPrivate
from spirit.user.models import UserProfile

from envs.suites.sites.apps.django_base import PASSWORD, bulk
from envs.suites.sites.apps.forum.words import Words
from envs.suites.sites.clock import NOW

SEED = 7
MEMBERS = 60
MEMBER = "robin_hale"
MODERATOR = "sam_ellery"
OLDEST = timedelta(days=400)
OPEN_FLAGS = 10
CLOSED_FLAGS = 4
POLL_CATEGORIES = ("Announcements", "Local Events", "Off Topic")
CLOSED_POLLS = 4
"""Number of closed polls; the others are open."""


def fill() -> dict[str, Any]:
    """Fills the database. Returns the users of the personas."""
    rng = Random(SEED)
    words = Words(rng)
    _settings()
    users = _users(rng, words)
    topics = _topics(rng, words, _categories(words), users)
    _discussion(rng, words, topics, users)
    _polls(rng, words, topics, users)
    _likes(rng, users)
    _spam(rng, words, topics, users)
    _private(rng, words, users)
    _count()
    _notifications(users[MEMBER])
    return {"member": users[MEMBER], "moderator": users[MODERATOR]}


def _settings() -> None:
    form = BasicConfigForm(
        data={
            "site_name": "Quayside",
            "site_description": "The board of a small harbour town",
            "template_footer": "",
            "comments_per_page": 20,
            "topics_per_page": 20,
        }
    )
    if not form.is_valid():
        raise ValueError(f"Spirit refuses its settings: {form.errors}")
    form.save()


def _users(rng: Random, words: Words) -> dict[str, Any]:
    user_model: Any = get_user_model()
    names = ["Robin Hale", "Sam Ellery", *words.members(MEMBERS)]
    users: dict[str, Any] = {}
    for number, name in enumerate(names):
        first, last = name.split(" ", 1)
        username = name.lower().replace(" ", "_")
        joined = NOW - OLDEST - timedelta(days=rng.randint(1, 900), minutes=rng.randint(0, 1439))
        user = user_model(username=username, email=f"{username}@quayside.test", date_joined=joined)
        user.first_name, user.last_name = first, last
        if number < 2:
            user.set_password(PASSWORD)
        else:
            user.set_unusable_password()
        user.save()
        profiles: Any = UserProfile
        profiles.objects.filter(user=user).update(
            location=rng.choice(words["towns"]),
            is_verified=True,
            is_moderator=username == MODERATOR,
            is_administrator=username == MODERATOR,  # only administrators see flags
            last_seen=NOW - timedelta(minutes=rng.randint(60, 60_000)),
        )
        users[username] = user_model.objects.get(pk=user.pk)  # reloaded: a login would save the old profile
    return users


def _categories(words: Words) -> list[tuple[Any, dict[str, Any]]]:
    """Each category with the texts of its topics. A child shares the texts of its parent."""
    Category.objects.exclude(pk=settings.ST_TOPIC_PRIVATE_CATEGORY_PK).delete()
    categories: list[tuple[Any, dict[str, Any]]] = []
    for sort, entry in enumerate(words["categories"], 2):
        parent = Category.objects.create(
            title=entry["title"],
            description=entry["description"],
            color=entry["color"],
            sort=sort,
            reindex_at=NOW - OLDEST,
        )
        categories.append((parent, entry))
        for title in entry.get("children", ()):
            child = Category.objects.create(title=title, parent=parent, sort=sort, reindex_at=NOW - OLDEST)
            categories.append((child, entry))
    return categories


def _topics(
    rng: Random, words: Words, categories: Sequence[tuple[Any, dict[str, Any]]], users: dict[str, Any]
) -> list[Any]:
    """Creates the topics with their opening comments, oldest first, spread over a category and its children."""
    slots: list[tuple[Any, dict[str, Any]]] = []
    for entry in words["categories"]:
        places = [category for category, words_of in categories if words_of is entry]
        slots += [(places[number % len(places)], entry) for number in range(entry["topics"])]
    rng.shuffle(slots)
    authors = [*users.values(), *[users[MEMBER]] * 4]
    rows: list[tuple[Any, str]] = []
    for number, (category, entry) in enumerate(slots):
        title, opening = words.topic(entry)
        age = OLDEST * (1 - number / len(slots)) + timedelta(minutes=rng.randint(1, 1200))
        topic: Any = Topic(category=category, title=title, user=rng.choice(authors), date=NOW - age)
        topic.is_pinned, topic.is_closed = rng.random() < 0.03, rng.random() < 0.06
        topic.view_count = rng.randint(20, 2500)
        topic.save()
        rows.append((topic, opening))
    bulk(Comment, [_comment(topic, topic.user, topic.date, opening) for topic, opening in rows])
    return [topic for topic, _ in rows]


def _comment(topic: Any, user: Any, date: datetime, text: str) -> Any:
    return Comment(topic=topic, user=user, date=date, comment=text, comment_html=Markdown().render(text))


def _discussion(rng: Random, words: Words, topics: Sequence[Any], users: dict[str, Any]) -> None:
    authors = list(users.values())
    comments: list[Any] = []
    for topic in topics:
        date = topic.date
        for _ in range(min(45, int(rng.expovariate(1 / 6)))):
            date = date + timedelta(minutes=rng.randint(4, 2600))
            if date >= NOW - timedelta(minutes=15):
                break
            comments.append(_comment(topic, rng.choice(authors), date, words.reply()))
    bulk(Comment, comments)


def _polls(rng: Random, words: Words, topics: Sequence[Any], users: dict[str, Any]) -> None:
    """Adds each poll to the opening comment of another topic, with votes."""
    places = [topic for topic in topics if topic.category.title in POLL_CATEGORIES and not topic.is_closed]
    homes = rng.sample(places, len(words["polls"]))
    voters = [user for name, user in users.items() if name != MEMBER]
    for number, (topic, entry) in enumerate(zip(homes, words["polls"], strict=True)):
        comment: Any = Comment.objects.filter(topic=topic).order_by("pk").first()
        lines = [f"{place}. {choice}" for place, choice in enumerate(entry["choices"], 1)]
        comment.comment += "\n\n[poll name=poll1]\n# {}\n{}\n[/poll]".format(entry["title"], "\n".join(lines))
        markdown = Markdown()
        comment.comment_html = markdown.render(comment.comment)
        comment.save()
        raw = markdown.get_polls()
        if number < CLOSED_POLLS:
            raw["polls"][0]["close_at"] = NOW - timedelta(days=rng.randint(2, 30))
        CommentPoll.update_or_create_many(comment, raw["polls"])
        CommentPollChoice.update_or_create_many(comment, raw["choices"])
        _vote(rng, comment, rng.sample(voters, rng.randint(18, 45)))


def _vote(rng: Random, comment: Any, voters: Sequence[Any]) -> None:
    choices: list[Any] = list(CommentPollChoice.objects.filter(poll__comment=comment))
    weights = [rng.randint(1, 9) for _ in choices]
    votes = [CommentPollVote(voter=user, choice=rng.choices(choices, weights)[0]) for user in voters]
    bulk(CommentPollVote, votes)
    for choice in choices:
        choice.vote_count = sum(vote.choice is choice for vote in votes)
        choice.save()


def _likes(rng: Random, users: dict[str, Any]) -> None:
    comments: list[Any] = list(Comment.objects.order_by("pk"))
    everyone = list(users.values())
    likes: list[Any] = []
    for comment in comments:
        others = [user for user in everyone if user.pk != comment.user_id]
        fans = rng.sample(others, min(20, int(rng.expovariate(1 / 1.5))))
        comment.likes_count = len(fans)
        likes += [CommentLike(user=user, comment=comment, date=comment.date + timedelta(hours=1)) for user in fans]
    bulk(CommentLike, likes)
    Comment.objects.bulk_update(comments, ["likes_count"], batch_size=200)


def _spam(rng: Random, words: Words, topics: Sequence[Any], users: dict[str, Any]) -> None:
    """Adds flagged comments. Most flags are open, some are closed."""
    handled: Any = CommentFlag
    raised: Any = Flag
    everyone = list(users.values())
    homes = rng.sample([topic for topic in topics if not topic.is_closed], OPEN_FLAGS + CLOSED_FLAGS)
    for number, topic in enumerate(homes):
        author, *critics = rng.sample([user for user in everyone if user.username != MEMBER], 3)
        last: Any = Comment.objects.filter(topic=topic).order_by("-date").first()
        date = min(last.date + timedelta(minutes=3), NOW - timedelta(minutes=14))
        comment = _comment(topic, author, date, words.spam())
        comment.save()
        is_closed = number >= OPEN_FLAGS
        moderator = users[MODERATOR] if is_closed else None
        handled.objects.create(comment=comment, is_closed=is_closed, moderator=moderator, date=date)
        for critic in critics[: rng.randint(1, 2)]:
            reason = rng.choice(words["replies"]["flag_reasons"])
            raised.objects.create(user=critic, comment=comment, reason=rng.randint(0, 1), body=reason, date=date)


def _private(rng: Random, words: Words, users: dict[str, Any]) -> None:
    """Adds private topics of the member persona with one or two others."""
    others = [user for name, user in users.items() if name not in {MEMBER, MODERATOR}]
    for entry in words["private"]:
        partners = rng.sample(others, rng.randint(1, 2))
        date = NOW - timedelta(days=rng.randint(1, 40), minutes=rng.randint(0, 900))
        author, *_ = rng.sample([users[MEMBER], *partners], 1)
        topic = Topic.objects.create(
            category_id=settings.ST_TOPIC_PRIVATE_CATEGORY_PK, title=entry["title"], user=author, date=date
        )
        bulk(TopicPrivate, [TopicPrivate(topic=topic, user=user, date=date) for user in (users[MEMBER], *partners)])
        comments = [_comment(topic, author, date, entry["text"])]
        for step in range(rng.randint(0, 3)):
            answer = rng.choice([users[MEMBER], *partners])
            comments.append(_comment(topic, answer, date + timedelta(hours=step + 1), words.reply()))
        bulk(Comment, comments)


def _count() -> None:
    """Sets the number of comments and the last activity of each topic."""
    topics: list[Any] = list(Topic.objects.prefetch_related("comment_set"))
    for topic in topics:
        dates = [comment.date for comment in topic.comment_set.all()]
        topic.comment_count, topic.last_active = len(dates), max(dates)
        topic.reindex_at = topic.date
    Topic.objects.bulk_update(topics, ["comment_count", "last_active", "reindex_at"], batch_size=200)


def _notifications(member: Any) -> None:
    """Adds notifications for the topics in which the member took part. The two latest answered ones are unread."""
    topics: list[Any] = list(Topic.objects.filter(comment__user=member).distinct().order_by("-last_active", "-pk"))
    rows: list[Any] = []
    for topic in topics:
        last: Any = Comment.objects.filter(topic=topic).order_by("-date", "-pk").first()
        is_read = last.user_id == member.pk or sum(not row.is_read for row in rows) >= 2
        rows.append(
            TopicNotification(
                user=member,
                topic=topic,
                comment=last,
                date=last.date,
                action=TopicNotification.COMMENT,
                is_read=is_read,
                is_active=True,
            )
        )
    bulk(TopicNotification, rows)
