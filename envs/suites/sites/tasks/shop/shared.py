"""Shared parts of the shop's templates: noise, products, milestones and driver steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from envs.suites.sites.changes import Expected, Inserted, Noise
from envs.suites.sites.evidence import Evidence, PagePattern
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.templates import Check, Goal, GoldenStates, Milestones, any_of, shows, visited

MOST = 300
"""Largest number of candidates of a template."""
CUSTOMER = 1
"""Key of the customer persona in the golden state; a test checks it."""
NOISE = Noise(
    tables=frozenset(
        {
            "django_session",
            "analytics_productrecord",
            "analytics_userrecord",
            "analytics_userproductview",
            "analytics_usersearch",
        }
    ),
    columns={"*": frozenset({"date_created", "date_updated"}), "auth_user": frozenset({"last_login"})},
)
VISIT: Mapping[SiteName, Sequence[Expected]] = {"shop": (Inserted("basket_basket", {"status": "Open"}),)}
"""Oscar creates an empty basket on any page visit."""
CATALOGUE = PagePattern("shop", r"/catalogue/category/.*|/search/")
ACCOUNT = PagePattern("shop", r"/accounts/.*|/wishlists/.*")


@dataclass(frozen=True, slots=True)
class Product:
    """A product of the shop."""

    id: int
    title: str
    slug: str
    price: Decimal
    stock: int
    stockrecord: int
    upc: str
    shelf: str
    """Name of its category."""
    shelf_id: int
    department: str
    kind: str
    """Its product type."""
    attributes: Mapping[str, str]
    """Values by attribute code; booleans are `1` and `0`."""

    @property
    def page(self) -> PagePattern:
        return product_page(self.id)

    def number(self, code: str) -> int | None:
        """The value of a numeric attribute; None if the product does not have it."""
        value = self.attributes.get(code, "")
        return int(value) if value.isdecimal() else None


def product_page(key: int) -> PagePattern:
    """The shop's page of a product."""
    return PagePattern("shop", rf"/catalogue/[^/]+_{key}/")


def category_page(key: int) -> PagePattern:
    return PagePattern("shop", rf"/catalogue/category/[^_]+_{key}/")


def products(golden: GoldenStates) -> list[Product]:
    """All products on sale, ordered by key."""
    shop = golden.database("shop")
    attributes: dict[int, dict[str, str]] = {}
    for key, code, *values in shop.rows(
        "SELECT v.product_id, a.code, v.value_text, v.value_integer, v.value_boolean"
        " FROM catalogue_productattributevalue v JOIN catalogue_productattribute a ON a.id = v.attribute_id"
    ):
        attributes.setdefault(key, {})[code] = str(next(value for value in values if value is not None))
    rows = shop.rows(
        "SELECT p.id, p.title, p.slug, s.price, s.num_in_stock, s.id, p.upc, c.name, c.id, d.name, k.name"
        " FROM catalogue_product p JOIN partner_stockrecord s ON s.product_id = p.id"
        " JOIN catalogue_productcategory pc ON pc.product_id = p.id"
        " JOIN catalogue_category c ON c.id = pc.category_id"
        " JOIN catalogue_category d ON d.path = substr(c.path, 1, 4)"
        " JOIN catalogue_productclass k ON k.id = p.product_class_id ORDER BY p.id"
    )
    return [
        Product(
            id=key,
            title=title,
            slug=slug,
            price=Decimal(str(price)).quantize(Decimal("0.01")),
            stock=stock,
            stockrecord=record,
            upc=upc,
            shelf=shelf,
            shelf_id=shelf_id,
            department=department,
            kind=kind,
            attributes=attributes.get(key, {}),
        )
        for key, title, slug, price, stock, record, upc, shelf, shelf_id, department, kind in rows
    ]


def shelves(among: Sequence[Product]) -> dict[str, list[Product]]:
    """Products by category, cheapest first. Prices in a category are distinct."""
    by_shelf: dict[str, list[Product]] = {}
    for product in sorted(among, key=lambda item: item.price):
        by_shelf.setdefault(product.shelf, []).append(product)
    return dict(sorted(by_shelf.items()))


def day(stored: str) -> date:
    """The day of a time stored by SQLite."""
    return datetime.fromisoformat(stored).date()


def format_date(moment: date) -> str:
    """A date as 5 March 2026."""
    return f"{moment.day} {moment:%B} {moment.year}"


# Milestones


def searched(*titles: str) -> Check:
    """Checks that the shop was searched for at least two words of one of *titles* (or its only word)."""
    title_words = [set(title.casefold().split()) for title in titles]

    def check(evidence: Evidence) -> bool:
        queries = [
            set((request.argument("q") or "").casefold().split())
            for request in evidence.sites["shop"].requests
            if request.path == "/search/" and request.status == 200
        ]
        return any(len(words & title) >= min(2, len(title)) for words in queries for title in title_words)

    return check


def reading_milestones(title: str, shelf_id: int, page: PagePattern) -> Milestones:
    """The milestones of opening a product's page to read a fact."""
    return (
        Goal("The catalogue is searched, or a category is open", visited(CATALOGUE)),
        Goal(
            f'"{title}" is searched for, or its category is open',
            any_of(searched(title), visited(category_page(shelf_id)), visited(page)),
        ),
        Goal(f'The page of "{title}" has been opened', visited(page)),
        Goal(f'The page of "{title}" is shown', shows(page)),
    )


# Driver steps


async def search(driver: PageDriver, query: str) -> None:
    """Searches the shop: two actions."""
    await driver.type("textbox", "Search", query)
    await driver.click("button", "Search")


async def open_product(driver: PageDriver, title: str) -> None:
    """Searches for a product and opens it: three actions."""
    await search(driver, title)
    await driver.click("link", title)


async def open_orders(driver: PageDriver) -> None:
    """Opens the order history: two actions."""
    await driver.click("link", "Account")
    await driver.click("link", "Order History")
