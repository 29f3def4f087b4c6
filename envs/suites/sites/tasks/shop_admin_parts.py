"""What the dashboard's task templates share: who works there, its orders and customers, and ways through it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import ClassVar, Generic, TypeVar

from envs.suites.sites.evidence import Where
from envs.suites.sites.hand import Hand
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.tasks.shop_parts import day
from envs.suites.sites.templates import Params, Template, World

STAFF = 51
"""Key of the staff persona in the golden state (tests hold it to that)."""
ORDERS = Where("shop", r"/dashboard/orders/")
CUSTOMERS = Where("shop", r"/dashboard/users/")
PRODUCTS = Where("shop", r"/dashboard/catalogue/")
REVIEWS = Where("shop", r"/dashboard/reviews/")
COUPONS = Where("shop", r"/dashboard/vouchers/")
CATEGORIES = Where("shop", r"/dashboard/catalogue/categories/")
RANGES = Where("shop", r"/dashboard/ranges/")
STATISTICS = Where("shop", r"/dashboard/orders/statistics/")
REPORTS = Where("shop", r"/dashboard/reports/")

P = TypeVar("P", bound=Params)


class Dashboard(Template[P], Generic[P]):
    """A task of the staff, which starts in the dashboard."""

    sites = ("shop",)
    category = "shop_admin"
    personas: ClassVar[Mapping[SiteName, str]] = {"shop": "staff"}
    start: ClassVar[Mapping[SiteName, str]] = {"shop": "/dashboard/"}


@dataclass(frozen=True, slots=True)
class PlacedOrder:
    """An order as the dashboard lists it."""

    id: int
    number: str
    status: str
    placed: date
    total: Decimal
    customer: str
    customer_id: int
    email: str
    city: str
    address_id: int


def placed_orders(world: World) -> list[PlacedOrder]:
    """All, the oldest first."""
    rows = world.database("shop").rows(
        "SELECT o.id, o.number, o.status, o.date_placed, o.total_incl_tax, u.first_name || ' ' || u.last_name, u.id,"
        " u.email, a.line4, a.id FROM order_order o JOIN auth_user u ON u.id = o.user_id"
        " JOIN order_shippingaddress a ON a.id = o.shipping_address_id ORDER BY o.date_placed"
    )
    return [
        PlacedOrder(key, number, status, day(placed), _pounds(total), customer, who, email, city, address)
        for key, number, status, placed, total, customer, who, email, city, address in rows
    ]


def _pounds(stored: float) -> Decimal:
    return Decimal(str(stored)).quantize(Decimal("0.01"))


def order_page(number: str) -> Where:
    return Where("shop", rf"/dashboard/orders/{number}/")


async def menu(hand: Hand, group: str, entry: str) -> None:
    """Two actions."""
    await hand.click("button", group)
    await hand.click("link", entry)


async def open_order(hand: Hand, number: str) -> None:
    """Four actions; the search leads straight to the order if there is one of this number."""
    await menu(hand, "Fulfilment", "Orders")
    await hand.type("textbox", "Order number: Order number", number)
    await hand.click("button", "Search")


async def find_customer(hand: Hand, name: str) -> None:
    """Four actions."""
    await menu(hand, "Customers", "Customers")
    await hand.type("textbox", "Name:", name)
    await hand.click("button", "Search")


async def open_product(hand: Hand, title: str) -> None:
    """Five actions."""
    await menu(hand, "Catalog", "Products")
    await hand.type("textbox", "Product title:", title)
    await hand.click("button", "Search")
    await hand.click("link", title)
