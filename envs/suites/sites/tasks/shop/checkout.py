"""Shop tasks that place an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from envs.suites.sites.changes import Expected, ExpectedValue, Inserted, Test, Updated
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.shop.shared import CUSTOMER, VISIT, Product, open_product, product_page, products, searched
from envs.suites.sites.templates import (
    Check,
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    any_of,
    changed,
    visited,
)

SHIPPING_ADDRESS = PagePattern("shop", r"/checkout/shipping-address/")
DELIVERIES = (
    ("standard", "standard delivery", 0, Decimal("3.95")),
    ("express", "express delivery", 1, Decimal("8.50")),
    ("collect", "collection from the shop", 2, Decimal("0.00")),
)
"""Code, name in wordings, position on the checkout page, and charge."""
DISCOUNTED = ("Games", "Outdoors")
"""Departments with an offer that changes prices in the basket."""


@dataclass(frozen=True)
class OrderParams(Params):
    product: int
    title: str
    stockrecord: int
    total: Decimal
    person: str
    address: int
    address_place: int
    """Position on the checkout page; the default address is 0."""
    first_name: str
    last_name: str
    line1: str
    delivery: str
    delivery_code: str
    delivery_place: int


def addresses(golden: GoldenStates) -> tuple[tuple[int, str, str, str], ...]:
    """Key, names and street of the customer's addresses, in the order of the checkout."""
    return golden.database("shop").rows(
        "SELECT id, first_name, last_name, line1 FROM address_useraddress WHERE user_id = ?"
        " ORDER BY is_default_for_shipping DESC, id",
        CUSTOMER,
    )


def order_changes(p: OrderParams, *, voucher: int | None = None) -> Outcome:
    """The outcome of ordering one item of *p*, with or without a voucher."""
    number: dict[str, ExpectedValue] = {"number": "100001"}
    order: dict[str, ExpectedValue] = {
        **number,
        "user_id": CUSTOMER,
        "shipping_code": p.delivery_code,
        "status": "Pending",
    }
    ship_to: dict[str, ExpectedValue] = {"first_name": p.first_name, "last_name": p.last_name, "line1": p.line1}
    changes: list[Expected] = [
        Inserted("order_order", {**order, "total_incl_tax": p.total if voucher is None else about(p.total)}),
        Inserted("order_line", {"product_id": p.product, "quantity": 1}),
        Inserted("order_lineprice", {"quantity": 1}),
        Inserted("order_shippingaddress", ship_to),
        Updated("partner_stockrecord", {"id": p.stockrecord}, {"num_allocated": 1}),
        Updated("address_useraddress", {"id": p.address}, {"num_orders_as_shipping_address": 1}),
        Inserted("basket_line", {"product_id": p.product, "quantity": 1}),
        Inserted("basket_basket", {"status": "Submitted"}),
    ]
    allowed: list[Expected] = [*VISIT["shop"], Inserted("order_communicationevent", {})]
    if voucher is not None:
        counted = ("num_orders", "total_discount")
        changes += [
            Inserted("basket_basket_vouchers", {"voucher_id": voucher}),
            Inserted("voucher_voucherapplication", {"voucher_id": voucher, "user_id": CUSTOMER}),
            Inserted("order_orderdiscount", {"voucher_id": voucher}),
            Inserted("order_orderlinediscount", {}),
            Updated("voucher_voucher", {"id": voucher}, {"num_basket_additions": 1}, allowed=counted),
        ]
        allowed.append(Updated("offer_conditionaloffer", {}, {}, allowed=("num_applications", *counted)))
    return Outcome(changes={"shop": changes}, allowed={"shop": allowed})


def order_milestones(p: OrderParams) -> Milestones:
    """The milestones of ordering one item."""
    return (
        Goal(f'The page of "{p.title}" is open, or it is searched for', any_of(searched(p.title), _page(p))),
        Goal(f'"{p.title}" is in the basket', changed("shop", "basket_line", product_id=p.product)),
        Goal("The checkout has been begun", visited(SHIPPING_ADDRESS)),
        Goal(f"The order to {p.person} is placed", changed("shop", "order_shippingaddress", last_name=p.last_name)),
    )


def _page(p: OrderParams) -> Check:
    return visited(product_page(p.product))


