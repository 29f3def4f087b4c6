"""Tasks across two sites: read on one site and write on the other. Each site has its own tab."""

from __future__ import annotations

import dataclasses
import random
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, ClassVar, TypeVar

from envs.suites.sites.answers import Day, Number, normalised
from envs.suites.sites.changes import Inserted, SqlValue, Test, Updated
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver, Unsolvable
from envs.suites.sites.tasks.code import shared as code_site
from envs.suites.sites.tasks.forum.shared import (
    COMMENT,
    FOLLOWS,
    MEMBER,
    PER_PAGE,
    TOPIC,
    InTopic,
    comments_on,
    open_topic,
    topic_searched,
    topics,
    user_id,
)
from envs.suites.sites.tasks.map import shared as map_site
from envs.suites.sites.tasks.shop import shared as shop_site
from envs.suites.sites.templates import Check, Goal, GoldenStates, Milestones, Outcome, Template, changed, sent, visited

SAMPLE = 120
FORUM_TAB = 1


@dataclass(frozen=True)
class ForumReply(InTopic):
    """Parameters of a task that replies in a topic with a fact from another site."""

    user: int
    comments: int
    """Number of comments in the topic before the reply."""


R = TypeVar("R", bound=ForumReply)


def open_discussions(golden: GoldenStates, rng: random.Random, count: int) -> list[ForumReply]:
    """Open topics of one page, in which the member can reply."""
    rows = topics(golden, f"NOT t.is_closed AND t.comment_count < {PER_PAGE}")
    member = user_id(golden, MEMBER)
    return [row.into(ForumReply, user=member, comments=row.comments) for row in rng.sample(rows, min(count, len(rows)))]


def place(topic: ForumReply) -> dict[str, Any]:
    """The fields of *topic*, for parameters of a subclass."""
    return {field.name: getattr(topic, field.name) for field in dataclasses.fields(ForumReply)}


class LookUpAndReply(Template[R]):
    """Looks up a fact on the first site and replies with it in a forum topic."""

    category = "multi"
    kind = "content"
    difficulty = "hard"
    source: ClassVar[str]
    """The name of the fact in milestones."""

    @abstractmethod
    def source_page(self, p: R) -> Check:
        """Checks that the page with the fact was shown."""

    @abstractmethod
    def is_right(self, p: R, reply: str) -> bool:
        """Does the reply state the fact?"""

    @abstractmethod
    async def look_up(self, driver: PageDriver, p: R) -> str:
        """Looks up the fact on the first site."""

    def milestones(self, p: R) -> Milestones:
        return (
            Goal(f"The page with {self.source} is open", self.source_page(p)),
            Goal(f'The topic "{p.title}" is searched for, or its category is open', topic_searched(p)),
            Goal(f'A reply to "{p.title}" was sent', sent(PagePattern("forum", rf"/comment/{p.topic}/publish/"))),
            Goal(
                f"The reply says {self.source}",
                changed("forum", COMMENT, topic_id=p.topic, user_id=p.user, comment=self._is_right_reply(p)),
            ),
        )

    def outcome(self, p: R) -> Outcome:
        reply = {"topic_id": p.topic, "user_id": p.user, "comment": self._is_right_reply(p), "is_removed": 0}
        count = Updated(TOPIC, {"id": p.topic}, {"comment_count": p.comments + 1}, allowed=("last_active",))
        visits = shop_site.VISIT if "shop" in self.sites else {}
        return Outcome(changes={"forum": (Inserted(COMMENT, reply), count)}, allowed={"forum": FOLLOWS, **visits})

    async def solve(self, driver: PageDriver, p: R) -> str | None:
        fact = await self.look_up(driver, p)
        await driver.tab(FORUM_TAB)
        await open_topic(driver, p.title)
        await driver.type("textbox", "Write comment...", fact)
        await driver.click("button", "Publish")
        return None

    def _is_right_reply(self, p: R) -> Test:
        def test(value: SqlValue) -> bool:
            return isinstance(value, str) and self.is_right(p, value)

        return test


@dataclass(frozen=True)
class PriceReply(ForumReply):
    product: int
    name: str
    price: Decimal


