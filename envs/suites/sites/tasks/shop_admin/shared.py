"""Shared parts of the dashboard's templates: the staff persona, page patterns, orders and driver steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import ClassVar, Generic, TypeVar

from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.shop.shared import day
from envs.suites.sites.templates import GoldenStates, Params, Template

STAFF = 51
"""Key of the staff persona in the golden state; a test checks it."""
ORDERS = PagePattern("shop", r"/dashboard/orders/")
CUSTOMERS = PagePattern("shop", r"/dashboard/users/")
PRODUCTS = PagePattern("shop", r"/dashboard/catalogue/")
REVIEWS = PagePattern("shop", r"/dashboard/reviews/")
COUPONS = PagePattern("shop", r"/dashboard/vouchers/")
CATEGORIES = PagePattern("shop", r"/dashboard/catalogue/categories/")
RANGES = PagePattern("shop", r"/dashboard/ranges/")
STATISTICS = PagePattern("shop", r"/dashboard/orders/statistics/")
REPORTS = PagePattern("shop", r"/dashboard/reports/")

P = TypeVar("P", bound=Params)


class Dashboard(Template[P], Generic[P]):
    """A task of the staff. It starts in the dashboard."""

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


def placed_orders(golden: GoldenStates) -> list[PlacedOrder]:
    """All orders, oldest first."""
    rows = golden.database("shop").rows(
        "SELECT o.id, o.number, o.status, o.date_placed, o.total_incl_tax, u.first_name || ' ' || u.last_name, u.id,"
        " u.email, a.line4, a.id FROM order_order o JOIN auth_user u ON u.id = o.user_id"
        " JOIN order_shippingaddress a ON a.id = o.shipping_address_id ORDER BY o.date_placed"
    )
    return [
        PlacedOrder(key, number, status, day(placed), _pounds(total), customer, recipient, email, city, address)
        for key, number, status, placed, total, customer, recipient, email, city, address in rows
    ]


def _pounds(stored: float) -> Decimal:
    return Decimal(str(stored)).quantize(Decimal("0.01"))


def order_page(number: str) -> PagePattern:
    return PagePattern("shop", rf"/dashboard/orders/{number}/")


async def menu(driver: PageDriver, group: str, entry: str) -> None:
    """Opens an entry of the dashboard's menu: two actions."""
    await driver.click("button", group)
    await driver.click("link", entry)


async def open_order(driver: PageDriver, number: str) -> None:
    """Opens an order: four actions. The search for an existing number opens the order directly."""
    await menu(driver, "Fulfilment", "Orders")
    await driver.type("textbox", "Order number: Order number", number)
    await driver.click("button", "Search")


async def find_customer(driver: PageDriver, name: str) -> None:
    """Searches for a customer: four actions."""
    await menu(driver, "Customers", "Customers")
    await driver.type("textbox", "Name:", name)
    await driver.click("button", "Search")


async def open_product(driver: PageDriver, title: str) -> None:
    """Opens a product for editing: five actions."""
    await menu(driver, "Catalog", "Products")
    await driver.type("textbox", "Product title:", title)
    await driver.click("button", "Search")
    await driver.click("link", title)
