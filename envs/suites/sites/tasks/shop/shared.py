"""What the shop's task templates share: its noise, what it sells, and ways through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from envs.suites.sites.changes import Expected, Inserted, Noise
from envs.suites.sites.evidence import Evidence, PagePattern
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.templates import Check, Goal, Milestones, World, any_of, shows, visited

MOST = 300
"""Candidates of a template at most."""
CUSTOMER = 1
"""Key of the customer persona in the golden state (tests hold it to that)."""
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
"""Oscar opens an empty basket for whoever looks at a page."""
CATALOGUE = PagePattern("shop", r"/catalogue/category/.*|/search/")
ACCOUNT = PagePattern("shop", r"/accounts/.*|/wishlists/.*")


@dataclass(frozen=True, slots=True)
class Product:
    """One thing that the shop sells."""

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
    """By code; booleans as `1` and `0`."""

    @property
    def page(self) -> PagePattern:
        return product_page(self.id)

    def number(self, code: str) -> int | None:
        """An attribute that is a number; None where the product has none of this code."""
        value = self.attributes.get(code, "")
        return int(value) if value.isdecimal() else None


def product_page(key: int) -> PagePattern:
    """The page of one product, in the shop itself."""
    return PagePattern("shop", rf"/catalogue/[^/]+_{key}/")


def category_page(key: int) -> PagePattern:
    return PagePattern("shop", rf"/catalogue/category/[^_]+_{key}/")


def products(world: World) -> list[Product]:
    """Everything on sale, by key."""
    shop = world.database("shop")
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
    """Products by category, the cheapest first; no two of one shelf cost the same."""
    found: dict[str, list[Product]] = {}
    for product in sorted(among, key=lambda one: one.price):
        found.setdefault(product.shelf, []).append(product)
    return dict(sorted(found.items()))


def day(stored: str) -> date:
    """The day of a time as SQLite holds it."""
    return datetime.fromisoformat(stored).date()


def written(moment: date) -> str:
    """A day as people write it: 5 March 2026."""
    return f"{moment.day} {moment:%B} {moment.year}"


# Milestones


def searched(*titles: str) -> Check:
    """The shop was searched for two words of one of *titles* at least (or its only one)."""
    wanted = [set(title.casefold().split()) for title in titles]

    def check(evidence: Evidence) -> bool:
        asked = [
            set((request.argument("q") or "").casefold().split())
            for request in evidence.sites["shop"].requests
            if request.path == "/search/" and request.status == 200
        ]
        return any(len(words & title) >= min(2, len(title)) for words in asked for title in wanted)

    return check


def reading(title: str, shelf_id: int, page: PagePattern) -> Milestones:
    """The way to the page of a product, where something is to be read."""
    return (
        Goal("The catalogue is searched, or a category is open", visited(CATALOGUE)),
        Goal(
            f'"{title}" is searched for, or its category is open',
            any_of(searched(title), visited(category_page(shelf_id)), visited(page)),
        ),
        Goal(f'The page of "{title}" has been opened', visited(page)),
        Goal(f'The page of "{title}" is in front', shows(page)),
    )


# Ways


async def search(driver: PageDriver, query: str) -> None:
    """Two actions."""
    await driver.type("textbox", "Search", query)
    await driver.click("button", "Search")


async def open_product(driver: PageDriver, title: str) -> None:
    """Three actions."""
    await search(driver, title)
    await driver.click("link", title)


async def open_orders(driver: PageDriver) -> None:
    """Two actions."""
    await driver.click("link", "Account")
    await driver.click("link", "Order History")