class PriceToForum(LookUpAndReply[PriceReply]):
    name = "multi-price-to-forum"
    sites = ("shop", "forum")
    source = "the price"
    wordings = (
        'Somebody in the forum topic "{title}" asks what "{name}" costs in the shop. Look it up and reply there with '
        "the price alone, such as 12.50.",
        'Look up the price of "{name}" in the shop, then reply to the forum topic "{title}" with nothing but that '
        "number (for example 12.50).",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[PriceReply]:
        sold = rng.sample(shop_site.products(golden), SAMPLE)
        return [
            PriceReply(**place(topic), product=item.id, name=item.title, price=item.price)
            for topic, item in zip(open_discussions(golden, rng, SAMPLE), sold, strict=True)
        ]

    def source_page(self, p: PriceReply) -> Check:
        return visited(shop_site.product_page(p.product))

    def is_right(self, p: PriceReply, reply: str) -> bool:
        return Number(p.price).accepts(reply)

    async def look_up(self, driver: PageDriver, p: PriceReply) -> str:
        await shop_site.open_product(driver, p.name)
        return await driver.read(rf"# {re.escape(p.name)}[\s\S]{{0,80}}?£(\d+\.\d\d)")


@dataclass(frozen=True)
class PlaceReply(ForumReply):
    place: str
    name: str
    truth: str


class AboutPlace(LookUpAndReply[PlaceReply]):
    """A fact about a place on the map."""

    sites = ("map", "forum")
    column: ClassVar[str]
    label: ClassVar[str]
    """The fact's label on the place's page."""

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[PlaceReply]:
        known = map_site.places(golden, self.column, rng)[:SAMPLE]
        return [
            PlaceReply(**place(topic), place=fact.place, name=fact.name, truth=fact.truth)
            for topic, fact in zip(open_discussions(golden, rng, len(known)), known, strict=False)
        ]

    def source_page(self, p: PlaceReply) -> Check:
        return visited(PagePattern("map", f"/place/{p.place}"))

    async def look_up(self, driver: PageDriver, p: PlaceReply) -> str:
        await map_site.search_and_open(driver, p.name)
        return await driver.read(rf"^{self.label} \| (.+)$")


class PhoneToForum(AboutPlace):
    name = "multi-phone-to-forum"
    source = "the phone number"
    column = "phone"
    label = "Phone"
    wordings = (
        'In the forum topic "{title}" people want to ring "{name}". Find its phone number on the map and reply there '
        "with the number alone.",
        'Find the phone number of "{name}" on the map and post it, and nothing else, as a reply to the forum topic '
        '"{title}".',
    )

    def is_right(self, p: PlaceReply, reply: str) -> bool:
        return map_site.Phone(p.truth).accepts(reply) and not re.search(r"[^\W\d]{2}", reply)

    async def look_up(self, driver: PageDriver, p: PlaceReply) -> str:
        await map_site.search_and_open(driver, p.name)
        return await driver.read(r"^Phone \|.*?(\+?\d[\d ()-]+\d)")


class AddressToForum(AboutPlace):
    name = "multi-address-to-forum"
    source = "the street address"
    column = "address"
    label = "Address"
    wordings = (
        'The people in the forum topic "{title}" want to meet at "{name}". Find its address on the map and reply there '
        "with the address as the map gives it, and nothing else.",
        'What is the address of "{name}"? Look at the map, and answer in the forum topic "{title}" with just the '
        "address as the map writes it.",
    )

    def is_right(self, p: PlaceReply, reply: str) -> bool:
        return normalised(reply) == normalised(p.truth)


@dataclass(frozen=True)
class DayReply(ForumReply):
    path: str
    """Path of the event's page on the public site."""
    event: str
    day: date


class EventDayToForum(LookUpAndReply[DayReply]):
    name = "multi-event-day-to-forum"
    sites = ("cms", "forum")
    source = "the day of the event"
    wordings = (
        'In the forum topic "{title}" somebody asks when the museum\'s event "{event}" takes place. Find the day on '
        "the museum's website and reply there with the date alone, as in 2026-05-31.",
        "On which day is the museum's event \"{event}\"? Look at the museum's website and reply to the forum topic "
        '"{title}" with just the date, written like 2026-05-31.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[DayReply]:
        rows = golden.database("cms").rows(
            "SELECT p.url_path, p.title, e.day FROM website_eventpage e"
            " JOIN wagtailcore_page p ON p.id = e.page_ptr_id WHERE p.live ORDER BY p.id"
        )
        live = [(path.removeprefix("/home"), title, date.fromisoformat(day)) for path, title, day in rows]
        return [
            DayReply(**place(topic), path=path, event=title, day=day)
            for topic in open_discussions(golden, rng, 3)
            for path, title, day in live
        ]

    def source_page(self, p: DayReply) -> Check:
        return visited(PagePattern("cms", re.escape(p.path)))

    def is_right(self, p: DayReply, reply: str) -> bool:
        return Day(p.day).accepts(reply)

    async def look_up(self, driver: PageDriver, p: DayReply) -> str:
        await driver.click("link", "Events")
        await driver.click("link", p.event)
        months = "January|February|March|April|May|June|July|August|September|October|November|December"
        shown = await driver.read(rf"(\d{{1,2}} (?:{months}) \d{{4}})")
        if not Day(p.day).accepts(shown):
            raise Unsolvable(f"the page shows {shown}")
        return p.day.isoformat()


@dataclass(frozen=True)
class ReporterReply(ForumReply):
    ticket: int
    summary: str
    account: str
    full_name: str


class ReporterToForum(LookUpAndReply[ReporterReply]):
    name = "multi-reporter-to-forum"
    sites = ("code", "forum")
    source = "who reported the ticket"
    wordings = (
        'The people in the forum topic "{title}" wonder who reported the ticket "{summary}" on the code site. Find '
        "out and reply there with the person's name alone.",
        'Find out on the code site who opened the ticket "{summary}", then reply to the forum topic "{title}" with '
        "nothing but that name.",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[ReporterReply]:
        names = code_site.people(golden)
        known = rng.sample(code_site.tickets(golden, "reporter"), SAMPLE)
        return [
            ReporterReply(**place(topic), ticket=number, summary=summary, account=account, full_name=names[account])
            for topic, (number, summary, account) in zip(open_discussions(golden, rng, SAMPLE), known, strict=True)
        ]

    def source_page(self, p: ReporterReply) -> Check:
        return visited(code_site.ticket_page(p.ticket))

    def is_right(self, p: ReporterReply, reply: str) -> bool:
        return code_site.person(p.full_name, p.account).accepts(reply)

    async def look_up(self, driver: PageDriver, p: ReporterReply) -> str:
        await code_site.open_ticket(driver, p.summary)
        return await driver.read(r'Reported by: \| \[\d+\] link "([^"]+)"')


@dataclass(frozen=True)
class Complaint(InTopic):
    author: str
    component: str


class TopicToTicket(Template[Complaint]):
    name = "multi-topic-to-ticket"
    sites = ("forum", "code")
    category = "multi"
    kind = "content"
    difficulty = "hard"
    wordings = (
        'The forum topic "{title}" belongs into the tracker. Find out who started it, and file a ticket on the code '
        "site: its summary is the topic's title, its description the username of that member and nothing else, its "
        "component {component}.",
        'File a ticket on the code site for the component {component}, with the title of the forum topic "{title}" as '
        "its summary and the username of whoever started that topic as its whole description.",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Complaint]:
        components = [row[0] for row in golden.database("code").rows("SELECT name FROM component ORDER BY name")]
        authors = dict(
            golden.database("forum").rows(
                f"SELECT t.id, u.username FROM {TOPIC} t JOIN auth_user u ON u.id = t.user_id"
            )
        )
        chosen = rng.sample(topics(golden, f"t.comment_count < {PER_PAGE}"), SAMPLE)
        return [row.into(Complaint, author=authors[row.topic], component=rng.choice(components)) for row in chosen]

    def milestones(self, p: Complaint) -> Milestones:
        return (
            Goal(f'The topic "{p.title}" is open', visited(p.page)),
            Goal("The form for a new ticket is open", visited(PagePattern("code", "/newticket"))),
            Goal(f'A ticket "{p.title}" is created', changed("code", "ticket", summary=p.title)),
            Goal(
                "It names the member and the component",
                changed("code", "ticket", summary=p.title, description=p.author, component=p.component),
            ),
        )

    def outcome(self, p: Complaint) -> Outcome:
        row = {
            "summary": p.title,
            "description": p.author,
            "component": p.component,
            "reporter": code_site.DEVELOPER,
            "status": "new",
        }
        return Outcome(changes={"code": (Inserted("ticket", row),)})

    async def solve(self, driver: PageDriver, p: Complaint) -> str | None:
        await open_topic(driver, p.title)
        author = comments_on(await driver.text())[0].author
        await driver.tab(1)
        await driver.click("link", "New Ticket")
        await driver.type("textbox", "Summary:", p.title)
        await driver.type("textbox", re.compile("^Description"), author)
        await driver.select("combobox", "Component:", p.component)
        await driver.click("button", "Create ticket")
        return None


TEMPLATES: tuple[Template[Any], ...] = (
    PriceToForum(),
    PhoneToForum(),
    AddressToForum(),
    EventDayToForum(),
    ReporterToForum(),
    TopicToTicket(),
)