def about(pounds: Decimal) -> Test:
    """Tests that an amount is right to the penny. Rounding of a discount may differ."""
    return lambda value: isinstance(value, int | float) and abs(Decimal(str(value)) - pounds) <= Decimal("0.01")


async def check_out(driver: PageDriver, p: OrderParams) -> None:
    """Checks out from the page of addresses: four actions."""
    if p.address_place == 0:
        await driver.click("button", "Ship to your default shipping address")
    else:
        await driver.click("button", "Ship to this address", nth=p.address_place - 1)
    await driver.click("button", "Select option", nth=p.delivery_place)
    await driver.click("link", "Continue")
    await driver.click("button", "Place order")


def sample_orders(golden: GoldenStates, rng: Random, rows: Sequence[Product], per_cent: int = 0) -> list[OrderParams]:
    """One order for each of *rows*, to a random address of the address book, with a discount of *per_cent*."""
    book = addresses(golden)
    orders: list[OrderParams] = []
    for item in rows:
        place = rng.randrange(len(book))
        key, first, last, line1 = book[place]
        code, delivery, option, charge = rng.choice(DELIVERIES)
        total = item.price * (100 - per_cent) / 100 + charge
        orders.append(
            OrderParams(
                item.id,
                item.title,
                item.stockrecord,
                total,
                f"{first} {last}",
                key,
                place,
                first,
                last,
                line1,
                delivery,
                code,
                option,
            )
        )
    return orders


class Order(Template[OrderParams]):
    name = "shop-order"
    sites = ("shop",)
    category = "shop"
    kind = "content"
    difficulty = "hard"
    wordings = (
        'Order one "{title}" for {person}, at the address in my address book, with {delivery}.',
        'Buy one "{title}" and have it sent to {person} from my address book; choose {delivery}.',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[OrderParams]:
        rows = [item for item in products(golden) if item.stock and item.department not in DISCOUNTED]
        return sample_orders(golden, rng, rows)

    def milestones(self, p: OrderParams) -> Milestones:
        return order_milestones(p)

    def outcome(self, p: OrderParams) -> Outcome:
        return order_changes(p)

    async def solve(self, driver: PageDriver, p: OrderParams) -> None:
        await open_product(driver, p.title)
        await driver.click("button", "Add to cart")
        await driver.click("link", "Checkout now")
        await check_out(driver, p)


@dataclass(frozen=True)
class CouponOrderParams(OrderParams):
    coupon: str
    voucher: int


class OrderWithCoupon(Template[CouponOrderParams]):
    name = "shop-order-with-coupon"
    sites = ("shop",)
    category = "shop"
    kind = "content"
    difficulty = "hard"
    wordings = (
        'Order one "{title}" with the coupon {coupon}, to be sent to {person} (see my address book) with {delivery}.',
        'Use my coupon {coupon} to buy one "{title}" for {person}, whose address is in my address book, by {delivery}.',
    )
    coupons = (
        ("WELCOME10", 10, None),
        ("KITCHEN15", 15, "Kitchen"),
        ("BOOKCLUB20", 20, "Books"),
        ("SPRING25", 25, "Garden"),
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[CouponOrderParams]:
        keys = dict(golden.database("shop").rows("SELECT code, id FROM voucher_voucher"))
        rows = [item for item in products(golden) if item.stock and item.department not in DISCOUNTED]
        orders: list[CouponOrderParams] = []
        for coupon, per_cent, department in self.coupons:
            fitting = [item for item in rows if department in (None, item.department)]
            for order in sample_orders(golden, rng, fitting, per_cent):
                orders.append(CouponOrderParams(**vars(order), coupon=coupon, voucher=keys[coupon]))
        return orders

    def milestones(self, p: CouponOrderParams) -> Milestones:
        return order_milestones(p)

    def outcome(self, p: CouponOrderParams) -> Outcome:
        return order_changes(p, voucher=p.voucher)

    async def solve(self, driver: PageDriver, p: CouponOrderParams) -> None:
        await open_product(driver, p.title)
        await driver.click("button", "Add to cart")
        await driver.click("link", "View cart")
        await driver.click("link", "I have a coupon code...")
        await driver.type("textbox", "Code", p.coupon)
        await driver.click("button", "Add coupon")
        await driver.click("link", "Proceed to checkout")
        await check_out(driver, p)


TEMPLATES = (Order(), OrderWithCoupon())
