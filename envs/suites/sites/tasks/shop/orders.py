"""Shop tasks on the customer's own orders: facts, sums, search and reorder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import product
from random import Random

from envs.suites.sites.answers import Number, Text
from envs.suites.sites.changes import Inserted
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.shop.shared import ACCOUNT, CUSTOMER, VISIT, day, format_date, open_orders, products
from envs.suites.sites.templates import (
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    all_of,
    any_of,
    changed,
    sent,
    shows,
    visited,
)

ORDERS = PagePattern("shop", r"/accounts/orders/")


@dataclass(frozen=True, slots=True)
class OwnOrder:
    """One of the customer's orders."""

    number: str
    placed: date
    total: Decimal
    delivery: Decimal
    lines: Mapping[str, int]
    """Maps product titles to quantities."""
    place: int
    """0-based position in the order history, latest first."""


def own_orders(golden: GoldenStates) -> list[OwnOrder]:
    """The customer's orders, latest first."""
    shop = golden.database("shop")
    rows = shop.rows(
        "SELECT id, number, date_placed, total_incl_tax, shipping_incl_tax FROM order_order WHERE user_id = ?"
        " ORDER BY date_placed DESC",
        CUSTOMER,
    )
    lines = {
        key: dict(shop.rows("SELECT title, quantity FROM order_line WHERE order_id = ? ORDER BY id", key))
        for key, *_ in rows
    }
    return [
        OwnOrder(number, day(placed), _pounds(total), _pounds(delivery), lines[key], place)
        for place, (key, number, placed, total, delivery) in enumerate(rows)
    ]


def _pounds(stored: float) -> Decimal:
    return Decimal(str(stored)).quantize(Decimal("0.01"))


PAGE = 20
"""Orders per page of the history."""


@dataclass(frozen=True)
class OrderFactParams(Params):
    number: str
    date: str
    asked: str
    pattern: str
    """A regular expression that reads the value from the order's page."""
    value: Decimal
    place: int


