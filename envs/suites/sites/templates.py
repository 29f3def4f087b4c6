"""Task templates: instances, wordings, milestones, outcome and oracle of a family of tasks.

A template is a class in `envs/suites/sites/tasks/SITE/*.py`. A worked example::

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

        def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[Purchase]:
            rows = golden.database("shop").rows("SELECT id, title FROM catalogue_product WHERE …")
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

Rules:
- A wording uses the names that a person would use, never an id or a URL. It states the form of the answer.
- `candidates` lists *distinct* tasks in a fixed order.
- The oracle meets the four milestones in order. Each is decided from state. After the last one, only the end remains.
- Each instance takes the oracle 3 to 15 actions.
- The outcome states exactly which rows change; one unexpected row is a failure. `NOISE = Noise(...)` of a site's tasks
  lists the changes of every visit. Further changes that one task may cause go into `allowed`.
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
from envs.suites.sites.changes import Expected, ExpectedValue, mismatch, values_fit
from envs.suites.sites.evidence import Database, Evidence, PagePattern
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.page_driver import PageDriver

Kind = Literal["information", "navigation", "content", "configuration", "impossible"]
Difficulty = Literal["easy", "medium", "hard"]
Check = Callable[[Evidence], bool]


class GoldenStates:
    """The golden states from which instances are sampled."""

    def __init__(self, golden: Mapping[SiteName, Path]) -> None:
        self._golden = golden

    def folder(self, site: SiteName) -> Path:
        """The golden folder of a site, for files other than the database."""
        return self._golden[site]

    def database(self, site: SiteName) -> Database:
        """The golden database of a site, read-only."""
        from envs.suites.sites.apps.base import DATABASE

        return Database(self._golden[site] / DATABASE, frozen=True)


@dataclass(frozen=True)
class Params:
    """The parameters of an instance. Their fields fill the wordings."""


P = TypeVar("P", bound=Params)


class Goal(NamedTuple):
    """One reference milestone."""

    text: str
    """A subgoal in words, as a planner would state it."""
    met: Check


Milestones = tuple[Goal, Goal, Goal, Goal]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exact conditions of success. At least one of `changes`, `answer` and `page` is set."""

    changes: Mapping[SiteName, Sequence[Expected]] = field(default_factory=dict[SiteName, Sequence[Expected]])
    """Rows that must differ from the golden state, each once. Sites that are not listed must be unchanged."""
    allowed: Mapping[SiteName, Sequence[Expected]] = field(default_factory=dict[SiteName, Sequence[Expected]])
    """Further rows that may differ, any number of times."""
    answer: Answer | None = None
    """The expected answer; None accepts any answer."""
    page: PagePattern | None = None
    """The page that the front tab must show at the end."""

    def __post_init__(self) -> None:
        if not any(self.changes.values()) and self.answer is None and self.page is None:
            raise BadInput("an outcome without conditions would be met by an agent that does nothing")

    def problem(self, evidence: Evidence) -> str:
        """The first condition that *evidence* does not meet; empty if it meets all."""
        for name, site in evidence.sites.items():
            difference = mismatch(site.changes, self.changes.get(name, ()), self.allowed.get(name, ()))
            if difference:
                return f"{name}: {difference}"
        if self.answer is not None and not self.answer.accepts(evidence.answer or ""):
            return f"the answer {evidence.answer!r} is not {self.answer.truth()!r}"
        if self.page is not None and not evidence.shows(self.page):
            shown = evidence.urls[0] if evidence.urls else "nothing"
            return f"the front tab shows {shown}, not {self.page.site}{self.page.path}"
        return ""


class Template(ABC, Generic[P]):
    """A family of tasks. Template objects have no state, so one object serves all instances."""

    name: ClassVar[str]
    """Unique; begins with the site, e.g. `shop-add-to-basket`."""
    sites: ClassVar[tuple[SiteName, ...]]
    """Sites that the task needs. The first is in front at the start; each has its own tab."""
    category: ClassVar[str]
    """shop, shop_admin, forum, code, cms, map or multi."""
    kind: ClassVar[Kind]
    difficulty: ClassVar[Difficulty]
    """easy: 3-5 actions by the oracle, medium: 6-9, hard: 10-15."""
    wordings: ClassVar[tuple[str, ...]]
    """At least two format strings over the fields of the parameters."""
    personas: ClassVar[Mapping[SiteName, str]] = {}
    """The logged-in persona per site, if it is not the default one."""
    start: ClassVar[Mapping[SiteName, str]] = {}
    """The start path per site; "/" by default."""

    @abstractmethod
    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[P]:
        """The parameters of all distinct instances, or a random sample of at most 300. At least 8, in a fixed order."""

    @abstractmethod
    def milestones(self, p: P) -> Milestones:
        """The four milestones, in the order in which the oracle meets them."""

    @abstractmethod
    def outcome(self, p: P) -> Outcome:
        """The conditions of success."""

    @abstractmethod
    async def solve(self, driver: PageDriver, p: P) -> str | None:
        """The oracle: solves the task with *driver* and returns the answer, if the task expects one.

        Raises Unsolvable."""


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
    """The instance of this seed. Seeds below `len(candidates)` are distinct tasks; later seeds use other wordings."""
    order = random.Random(f"order {template.name}").sample(range(len(candidates)), len(candidates))
    params = candidates[order[seed % len(candidates)]]
    first = random.Random(f"wording {template.name} {seed % len(candidates)}").randrange(len(template.wordings))
    wording = template.wordings[(first + seed // len(candidates)) % len(template.wordings)]
    values = {field.name: getattr(params, field.name) for field in dataclasses.fields(params)}
    return Instance(template, seed, params, wording.format(**values))


def draw_candidates(template: Template[P], golden: GoldenStates) -> Sequence[P]:
    """The template's candidates, sampled with a fixed seed per template."""
    return template.candidates(golden, random.Random(f"candidates {template.name}"))


# Checks for milestones


def visited(page: PagePattern) -> Check:
    """Checks that a matching page was shown during the episode."""
    return lambda evidence: evidence.visited(page)


def shows(page: PagePattern) -> Check:
    """Checks that the front tab shows a matching page."""
    return lambda evidence: evidence.shows(page)


def sent(page: PagePattern, **fields: str) -> Check:
    """Checks that a form with these fields was sent to a matching address and accepted."""
    return lambda evidence: evidence.sent(page, **fields)


def changed(
    site: SiteName, table: str, *, was: Mapping[str, ExpectedValue] | None = None, **now: ExpectedValue
) -> Check:
    """Checks that an inserted or updated row of *table* has these values (and had the values *was* before)."""

    def check(evidence: Evidence) -> bool:
        return any(
            change.table == table
            and change.after
            and values_fit(now, change.after)
            and values_fit(was or {}, change.before)
            for change in evidence.changed(site)
        )

    return check


def deleted(site: SiteName, table: str, **was: ExpectedValue) -> Check:
    """Checks that a row of *table* with these values was deleted."""

    def check(evidence: Evidence) -> bool:
        return any(
            change.table == table and change.kind == "delete" and values_fit(was, change.before)
            for change in evidence.changed(site)
        )

    return check


def all_of(*checks: Check) -> Check:
    """Checks that all of *checks* hold."""
    return lambda evidence: all(check(evidence) for check in checks)


def any_of(*checks: Check) -> Check:
    """Checks that at least one of *checks* holds."""
    return lambda evidence: any(check(evidence) for check in checks)
