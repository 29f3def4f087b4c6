"""Task templates: what one is made of, and what "done" means for it.

A template is a class in `envs/suites/sites/tasks/*.py`. A worked example::

    @dataclass(frozen=True)
    class Purchase(Params):
        product: int
        title: str
        quantity: int


    class AddToBasket(Template[Purchase]):
        name = "shop-add-to-basket"
        sites = ("shop",)
        category = "shop"
        kind = "content"
        difficulty = "easy"
        wordings = (
            'Put {quantity} copies of "{title}" into my basket.',
            'I want {quantity} of "{title}" in the shopping basket; do not check out.',
        )

        def candidates(self, world: World, rng: Random) -> Sequence[Purchase]:
            rows = world.database("shop").rows("SELECT id, title FROM catalogue_product WHERE …")
            return [Purchase(id, title, rng.randint(2, 5)) for id, title in rows]

        def milestones(self, p: Purchase) -> Milestones:
            page = PagePattern("shop", rf"/catalogue/[^/]+_{p.product}/")
            return (
                Goal("The catalogue is searched or opened", visited(PagePattern("shop", r"/catalogue/.*|/search/"))),
                Goal(f'The page of "{p.title}" is open', visited(page)),
                Goal("The product is in the basket", changed("shop", "basket_line", product_id=p.product)),
                Goal(f"The basket holds {p.quantity} of it",
                     changed("shop", "basket_line", product_id=p.product, quantity=p.quantity)),
            )

        def outcome(self, p: Purchase) -> Outcome:
            line = Inserted("basket_line", {"product_id": p.product, "quantity": p.quantity})
            return Outcome(changes={"shop": (line,)}, allowed={"shop": (Inserted("basket_basket", {}),)})

        async def solve(self, driver: PageDriver, p: Purchase) -> str | None:
            await driver.type("searchbox", "Search", p.title, enter=True)
            await driver.click("link", p.title)
            await driver.type("spinbutton", "Quantity", str(p.quantity))
            await driver.click("button", "Add to basket")
            return None

Rules: a wording names what a person would name, never an id or an address; the instruction says in what form an
answer is wanted. `candidates` lists *distinct* tasks in a fixed order. The four milestones are met in order on the
way of the oracle, each follows from state, and the last one is nothing less than what remains before the end. Each
instance takes the oracle 3 to 15 actions. What an episode may change is stated exactly: one row too many is a failure.
`Noise` (per tasks module, `NOISE = Noise(...)`) is for what every visit leaves behind; what belongs to one task only
goes into `allowed`.
"""

from __future__ import annotations

import dataclasses
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Generic, Literal, NamedTuple, TypeVar

from envs.core.errors import BadInput
from envs.suites.sites.answers import Answer
from envs.suites.sites.changes import Expected, ExpectedValue, SqlValue, mismatch, values_match
from envs.suites.sites.evidence import Database, Evidence, PagePattern
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.page_driver import PageDriver

Kind = Literal["information", "navigation", "content", "configuration", "impossible"]
Difficulty = Literal["easy", "medium", "hard"]
Check = Callable[[Evidence], bool]


class World:
    """The golden states that instances are drawn from."""

    def __init__(self, golden: Mapping[SiteName, Path]) -> None:
        self._golden = golden

    def folder(self, site: SiteName) -> Path:
        """The golden folder of a site, for what lies beside the database."""
        return self._golden[site]

    def database(self, site: SiteName) -> Database:
        from envs.suites.sites.apps.base import DATABASE

        return Database(self._golden[site] / DATABASE, frozen=True)


@dataclass(frozen=True)
class Params:
    """What differs between the instances of a template; its fields fill the wordings."""


P = TypeVar("P", bound=Params)


class Goal(NamedTuple):
    """One reference milestone."""

    text: str
    """A subgoal in words, as a planner would state it."""
    met: Check