class OrderFact(Template[OrderFactParams]):
    name = "shop-order-fact"
    sites = ("shop",)
    category = "shop"
    kind = "information"
    difficulty = "easy"
    wordings = (
        "I placed an order on {date}. What was {asked}? Answer with one number.",
        "Look at my order of {date} and tell me {asked}, as a number.",
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[OrderFactParams]:
        orders = own_orders(golden)
        days = Counter(order.placed for order in orders)
        instances: list[OrderFactParams] = []
        for order in orders:
            if days[order.placed] == 1:
                facts = (
                    ("its total in pounds, delivery included", r"^Order total \| £([\d,.]+)$", order.total),
                    ("the delivery charge in pounds", r"^Shipping total \| £([\d,.]+)$", order.delivery),
                    (
                        "the price of the goods alone in pounds",
                        r"^Cart total \| £([\d,.]+)$",
                        order.total - order.delivery,
                    ),
                )
                instances += [
                    OrderFactParams(order.number, format_date(order.placed), phrase, pattern, value, order.place)
                    for phrase, pattern, value in facts
                ]
        return instances

    def milestones(self, p: OrderFactParams) -> Milestones:
        page = PagePattern("shop", rf"/accounts/orders/{p.number}/")
        return (
            Goal("The account is open", visited(ACCOUNT)),
            Goal("The order history is open", visited(ORDERS)),
            Goal(f"The order of {p.date} has been opened", visited(page)),
            Goal(f"The order of {p.date} is shown", shows(page)),
        )

    def outcome(self, p: OrderFactParams) -> Outcome:
        return Outcome(answer=Number(p.value), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: OrderFactParams) -> str:
        await open_orders(driver)
        if p.place >= PAGE:
            await driver.click("link", "next")
        await driver.click("link", p.number)
        return await driver.read(p.pattern)


@dataclass(frozen=True)
class SpanParams(Params):
    first: date
    last: date
    total: Decimal
    from_day: str
    to_day: str


class SpentBetween(Template[SpanParams]):
    name = "shop-spent-between"
    sites = ("shop",)
    category = "shop"
    kind = "information"
    difficulty = "medium"
    wordings = (
        "How many pounds did all my orders from {from_day} to {to_day} come to, delivery included? "
        "Count every order, whatever became of it, and answer with one number.",
        "Add up the totals of the orders that I placed from {from_day} up to {to_day} and give me the sum in pounds.",
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[SpanParams]:
        orders = own_orders(golden)
        starts = [date(2025 + n // 12, n % 12 + 1, 1) for n in range(1, 16)]
        spans: list[SpanParams] = []
        for a, b in product(starts, starts):
            inside = [order for order in orders if a <= order.placed < b]
            last = b - timedelta(days=1)
            if 2 <= len(inside) <= 6:
                spans.append(
                    SpanParams(a, last, sum(o.total for o in inside) or Decimal(), format_date(a), format_date(last))
                )
        return spans

    def milestones(self, p: SpanParams) -> Milestones:
        query = {"date_from": p.first.isoformat(), "date_to": p.last.isoformat()}
        within = PagePattern("shop", ORDERS.path, query)
        return (
            Goal("The account is open", visited(ACCOUNT)),
            Goal("The order history is open", visited(ORDERS)),
            Goal(
                "The order history is narrowed to the days asked for, or its next page is open",
                any_of(visited(within), visited(_second_page())),
            ),
            Goal(
                "The orders of those days are shown",
                any_of(shows(within), all_of(visited(_second_page()), shows(ORDERS))),
            ),
        )

    def outcome(self, p: SpanParams) -> Outcome:
        return Outcome(answer=Number(p.total), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: SpanParams) -> str:
        await open_orders(driver)
        await _filter(driver, p.first, p.last)
        totals = re.findall(r"\| £([\d,]+\.\d\d) \|", await driver.text())
        return str(sum(Decimal(total.replace(",", "")) for total in totals))


def _second_page() -> PagePattern:
    return PagePattern("shop", ORDERS.path, {"page": "2"})


async def _filter(driver: PageDriver, first: date, last: date) -> None:
    """Filters the order history by date: three actions."""
    await driver.type("textbox", "From", first.isoformat())
    await driver.type("textbox", "To", last.isoformat())
    await driver.click("button", "Filter results")


@dataclass(frozen=True)
class WhichOrderParams(Params):
    title: str
    first: date
    last: date
    span: str
    number: str
    wrong: tuple[str, ...]
    """Orders of the time span that are listed before the right one."""


class WhichOrder(Template[WhichOrderParams]):
    """Asks in which order a product was bought. The history does not list products, so orders are opened."""

    name = "shop-which-order"
    sites = ("shop",)
    category = "shop"
    kind = "information"
    difficulty = "hard"
    wordings = (
        'In which of my orders {span} did I buy "{title}"? Answer with the order number.',
        'I bought "{title}" {span}. What is the number of that order?',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[WhichOrderParams]:
        orders = own_orders(golden)
        instances: dict[tuple[str, str], WhichOrderParams] = {}
        for place, order in enumerate(orders):
            for before in (2, 3):
                listed = orders[max(0, place - before) : place + 1]
                first, last = order.placed, listed[0].placed
                inside = [other for other in orders if first <= other.placed <= last]
                if len(listed) <= before or inside[-1] != order:
                    continue
                span = f"from {format_date(first)} to {format_date(last)}"
                wrong = tuple(other.number for other in inside[:-1])
                for title in order.lines:
                    if 2 <= len(wrong) <= 3 and sum(title in other.lines for other in inside) == 1:
                        instances[title, span] = WhichOrderParams(title, first, last, span, order.number, wrong)
        return list(instances.values())

    def milestones(self, p: WhichOrderParams) -> Milestones:
        page = PagePattern("shop", rf"/accounts/orders/{p.number}/")
        any_order = PagePattern("shop", r"/accounts/orders/\d+/")
        return (
            Goal("The account is open", visited(ACCOUNT)),
            Goal("The order history is open", visited(ORDERS)),
            Goal("An order has been opened", visited(any_order)),
            Goal(f'The order with "{p.title}" has been opened', visited(page)),
        )

    def outcome(self, p: WhichOrderParams) -> Outcome:
        return Outcome(
            answer=Text(p.number, (f"#{p.number}", f"order {p.number}", f"order #{p.number}")), allowed=VISIT
        )

    async def solve(self, driver: PageDriver, p: WhichOrderParams) -> str:
        await open_orders(driver)
        await _filter(driver, p.first, p.last)
        for number in p.wrong:
            await driver.click("link", number)
            await driver.back()
        await driver.click("link", p.number)
        return p.number


@dataclass(frozen=True)
class ReorderParams(Params):
    number: str
    date: str
    lines: tuple[tuple[int, int], ...]
    """Product key and quantity of each line."""


class Reorder(Template[ReorderParams]):
    name = "shop-reorder"
    sites = ("shop",)
    category = "shop"
    kind = "content"
    difficulty = "easy"
    wordings = (
        "Put everything that I ordered on {date} into my basket again, in the same quantities. Do not check out.",
        "I want the same things once more as in my order of {date}: fill my basket with them, but do not order yet.",
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[ReorderParams]:
        orders = own_orders(golden)
        days = Counter(order.placed for order in orders)
        known = {item.title: item for item in products(golden)}
        return [
            ReorderParams(
                order.number,
                format_date(order.placed),
                tuple((known[title].id, quantity) for title, quantity in order.lines.items()),
            )
            for order in orders
            if days[order.placed] == 1
            and order.place < PAGE
            and all(known[title].stock >= n for title, n in order.lines.items())
        ]

    def milestones(self, p: ReorderParams) -> Milestones:
        page = PagePattern("shop", rf"/accounts/orders/{p.number}/")
        lines = [changed("shop", "basket_line", product_id=key, quantity=quantity) for key, quantity in p.lines]
        return (
            Goal("The order history is open", visited(ORDERS)),
            Goal(f"The order of {p.date} is open", visited(page)),
            Goal("Some of the order is in the basket again", any_of(sent(page), *lines)),
            Goal("All of the order is in the basket again", all_of(*lines)),
        )

    def outcome(self, p: ReorderParams) -> Outcome:
        lines = [Inserted("basket_line", {"product_id": key, "quantity": quantity}) for key, quantity in p.lines]
        return Outcome(changes={"shop": lines}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: ReorderParams) -> None:
        await open_orders(driver)
        await driver.click("link", p.number)
        await driver.click("button", "Re-order all items")


TEMPLATES = (OrderFact(), SpentBetween(), WhichOrder(), Reorder())
