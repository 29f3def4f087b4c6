"""Dashboard tasks on prices, stock, categories, ranges, reviews, coupons and customers' accounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import product
from random import Random

from envs.suites.sites.changes import Inserted, SqlValue, Test, Updated
from envs.suites.sites.clock import TODAY
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.shop.shared import VISIT, format_date, products
from envs.suites.sites.tasks.shop_admin.shared import (
    CATEGORIES,
    COUPONS,
    CUSTOMERS,
    PRODUCTS,
    RANGES,
    REVIEWS,
    Dashboard,
    find_customer,
    menu,
    open_product,
)
from envs.suites.sites.templates import Goal, GoldenStates, Milestones, Outcome, Params, any_of, changed, visited

HEALTHY = 8
"""With at least this stock, no stock alert is open and none is raised."""
STOCK_FIELD, PRICE_FIELD = 0, 2
"""Positions of the two fields among the numbers on the tab "Stock and pricing"."""


def product_goals(title: str, key: int, done: Goal) -> Milestones:
    """The milestones of opening a product in the dashboard and doing *done*."""
    form = visited(PagePattern("shop", rf"/dashboard/catalogue/products/{key}/"))
    searched = visited(PagePattern("shop", PRODUCTS.path, {"title": title}))
    return (
        Goal("The list of products is open", visited(PRODUCTS)),
        Goal(f'"{title}" is looked for', any_of(searched, form)),
        Goal(f'"{title}" is open for editing', form),
        done,
    )


@dataclass(frozen=True)
class PriceParams(Params):
    product: int
    title: str
    stockrecord: int
    price: Decimal


class ChangePrice(Dashboard[PriceParams]):
    name = "shop-admin-change-price"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Set the price of "{title}" to £{price}.',
        '"{title}" is to cost £{price} from now on. Change it in the dashboard.',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[PriceParams]:
        rises = ("1.20", "2.35", "4.10", "6.65")
        return [
            PriceParams(item.id, item.title, item.stockrecord, item.price + Decimal(rng.choice(rises)))
            for item in products(golden)
        ]

    def milestones(self, p: PriceParams) -> Milestones:
        done = changed("shop", "partner_stockrecord", id=p.stockrecord, price=p.price)
        return product_goals(p.title, p.product, Goal(f"The product costs £{p.price}", done))

    def outcome(self, p: PriceParams) -> Outcome:
        record = Updated("partner_stockrecord", {"id": p.stockrecord}, {"price": p.price})
        return Outcome(changes={"shop": (record,)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: PriceParams) -> None:
        await open_product(driver, p.title)
        await driver.click("link", "Stock and pricing")
        await driver.type("spinbutton", "", str(p.price), nth=PRICE_FIELD)
        await driver.click("button", "Save")


@dataclass(frozen=True)
class StockParams(Params):
    product: int
    title: str
    stockrecord: int
    stock: int
    more: int


class Restock(Dashboard[StockParams]):
    name = "shop-admin-restock"
    kind = "content"
    difficulty = "medium"
    wordings = (
        '{more} more pieces of "{title}" have arrived. Add them to what we have in stock.',
        'A delivery of {more} × "{title}" came in: raise the number in stock by as many.',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[StockParams]:
        return [
            StockParams(item.id, item.title, item.stockrecord, item.stock, rng.choice((5, 12, 20, 36)))
            for item in products(golden)
            if item.stock >= HEALTHY
        ]

    def milestones(self, p: StockParams) -> Milestones:
        done = changed("shop", "partner_stockrecord", id=p.stockrecord, num_in_stock=p.stock + p.more)
        return product_goals(p.title, p.product, Goal(f"{p.stock + p.more} are in stock", done))

    def outcome(self, p: StockParams) -> Outcome:
        record = Updated("partner_stockrecord", {"id": p.stockrecord}, {"num_in_stock": p.stock + p.more})
        return Outcome(changes={"shop": (record,)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: StockParams) -> None:
        await open_product(driver, p.title)
        await driver.click("link", "Stock and pricing")
        stock = await driver.read(r'\[\d+\] spinbutton "" = "(\d+)"')
        await driver.type("spinbutton", "", str(int(stock) + p.more), nth=STOCK_FIELD)
        await driver.click("button", "Save")


@dataclass(frozen=True)
class HideParams(Params):
    product: int
    title: str


class HideProduct(Dashboard[HideParams]):
    name = "shop-admin-hide-product"
    kind = "configuration"
    difficulty = "medium"
    wordings = (
        'Take "{title}" off the shop\'s public pages, but keep it in the dashboard.',
        'Customers should no longer see "{title}": make it non-public.',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[HideParams]:
        return [HideParams(item.id, item.title) for item in products(golden)]

    def milestones(self, p: HideParams) -> Milestones:
        searched = visited(PagePattern("shop", PRODUCTS.path, {"title": p.title}))
        form = visited(PagePattern("shop", rf"/dashboard/catalogue/products/{p.product}/"))
        done = changed("shop", "catalogue_product", id=p.product, is_public=False)
        return (
            Goal("The list of products is open", visited(PRODUCTS)),
            Goal(f'"{p.title}" is looked for', any_of(searched, form, done)),
            Goal(f'"{p.title}" is open for editing', any_of(form, done)),
            Goal("The product is no longer public", done),
        )

    def outcome(self, p: HideParams) -> Outcome:
        row = Updated("catalogue_product", {"id": p.product}, {"is_public": False})
        return Outcome(changes={"shop": (row,)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: HideParams) -> None:
        await open_product(driver, p.title)
        await driver.click("checkbox", "Is public")
        await driver.click("button", "Save")


@dataclass(frozen=True)
class CategoryParams(Params):
    title: str
    parent: str
    path: str


class CreateCategory(Dashboard[CategoryParams]):
    name = "shop-admin-create-category"
    kind = "configuration"
    difficulty = "medium"
    wordings = (
        'Create a new category "{title}" below "{parent}".',
        'The department "{parent}" needs another category, called "{title}". Add it.',
    )
    titles = ("Gift Ideas", "Second Hand", "New Arrivals", "Made Locally", "Clearance", "Staff Picks")

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[CategoryParams]:
        parents = golden.database("shop").rows(
            "SELECT name, path FROM catalogue_category WHERE depth = 1 ORDER BY path"
        )
        return [CategoryParams(title, *parent) for title, parent in product(self.titles, parents)]

    def milestones(self, p: CategoryParams) -> Milestones:
        form = visited(PagePattern("shop", CATEGORIES.path + r"create/(\d+)?"))
        created = changed("shop", "catalogue_category", name=p.title)
        placed = changed("shop", "catalogue_category", name=p.title, path=below(p.path))
        return (
            Goal("The categories are open", visited(CATEGORIES)),
            Goal("The form for a new category is open", form),
            Goal(f'There is a category "{p.title}"', created),
            Goal(f'It lies below "{p.parent}"', placed),
        )

    def outcome(self, p: CategoryParams) -> Outcome:
        values = {"name": p.title, "path": below(p.path), "depth": 2, "is_public": True}
        neighbours = Updated("catalogue_category", {"path": within(p.path)}, {}, allowed=("path", "numchild"))
        return Outcome(
            changes={"shop": (Inserted("catalogue_category", values),)}, allowed={"shop": (*VISIT["shop"], neighbours)}
        )

    async def solve(self, driver: PageDriver, p: CategoryParams) -> None:
        await menu(driver, "Catalog", "Categories")
        await driver.click("link", "Create new category")
        await driver.type("textbox", "Name", p.title)
        await driver.select("combobox", "Relative to", p.parent)
        await driver.click("button", "Save")


def below(parent: str) -> Test:
    """Tests for the tree path of a child of *parent*."""
    return lambda value: isinstance(value, str) and value.startswith(parent) and len(value) == len(parent) + 4


def within(parent: str) -> Test:
    """Tests for the tree path *parent* or that of a child. A new first child changes the paths of the others."""
    return lambda value: value == parent or below(parent)(value)


@dataclass(frozen=True)
class RangeParams(Params):
    title: str
    category: str
    option: str
    key: int


class CreateRange(Dashboard[RangeParams]):
    name = "shop-admin-create-range"
    kind = "configuration"
    difficulty = "medium"
    wordings = (
        'Create a product range called "{title}" that includes the category "{category}" and nothing else.',
        'I need a new range "{title}" for offers; the category "{category}" is all it includes.',
    )
    titles = ("Autumn promotion", "Bank holiday", "Members only")

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[RangeParams]:
        rows = golden.database("shop").rows(
            "SELECT c.name, d.name || ' > ' || c.name, c.id FROM catalogue_category c"
            " JOIN catalogue_category d ON d.path = substr(c.path, 1, 4) WHERE c.depth = 2 ORDER BY c.id"
        )
        return [RangeParams(title, *row) for title, row in product(self.titles, rows)]

    def milestones(self, p: RangeParams) -> Milestones:
        return (
            Goal("The ranges are open", visited(RANGES)),
            Goal("The form for a new range is open", visited(PagePattern("shop", RANGES.path + "create/"))),
            Goal(f'There is a range "{p.title}"', changed("shop", "offer_range", name=p.title)),
            Goal(f'It includes "{p.category}"', changed("shop", "offer_range_included_categories", category_id=p.key)),
        )

    def outcome(self, p: RangeParams) -> Outcome:
        created = Inserted("offer_range", {"name": p.title, "includes_all_products": False})
        return Outcome(
            changes={"shop": (created, Inserted("offer_range_included_categories", {"category_id": p.key}))},
            allowed=VISIT,
        )

    async def solve(self, driver: PageDriver, p: RangeParams) -> None:
        await menu(driver, "Catalog", "Ranges")
        await driver.click("link", "Create new range")
        await driver.type("textbox", "Name", p.title)
        await driver.select("listbox", "Included Categories", p.option)
        await driver.click("button", "Save")


@dataclass(frozen=True)
class ReviewParams(Params):
    review: int
    product: int
    title: str
    customer: str
    verb: str
    option: str
    status: int


class ModerateReview(Dashboard[ReviewParams]):
    name = "shop-admin-moderate-review"
    kind = "content"
    difficulty = "medium"
    wordings = (
        '{verb} the review of "{title}" that {customer} wrote.',
        '{customer} has reviewed "{title}", and the review waits for moderation. {verb} it.',
    )
    verbs = (("Approve", "Approved", 1), ("Reject", "Rejected", 2))

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[ReviewParams]:
        rows = golden.database("shop").rows(
            "SELECT r.id, p.id, p.title, u.first_name || ' ' || u.last_name FROM reviews_productreview r"
            " JOIN catalogue_product p ON p.id = r.product_id JOIN auth_user u ON u.id = r.user_id"
            " WHERE r.status = 0 ORDER BY r.id"
        )
        return [
            ReviewParams(key, sold, title, customer, verb, option, status)
            for (key, sold, title, customer), (verb, option, status) in product(rows, self.verbs)
        ]

    def milestones(self, p: ReviewParams) -> Milestones:
        name, last = p.customer, p.customer.split()[-1]
        named = any_of(*(visited(PagePattern("shop", REVIEWS.path, {"name": text})) for text in (name, last)))
        waiting = visited(PagePattern("shop", REVIEWS.path, {"status": "0"}))
        form = visited(PagePattern("shop", rf"{REVIEWS.path}{p.review}/"))
        touched = changed("shop", "reviews_productreview", id=p.review)
        return (
            Goal("The reviews are open", visited(REVIEWS)),
            Goal(f"Reviews by {p.customer}, or reviews that wait, are listed", any_of(named, waiting, form, touched)),
            Goal("The review has got another status", touched),
            Goal(
                f"The review is {p.option.lower()}",
                changed("shop", "reviews_productreview", id=p.review, status=p.status),
            ),
        )

    def outcome(self, p: ReviewParams) -> Outcome:
        row = Updated("reviews_productreview", {"id": p.review}, {"status": p.status})
        rating = Updated("catalogue_product", {"id": p.product}, {}, allowed=("rating",))
        return Outcome(changes={"shop": (row,)}, allowed={"shop": (*VISIT["shop"], rating)})

    async def solve(self, driver: PageDriver, p: ReviewParams) -> None:
        await menu(driver, "Content", "Reviews")
        await driver.type("textbox", "Customer name:", p.customer)
        await driver.click("button", "Search")
        await driver.click("checkbox", "selected_review", row=p.title)
        await driver.select("combobox", "status", p.option)
        await driver.click("button", "Update")


@dataclass(frozen=True)
class CouponParams(Params):
    title: str
    code: str
    offer: str
    offer_id: int
    last: date
    until: str
    usage: str
    usage_option: str
    who: str


class CreateCoupon(Dashboard[CouponParams]):
    name = "shop-admin-create-coupon"
    kind = "configuration"
    difficulty = "hard"
    wordings = (
        'Create a coupon named "{title}" with the code {code} for the offer "{offer}". It is valid from now until '
        "{until}, 00:00, and {who}.",
        'We need a new coupon: name "{title}", code {code}, valid from now until {until} at midnight (00:00). It '
        'brings the offer "{offer}" and {who}.',
    )
    names = (
        ("Easter", "EASTER26"),
        ("Loyal friends", "LOYAL7"),
        ("Newsletter", "NEWS2026"),
        ("Sorry for the wait", "SORRY5"),
    )
    usages = (
        ("Single use", "Can be used once by one customer", "can be used once, by one customer"),
        ("Once per customer", "Can only be used once per customer", "can be used once by each customer"),
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[CouponParams]:
        offers = golden.database("shop").rows(
            "SELECT name, id FROM offer_conditionaloffer WHERE offer_type = 'Voucher' ORDER BY id"
        )
        coupons: list[CouponParams] = []
        for (title, code), (offer, key), usage in product(self.names, offers, self.usages):
            last = TODAY + timedelta(days=rng.randint(20, 200))
            coupons.append(CouponParams(title, code, offer, key, last, format_date(last), *usage))
        return coupons

    def milestones(self, p: CouponParams) -> Milestones:
        form = visited(PagePattern("shop", COUPONS.path + "create/"))
        row = changed("shop", "voucher_voucher", code=p.code)
        return (
            Goal("The coupons are open", visited(COUPONS)),
            Goal("The form for a new coupon is open", form),
            Goal(f"There is a coupon {p.code}", row),
            Goal(f'It brings "{p.offer}"', changed("shop", "voucher_voucher_offers", conditionaloffer_id=p.offer_id)),
        )

    def outcome(self, p: CouponParams) -> Outcome:
        values = {"name": p.title, "code": p.code, "usage": p.usage, "end_datetime": f"{p.last.isoformat()} 00:00:00"}
        return Outcome(
            changes={
                "shop": (
                    Inserted("voucher_voucher", {**values, "start_datetime": _today}),
                    Inserted("voucher_voucher_offers", {"conditionaloffer_id": p.offer_id}),
                )
            },
            allowed=VISIT,
        )

    async def solve(self, driver: PageDriver, p: CouponParams) -> None:
        await menu(driver, "Offers", "Coupons")
        await driver.click("link", "Create new coupon")
        await driver.type("textbox", "Name", p.title)
        await driver.type("textbox", "Code", p.code)
        await driver.type("textbox", "End datetime", f"{p.last.isoformat()} 00:00:00")
        await driver.select("combobox", "Usage", p.usage_option)
        await driver.select("listbox", "Which offers apply for this voucher?", p.offer)
        await driver.click("button", "Save")


def _today(value: SqlValue) -> bool:
    return isinstance(value, str) and value.startswith(TODAY.isoformat())


@dataclass(frozen=True)
class AccountParams(Params):
    customer: str
    key: int


class DeactivateCustomer(Dashboard[AccountParams]):
    name = "shop-admin-deactivate-customer"
    kind = "configuration"
    difficulty = "medium"
    wordings = (
        "Make the account of our customer {customer} inactive.",
        "{customer} has asked us to close the account: set it to inactive.",
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[AccountParams]:
        rows = golden.database("shop").rows(
            "SELECT first_name || ' ' || last_name, id FROM auth_user WHERE NOT is_staff ORDER BY id"
        )
        return [AccountParams(*row) for row in rows]

    def milestones(self, p: AccountParams) -> Milestones:
        listed = visited(PagePattern("shop", CUSTOMERS.path, {"name": p.customer}))
        touched = changed("shop", "auth_user", id=p.key)
        return (
            Goal("The list of customers is open", visited(CUSTOMERS)),
            Goal(f"{p.customer} is looked for", any_of(listed, touched)),
            Goal("The account has been changed", touched),
            Goal("The account is inactive", changed("shop", "auth_user", id=p.key, is_active=False)),
        )

    def outcome(self, p: AccountParams) -> Outcome:
        return Outcome(changes={"shop": (Updated("auth_user", {"id": p.key}, {"is_active": False}),)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: AccountParams) -> None:
        await find_customer(driver, p.customer)
        await driver.click("checkbox", "selected_user", row=p.customer)
        await driver.click("radio", "Make inactive")
        await driver.click("button", "Go!")


TEMPLATES = (
    ChangePrice(),
    Restock(),
    HideProduct(),
    CreateCategory(),
    CreateRange(),
    ModerateReview(),
    CreateCoupon(),
    DeactivateCustomer(),
)
