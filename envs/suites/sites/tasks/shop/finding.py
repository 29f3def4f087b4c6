"""Shop tasks that look up facts, compare products and show listings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, product
from random import Random
from typing import NamedTuple

from envs.suites.sites.answers import Number, Refusal, Text
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.shop.shared import (
    CATALOGUE,
    MOST,
    VISIT,
    Product,
    category_page,
    open_product,
    product_page,
    products,
    reading_milestones,
    search,
    searched,
    shelves,
)
from envs.suites.sites.templates import (
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    all_of,
    any_of,
    shows,
    visited,
)


class Fact(NamedTuple):
    """A number that product pages show."""

    code: str
    label: str
    """Its label on the page."""
    phrase: str
    """Its name in wordings."""


FACTS = (
    Fact("weight", "Weight in grams", "weight in grams"),
    Fact("warranty", "Warranty in years", "warranty in years"),
    Fact("pages", "Pages", "number of pages"),
    Fact("published", "Year of publication", "year of publication"),
    Fact("age", "Minimum age", "minimum age"),
    Fact("minutes", "Playing time in minutes", "playing time in minutes"),
)


@dataclass(frozen=True)
class FactParams(Params):
    product: int
    shelf: int
    title: str
    label: str
    asked: str
    value: int


class ProductFact(Template[FactParams]):
    name = "shop-product-fact"
    sites = ("shop",)
    category = "shop"
    kind = "information"
    difficulty = "easy"
    wordings = (
        'What is the {asked} of "{title}"? Answer with the number alone.',
        'Look up the {asked} of "{title}" in the shop and answer with just the number.',
        'I need the {asked} given for "{title}". One number, please.',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[FactParams]:
        facts = [
            FactParams(item.id, item.shelf_id, item.title, fact.label, fact.phrase, value)
            for item in products(golden)
            for fact in FACTS
            if (value := item.number(fact.code)) is not None
        ]
        return rng.sample(facts, min(MOST, len(facts)))

    def milestones(self, p: FactParams) -> Milestones:
        return reading_milestones(p.title, p.shelf, product_page(p.product))

    def outcome(self, p: FactParams) -> Outcome:
        return Outcome(answer=Number(p.value), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: FactParams) -> str:
        await open_product(driver, p.title)
        return await driver.read(rf"^{p.label} \| (\d+)$")


class Condition(NamedTuple):
    """A condition on a product: an attribute is at least a number, or equals a text."""

    words: str
    code: str
    expected: int | str

    def met_by(self, item: Product) -> bool:
        if isinstance(self.expected, int):
            return (item.number(self.code) or 0) >= self.expected
        return item.attributes.get(self.code) == self.expected


COLOURS = ("black", "white", "navy", "mustard", "slate", "plum", "terracotta", "moss-green")
CONDITIONS: dict[str, tuple[Condition, ...]] = {
    "Kitchenware": (
        Condition("is dishwasher safe", "dishwasher", 1),
        *(Condition(f"weighs {n} grams or more", "weight", n) for n in (1000, 2000, 3000)),
    ),
    "Garden ware": tuple(Condition(f"has a warranty of {n} years or more", "warranty", n) for n in (3, 5, 7, 8, 9)),
    "Book": (
        *(Condition(f"has {n} pages or more", "pages", n) for n in (250, 400, 500, 600)),
        *(Condition(f"was published in {n} or later", "published", n) for n in (2000, 2010, 2018)),
    ),
    "Game": (
        *(Condition(f"takes {n} minutes or more to play", "minutes", n) for n in (60, 90, 120)),
        *(Condition(f"{n} people can play together", "players", n) for n in (4, 5, 6, 7)),
    ),
    "Outdoor gear": (
        Condition("is waterproof", "waterproof", 1),
        *(Condition(f"has a warranty of {n} years or more", "warranty", n) for n in (4, 6, 8)),
    ),
    "Stationery": tuple(Condition(f"is {colour}", "colour", colour) for colour in COLOURS),
}
"""Conditions by product type."""


@dataclass(frozen=True)
class CheapestParams(Params):
    shelf: str
    shelf_id: int
    condition: str
    title: str
    product: int
    cheaper: tuple[str, ...]
    """Titles of cheaper products that do not meet the condition, cheapest first."""
    first: int
    """Key of the cheapest product."""


class CheapestWith(Template[CheapestParams]):
    """Asks for the cheapest product that meets a condition. Only the product pages show it, so they are opened."""

    name = "shop-cheapest-with"
    sites = ("shop",)
    category = "shop"
    kind = "information"
    difficulty = "medium"
    wordings = (
        'Of everything in the category "{shelf}", which is the cheapest product that {condition}? '
        "Answer with its full title.",
        'I look for something from "{shelf}" that {condition}, as cheap as possible. Which one is it? '
        "Tell me its title only.",
    )
    deepest = 3
    """Largest number of pages that the oracle opens."""

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[CheapestParams]:
        instances: list[CheapestParams] = []
        for shelf, ranked in shelves(products(golden)).items():
            for condition in CONDITIONS[ranked[0].kind]:
                place = next((i for i, item in enumerate(ranked) if condition.met_by(item)), None)
                if place is not None and 0 < place < self.deepest:
                    item, before = ranked[place], ranked[:place]
                    titles = tuple(other.title for other in before)
                    instances.append(
                        CheapestParams(shelf, item.shelf_id, condition.words, item.title, item.id, titles, before[0].id)
                    )
        return instances

    def milestones(self, p: CheapestParams) -> Milestones:
        shelf, first = category_page(p.shelf_id), visited(product_page(p.first))
        ranked = visited(PagePattern("shop", shelf.path, {"sort_by": "price-asc"}))
        return (
            Goal(f'The category "{p.shelf}" is open', visited(shelf)),
            Goal("The products of the category are sorted by price, or the cheapest is found", any_of(ranked, first)),
            Goal("The page of the cheapest one has been read", first),
            Goal(f'The page of "{p.title}" has been read', visited(product_page(p.product))),
        )

    def outcome(self, p: CheapestParams) -> Outcome:
        return Outcome(answer=Text(p.title), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: CheapestParams) -> str:
        await driver.click("link", p.shelf)
        await driver.select("combobox", "Sort by", "Price low to high")
        for title in p.cheaper:
            await driver.click("link", title)
            await driver.back()
        await driver.click("link", p.title)
        return p.title


@dataclass(frozen=True)
class CompareParams(Params):
    first: int
    first_title: str
    second: int
    second_title: str
    asked: str
    winner: str


class Compare(Template[CompareParams]):
    name = "shop-compare"
    sites = ("shop",)
    category = "shop"
    kind = "information"
    difficulty = "medium"
    wordings = (
        'Compare "{first_title}" with "{second_title}": which one {asked}? Answer with its title.',
        'Which {asked}, "{first_title}" or "{second_title}"? Give me the title only.',
    )
    asks = (("weight", "is heavier"), ("warranty", "has the longer warranty"), ("pages", "has more pages"))

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[CompareParams]:
        comparisons: list[CompareParams] = []
        for shelf in shelves(products(golden)).values():
            for (a, b), (code, phrase) in product(combinations(sorted(shelf, key=lambda item: item.id), 2), self.asks):
                first, second = a.number(code), b.number(code)
                if first is not None and second is not None and first != second:
                    winner = a if first > second else b
                    comparisons.append(CompareParams(a.id, a.title, b.id, b.title, phrase, winner.title))
        return rng.sample(comparisons, min(MOST, len(comparisons)))

    def milestones(self, p: CompareParams) -> Milestones:
        first, second = visited(product_page(p.first)), visited(product_page(p.second))
        return (
            Goal("The catalogue is searched, or a category is open", visited(CATALOGUE)),
            Goal("One of the two products has been looked at", any_of(first, second)),
            Goal("The other product is looked for", all_of(any_of(first, second), _both_searched(p, first, second))),
            Goal("Both products have been looked at", all_of(first, second)),
        )

    def outcome(self, p: CompareParams) -> Outcome:
        return Outcome(answer=Text(p.winner), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: CompareParams) -> str:
        await open_product(driver, p.first_title)
        await open_product(driver, p.second_title)
        return p.winner


def _both_searched(p: CompareParams, *pages: Callable[..., bool]) -> Callable[..., bool]:
    """Checks that both products were searched for, or that both pages were opened."""
    return any_of(all_of(searched(p.first_title), searched(p.second_title)), all_of(*pages))


BUCKETS = {"0 to 20": (0, 20), "20 to 40": (20, 40), "40 to 60": (40, 60), "60+": (60, None)}
SORTS = {
    "Price low to high": ("price-asc", "the cheapest first"),
    "Price high to low": ("price-desc", "the dearest first"),
    "Customer rating": ("rating", "the best rated first"),
    "Title A to Z": ("title-asc", "in alphabetical order"),
}


@dataclass(frozen=True)
class ListingParams(Params):
    category: str
    category_id: int
    bucket: str
    span: str
    sort: str
    order: str

    @property
    def facet(self) -> str:
        least, most = BUCKETS[self.bucket]
        return f"price:[{least} TO {'*' if most is None else most}]"


class ShowListing(Template[ListingParams]):
    name = "shop-show-listing"
    sites = ("shop",)
    category = "shop"
    kind = "navigation"
    difficulty = "easy"
    wordings = (
        'Show me what "{category}" has {span}, {order}. Leave that list open.',
        'Open the list of products in "{category}" {span}, sorted so that they come {order}.',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[ListingParams]:
        rows = products(golden)
        named = dict(golden.database("shop").rows("SELECT name, id FROM catalogue_category ORDER BY id"))
        listings: list[ListingParams] = []
        for (name, key), (bucket, (least, most)) in product(named.items(), BUCKETS.items()):
            inside = [
                item
                for item in rows
                if name in (item.shelf, item.department) and least <= item.price <= (most or Decimal("inf"))
            ]
            span = f"from £{least} to £{most}" if most else f"from £{least} on"
            if len(inside) >= 2:
                listings += [ListingParams(name, key, bucket, span, sort, SORTS[sort][1]) for sort in SORTS]
        return rng.sample(listings, min(MOST, len(listings)))

    def milestones(self, p: ListingParams) -> Milestones:
        path, sort = category_page(p.category_id).path, SORTS[p.sort][0]
        narrowed, ranked = {"selected_facets": p.facet}, {"sort_by": sort}
        either = any_of(visited(PagePattern("shop", path, narrowed)), visited(PagePattern("shop", path, ranked)))
        both = PagePattern("shop", path, {**narrowed, **ranked})
        return (
            Goal(f'The category "{p.category}" is open', visited(PagePattern("shop", path))),
            Goal("The category is narrowed to the price range, or sorted", either),
            Goal("The category is narrowed and sorted", visited(both)),
            Goal("The narrowed and sorted list is shown", shows(both)),
        )

    def outcome(self, p: ListingParams) -> Outcome:
        query = {"selected_facets": p.facet, "sort_by": SORTS[p.sort][0]}
        return Outcome(page=PagePattern("shop", category_page(p.category_id).path, query), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: ListingParams) -> None:
        await driver.click("link", p.category)
        await driver.click("link", p.bucket)
        await driver.select("combobox", "Sort by", p.sort)


@dataclass(frozen=True)
class UnknownParams(Params):
    title: str
    noun: str


class UnknownProduct(Template[UnknownParams]):
    """Impossible: each word of the title occurs in the shop, but the product does not exist."""

    name = "shop-unknown-product"
    sites = ("shop",)
    category = "shop"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'What does the "{title}" cost? Answer with the price; if that is not known, say so and why.',
        'Tell me the price of the "{title}". Should that be impossible, answer N/A with the reason.',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[UnknownParams]:
        rows = [item for item in products(golden) if item.kind != "Book"]
        known = {item.title for item in rows}
        brands = sorted({item.title.split()[0] for item in rows})
        unknown: dict[str, UnknownParams] = {}
        for item in rows:
            tail = item.title.partition(" ")[2]
            title = f"{rng.choice(brands)} {tail}"
            if title not in known:
                unknown[title] = UnknownParams(title, tail)
        return list(unknown.values())

    def milestones(self, p: UnknownParams) -> Milestones:
        brand_first = searched(p.title)
        broader = PagePattern("shop", "/search/", {"q": p.noun})
        return (
            Goal("The catalogue is searched, or a category is open", visited(CATALOGUE)),
            Goal(f'"{p.title}" is searched for', brand_first),
            Goal("A broader search, or the category, is looked at", any_of(visited(broader), visited(CATALOGUE))),
            Goal("What comes nearest has been looked through", all_of(brand_first, visited(CATALOGUE))),
        )

    def outcome(self, p: UnknownParams) -> Outcome:
        reason = f'the shop has no product called "{p.title}"'
        mentions = (
            r"no (such |matching )?(product|item|thing|result|match|listing)",
            r"not? (sell|sold|found|listed|exist|carried|stocked|in the (shop|catalogue|store))",
            r"(does|do|did|could|can)(n't| not|not) (exist|find|sell|carry|have|be found)",
            r"0 results|nothing|unknown|none",
        )
        return Outcome(answer=Refusal(reason, mentions), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: UnknownParams) -> str:
        await search(driver, p.title)
        await search(driver, p.noun)
        return Refusal(f'the shop has no product called "{p.title}"', ()).truth()


TEMPLATES = (ProductFact(), CheapestWith(), Compare(), ShowListing(), UnknownProduct())