Milestones = tuple[Goal, Goal, Goal, Goal]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exactly what must be true at the end; at least one of `changes`, `answer` and `page` is given."""

    changes: Mapping[SiteName, Sequence[Expected]] = field(default_factory=dict[SiteName, Sequence[Expected]])
    """Rows that must differ, each once. A site that is not named must be unchanged."""
    allowed: Mapping[SiteName, Sequence[Expected]] = field(default_factory=dict[SiteName, Sequence[Expected]])
    """Rows that may differ besides, any number of times."""
    answer: Answer | None = None
    """None: whatever is answered does not matter."""
    page: PagePattern | None = None
    """What the front tab must show in the end."""

    def __post_init__(self) -> None:
        if not any(self.changes.values()) and self.answer is None and self.page is None:
            raise BadInput("an outcome that asks for nothing would be met by an agent that does nothing")

    def missed(self, evidence: Evidence) -> str:
        """Why the outcome is not reached; empty if it is."""
        for name, site in evidence.sites.items():
            wrong = mismatch(site.changes, self.changes.get(name, ()), self.allowed.get(name, ()))
            if wrong:
                return f"{name}: {wrong}"
        if self.answer is not None and not self.answer.accepts(evidence.answer or ""):
            return f"the answer {evidence.answer!r} is not {self.answer.truth()!r}"
        if self.page is not None and not evidence.shows(self.page):
            shown = evidence.urls[0] if evidence.urls else "nothing"
            return f"the front tab shows {shown}, not {self.page.site}{self.page.path}"
        return ""


class Template(ABC, Generic[P]):
    """A family of tasks. Instances hold nothing: one object serves all."""

    name: ClassVar[str]
    """Unique; begins with the site, e.g. `shop-add-to-basket`."""
    sites: ClassVar[tuple[SiteName, ...]]
    """Sites that the task needs, the one it starts at first; each further one is open in a tab of its own."""
    category: ClassVar[str]
    """shop, shop_admin, forum, code, cms, map or multi."""
    kind: ClassVar[Kind]
    difficulty: ClassVar[Difficulty]
    """easy: 3-5 actions by the oracle, medium: 6-9, hard: 10-15."""
    wordings: ClassVar[tuple[str, ...]]
    """At least two; format strings over the fields of the parameters."""
    personas: ClassVar[Mapping[SiteName, str]] = {}
    """Who is logged in where the usual persona is not."""
    start: ClassVar[Mapping[SiteName, str]] = {}
    """Path that a site opens with; "/" where nothing is said."""

    @abstractmethod
    def candidates(self, world: World, rng: random.Random) -> Sequence[P]:
        """Every instance that the golden state offers (or a drawn sample of at most 300), distinct, in an order that
        is the same each time; at least 8."""

    @abstractmethod
    def milestones(self, p: P) -> Milestones: ...

    @abstractmethod
    def outcome(self, p: P) -> Outcome: ...

    @abstractmethod
    async def solve(self, driver: PageDriver, p: P) -> str | None:
        """Does the task with *driver* and returns the answer, None where none is asked for. Raises Unsolvable."""


@dataclass(frozen=True, slots=True)
class Instance(Generic[P]):
    """One task: a template with its parameters and wording."""

    template: Template[P]
    seed: int
    params: P
    instruction: str

    @property
    def goals(self) -> Milestones:
        return self.template.milestones(self.params)

    @property
    def outcome(self) -> Outcome:
        return self.template.outcome(self.params)


def instance(template: Template[P], candidates: Sequence[P], seed: int) -> Instance[P]:
    """The task of this seed: seeds below `len(candidates)` are distinct tasks, later ones reword them."""
    order = random.Random(f"order {template.name}").sample(range(len(candidates)), len(candidates))
    params = candidates[order[seed % len(candidates)]]
    first = random.Random(f"wording {template.name} {seed % len(candidates)}").randrange(len(template.wordings))
    wording = template.wordings[(first + seed // len(candidates)) % len(template.wordings)]
    values = {one.name: getattr(params, one.name) for one in dataclasses.fields(params)}
    return Instance(template, seed, params, wording.format(**values))


def draw_candidates(template: Template[P], world: World) -> Sequence[P]:
    """The template's candidates, drawn from its own fixed seed."""
    return template.candidates(world, random.Random(f"candidates {template.name}"))


# Checks for milestones


def visited(where: PagePattern) -> Check:
    """A page of this part was shown at some time."""
    return lambda evidence: evidence.visited(where)


def shows(where: PagePattern) -> Check:
    """A page of this part is in front now."""
    return lambda evidence: evidence.shows(where)


def sent(where: PagePattern, **fields: str) -> Check:
    """A form was sent to this part and accepted."""
    return lambda evidence: evidence.sent(where, **fields)


def changed(
    site: SiteName, table: str, *, was: Mapping[str, ExpectedValue] | None = None, **now: ExpectedValue
) -> Check:
    """A row of *table* was inserted or updated and has these values now (and had those of *was* before)."""

    def check(evidence: Evidence) -> bool:
        return any(
            change.table == table and change.after and _has(change.after, now) and _has(change.before, was or {})
            for change in evidence.changed(site)
        )

    return check


def deleted(site: SiteName, table: str, **was: ExpectedValue) -> Check:
    """A row of *table* that had these values was deleted."""

    def check(evidence: Evidence) -> bool:
        return any(
            change.table == table and change.kind == "delete" and _has(change.before, was)
            for change in evidence.changed(site)
        )

    return check


def all_of(*checks: Check) -> Check:
    return lambda evidence: all(check(evidence) for check in checks)


def any_of(*checks: Check) -> Check:
    return lambda evidence: any(check(evidence) for check in checks)


def _has(row: Mapping[str, SqlValue], wanted: Mapping[str, ExpectedValue]) -> bool:
    return all(name in row and values_match(value, row[name]) for name, value in wanted.items())
