"""Dashboard tasks on figures: customers' totals, order statistics and reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import product
from random import Random

from envs.suites.sites.answers import Number, Refusal
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.shop.shared import VISIT, format_date
from envs.suites.sites.tasks.shop_admin.shared import (
    CUSTOMERS,
    REPORTS,
    STATISTICS,
    Dashboard,
    find_customer,
    menu,
    placed_orders,
)
from envs.suites.sites.templates import Goal, GoldenStates, Milestones, Outcome, Params, any_of, shows, visited


@dataclass(frozen=True)
class CustomerParams(Params):
    customer: str
    key: int
    asked: str
    verb: str
    label: str
    value: Decimal


class CustomerFigures(Dashboard[CustomerParams]):
    name = "shop-admin-customer-figures"
    kind = "information"
    difficulty = "medium"
    wordings = (
        "{asked} {customer} {verb}? Answer with one number.",
        "About our customer {customer}: {asked} this person {verb}? A number will do.",
    )
    asks = (
        ("How many pounds has", "spent with us in total", "Total spent"),
        ("How many orders has", "placed with us", "Number of orders"),
        ("How many items in all has", "ordered from us", "Number of ordered items"),
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[CustomerParams]:
        rows = golden.database("shop").rows(
            "SELECT u.first_name || ' ' || u.last_name, u.id, r.total_spent, r.num_orders, r.num_order_items"
            " FROM analytics_userrecord r JOIN auth_user u ON u.id = r.user_id ORDER BY u.id"
        )
        return [
            CustomerParams(name, key, *ask, Decimal(str(value)))
            for name, key, *values in rows
            for ask, value in zip(self.asks, values, strict=True)
        ]

    def milestones(self, p: CustomerParams) -> Milestones:
        page = PagePattern("shop", rf"/dashboard/users/{p.key}/")
        listed = PagePattern("shop", CUSTOMERS.path, {"name": p.customer})
        return (
            Goal("The list of customers is open", visited(CUSTOMERS)),
            Goal(f"{p.customer} is looked for", any_of(visited(listed), visited(page))),
            Goal(f"The page of {p.customer} has been opened", visited(page)),
            Goal(f"The page of {p.customer} is shown", shows(page)),
        )

    def outcome(self, p: CustomerParams) -> Outcome:
        return Outcome(answer=Number(p.value), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: CustomerParams) -> str:
        await find_customer(driver, p.customer)
        await driver.click("link", "View", row=p.customer)
        return await driver.read(rf"^{p.label} \| £?([\d,.]+)$")


@dataclass(frozen=True)
class SpanParams(Params):
    first: date
    last: date
    from_day: str
    to_day: str
    asked: str
    label: str
    value: Decimal


class OrderStatistics(Dashboard[SpanParams]):
    name = "shop-admin-order-statistics"
    kind = "information"
    difficulty = "medium"
    wordings = (
        "{asked} in the time from {from_day} to {to_day}? Answer with one number.",
        "Use the order statistics: {asked} from {from_day} up to and including {to_day}? One number, please.",
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[SpanParams]:
        orders = placed_orders(golden)
        starts = [date(2025 + n // 12, n % 12 + 1, 1) for n in range(1, 15)]
        spans: list[SpanParams] = []
        for a, b in product(starts, starts):
            inside = [order for order in orders if a <= order.placed < b]
            last = b - timedelta(days=1)
            if inside:
                revenue = sum((order.total for order in inside), Decimal())
                span = (a, last, format_date(a), format_date(last))
                spans.append(SpanParams(*span, "How many orders were placed", "Total orders", Decimal(len(inside))))
                spans.append(SpanParams(*span, "How many pounds of revenue came from orders", "Total revenue", revenue))
        return spans

    def milestones(self, p: SpanParams) -> Milestones:
        begun = PagePattern("shop", STATISTICS.path, {"date_from": p.first.isoformat()})
        narrowed = PagePattern(
            "shop", STATISTICS.path, {"date_from": p.first.isoformat(), "date_to": p.last.isoformat()}
        )
        return (
            Goal("The statistics of orders are open", visited(STATISTICS)),
            Goal("The statistics start at the first day asked for", visited(begun)),
            Goal("The statistics are narrowed to the days asked for", visited(narrowed)),
            Goal("The figures of the days asked for are shown", shows(narrowed)),
        )

    def outcome(self, p: SpanParams) -> Outcome:
        return Outcome(answer=Number(p.value), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: SpanParams) -> str:
        await menu(driver, "Fulfilment", "Statistics")
        await driver.type("textbox", "From:", p.first.isoformat())
        await driver.type("textbox", "To:", p.last.isoformat())
        await driver.click("button", "Filter result")
        return (await driver.read(rf"^{p.label} \| £?([\d,.]+)$")).replace(",", "")


@dataclass(frozen=True)
class ReportParams(Params):
    report: str
    code: str
    first: date
    last: date
    from_day: str
    to_day: str


class ShowReport(Dashboard[ReportParams]):
    name = "shop-admin-show-report"
    kind = "navigation"
    difficulty = "medium"
    wordings = (
        'Show me the report "{report}" from {from_day} to {to_day} and leave it open.',
        'Generate the report "{report}" for the time from {from_day} to {to_day}; I will read it on the screen.',
    )
    reports = (
        ("Orders placed", "order_report"),
        ("Open carts", "open_baskets"),
        ("Submitted carts", "submitted_baskets"),
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[ReportParams]:
        starts = [date(2025 + n // 12, n % 12 + 1, 1) for n in range(1, 15)]
        spans = [(a, b - timedelta(days=1)) for a, b in product(starts, starts) if a < b]
        return [
            ReportParams(*report, a, b, format_date(a), format_date(b))
            for report, (a, b) in product(self.reports, rng.sample(spans, 60))
        ]

    def milestones(self, p: ReportParams) -> Milestones:
        of_kind = PagePattern("shop", REPORTS.path, {"report_type": p.code})
        return (
            Goal("The reports are open", visited(REPORTS)),
            Goal(f'A report "{p.report}" has been made', visited(of_kind)),
            Goal("A report for the days asked for has been made", visited(self._page(p))),
            Goal("The report for the days asked for is shown", shows(self._page(p))),
        )

    def outcome(self, p: ReportParams) -> Outcome:
        return Outcome(page=self._page(p), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: ReportParams) -> None:
        await driver.click("link", "Reports")
        await driver.select("combobox", "Report Type:", p.report)
        await driver.type("textbox", "Date from:", p.first.isoformat())
        await driver.type("textbox", "Date to:", p.last.isoformat())
        await driver.click("button", "Generate report")

    @staticmethod
    def _page(p: ReportParams) -> PagePattern:
        query = {"report_type": p.code, "date_from": p.first.isoformat(), "date_to": p.last.isoformat()}
        return PagePattern("shop", REPORTS.path, query)


@dataclass(frozen=True)
class NobodyParams(Params):
    customer: str
    first_name: str
    last_name: str


class UnknownCustomer(Dashboard[NobodyParams]):
    """Impossible: the first name and the last name belong to different customers."""

    name = "shop-admin-unknown-customer"
    kind = "impossible"
    difficulty = "medium"
    wordings = (
        "How many orders has our customer {customer} placed? If that cannot be said, answer N/A and why.",
        "Tell me the e-mail address of our customer {customer}, or answer N/A with the reason if you cannot.",
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[NobodyParams]:
        people = golden.database("shop").rows(
            "SELECT first_name, last_name FROM auth_user WHERE NOT is_staff ORDER BY id"
        )
        pairs = [rng.sample(people, 2) for _ in range(60)]
        return sorted(
            {NobodyParams(f"{a[0]} {b[1]}", a[0], b[1]) for a, b in pairs}, key=lambda nobody: nobody.customer
        )

    def milestones(self, p: NobodyParams) -> Milestones:
        by_name = visited(PagePattern("shop", CUSTOMERS.path, {"name": p.customer}))
        parts = [PagePattern("shop", CUSTOMERS.path, {"name": name}) for name in (p.last_name, p.first_name)]
        by_part = any_of(*(visited(page) for page in parts))
        return (
            Goal("The list of customers is open", visited(CUSTOMERS)),
            Goal(f"{p.customer} is looked for", any_of(by_name, by_part)),
            Goal("A part of the name is looked for", by_part),
            Goal("The results for a part of the name are shown", any_of(*(shows(page) for page in parts))),
        )

    def outcome(self, p: NobodyParams) -> Outcome:
        return Outcome(answer=self._refusal(p), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: NobodyParams) -> str:
        await find_customer(driver, p.customer)
        await driver.type("textbox", "Name:", p.last_name)
        await driver.click("button", "Search")
        return self._refusal(p).truth()

    @staticmethod
    def _refusal(p: NobodyParams) -> Refusal:
        mentions = (
            r"no (such )?(customer|account|user|one|body|record|match|result)|nobody|unknown|none",
            r"(not|n't) (exist|found|find|have|be found|listed|a customer|registered|known)|0 results",
        )
        return Refusal(f"there is no customer called {p.customer}", mentions)


TEMPLATES = (CustomerFigures(), OrderStatistics(), ShowReport(), UnknownCustomer())
