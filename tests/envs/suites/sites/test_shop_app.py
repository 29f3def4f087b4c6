"""The shop as a server: lasting logins, live listings, complete resets, no requests to other hosts."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_asyncio

from tests.timing import HANG_S

pytest.importorskip("oscar")

from envs.suites.sites.apps.base import DATABASE, LOGINS
from envs.suites.sites.copies import SiteCopy, database_digest, start_copy
from envs.suites.sites.golden import child_environment

pytestmark = pytest.mark.asyncio(loop_scope="module")
PRODUCTS = 198


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SiteCopy]:
    copy = await start_copy("shop", tmp_path_factory.mktemp("shop") / "copy")
    yield copy
    await copy.close()


@pytest_asyncio.fixture(loop_scope="module")
async def site(served: SiteCopy) -> SiteCopy:
    await served.reset()
    return served


class Visitor:
    """A minimal HTTP client with cookies."""

    def __init__(self, site: SiteCopy, persona: str = "") -> None:
        self._address = site.address
        known = json.loads((site.golden / LOGINS).read_text(encoding="utf-8"))
        self.cookies: dict[str, str] = dict(known[persona]) if persona else {}

    def get(self, path: str) -> tuple[int, str]:
        return self._ask("GET", path, None)

    def post(self, path: str, **fields: str) -> tuple[int, str]:
        return self._ask("POST", path, urlencode({"csrfmiddlewaretoken": self.cookies["csrftoken"], **fields}))

    def _ask(self, method: str, path: str, body: str | None) -> tuple[int, str]:
        connection = http.client.HTTPConnection(*self._address, timeout=HANG_S)
        headers = {"Host": "shop.test", "Cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items())}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        for header in answer.headers.get_all("Set-Cookie") or []:
            for name, morsel in SimpleCookie(header).items():
                self.cookies[name] = morsel.value
        text = answer.read().decode("utf-8", "replace")
        connection.close()
        return answer.status, text


def titles(page: str) -> list[str]:
    return re.findall(r'<h3 class="mt-3">\s*<a href="[^"]+" title="([^"]+)"', page)


@pytest.mark.parametrize(
    ("persona", "path", "shown"),
    [
        ("customer", "/accounts/profile/", "nora.whitfield@example.test"),
        ("customer", "/accounts/orders/", "Order number"),
        ("staff", "/dashboard/", "Sam Okafor"),
        ("staff", "/dashboard/orders/", "20300"),
        ("staff", "/dashboard/catalogue/products/1/", "Stock and pricing"),
        ("staff", "/dashboard/reports/", "Report Type"),
    ],
)
async def test_golden_logins_are_live(site: SiteCopy, persona: str, path: str, shown: str) -> None:
    status, page = Visitor(site, persona).get(path)
    assert status == 200 and shown in page


@pytest.mark.parametrize("path", ["/dashboard/catalogue/", "/dashboard/catalogue/categories/"])
async def test_a_table_cannot_be_sorted_by_its_checkboxes(site: SiteCopy, path: str) -> None:
    visitor = Visitor(site, "staff")
    assert "sort=checkbox" not in visitor.get(path)[1]
    assert visitor.get(f"{path}?sort=checkbox")[0] == 200, "it was a server error"


async def test_the_dashboard_is_closed_to_customers(site: SiteCopy) -> None:
    assert Visitor(site, "customer").get("/dashboard/")[0] == 403


@pytest.mark.parametrize("path", ["/catalogue/", "/basket/", "/accounts/profile/", "/offers/", "/search/?q=jug"])
async def test_pages_load_nothing_from_elsewhere(site: SiteCopy, path: str) -> None:
    status, page = Visitor(site, "customer").get(path)
    loaded = re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="([^"]+)"', page)
    assert status == 200 and len(loaded) >= 5
    assert all(address.startswith("/") and not address.startswith("//") for address in loaded)
    for address in set(loaded):
        assert Visitor(site).get(address)[0] == 200, address


@pytest.mark.parametrize("path", ["/media/../db.sqlite3", "/media/%2e%2e/db.sqlite3", "/static/../settings.py"])
async def test_only_public_files_are_served(site: SiteCopy, path: str) -> None:
    assert Visitor(site, "customer").get(path)[0] == 404


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("copper kettles", "Copper Kettle"),
        ("KETTLE", "Kettle"),
        ("lighthouse", "Lighthouse"),
    ],
)
async def test_a_search_finds_products_with_every_word(site: SiteCopy, query: str, expected: str) -> None:
    _, page = Visitor(site, "customer").get(f"/search/?{urlencode({'q': query})}")
    known = [row[0] for row in rows(site, "SELECT title FROM catalogue_product ORDER BY title")]
    expected_titles = [title.replace("'", "&#x27;") for title in known if expected in title]
    assert titles(page) == expected_titles


async def test_a_search_for_nothing_or_nonsense_finds_nothing(site: SiteCopy) -> None:
    for query in ("", "xyzzy", "copper xyzzy", "%"):
        assert titles(Visitor(site, "customer").get(f"/search/?{urlencode({'q': query})}")[1]) == [], query


async def test_a_listing_is_narrowed_sorted_and_paged(site: SiteCopy) -> None:
    query = {"selected_facets": "price:[20 TO 40]", "sort_by": "price-desc"}
    status, page = Visitor(site, "customer").get(f"/catalogue/?{urlencode(query)}")
    expected_titles = rows(
        site,
        "SELECT p.title, s.price FROM catalogue_product p JOIN partner_stockrecord s ON s.product_id = p.id"
        " WHERE s.price BETWEEN 20 AND 40 ORDER BY s.price DESC",
    )
    shown = [float(price) for price in re.findall(r'price_color">£([\d.]+)', page)]
    assert status == 200 and shown == [float(price) for _, price in expected_titles][:20]
    assert f"<strong>{len(expected_titles)}</strong> results" in page


@pytest.mark.parametrize(
    "query", ["selected_facets=price:[0+TO+9999]", "selected_facets=x", "sort_by=nonsense", "page=0"]
)
async def test_addresses_written_by_hand_do_not_break_the_listing(site: SiteCopy, query: str) -> None:
    assert Visitor(site, "customer").get(f"/catalogue/?{query}")[0] in (200, 302)


async def test_what_changes_is_listed_at_once_and_gone_after_a_reset(site: SiteCopy) -> None:
    visitor = Visitor(site, "customer")
    assert f"<strong>{PRODUCTS}</strong> results" in visitor.get("/catalogue/")[1]
    with closing(sqlite3.connect(site.database)) as database:
        database.execute("UPDATE catalogue_product SET is_public = 0 WHERE id = 1")
        database.execute("UPDATE catalogue_category SET name = 'Kitchenalia' WHERE id = 1")
        database.commit()
    page = visitor.get("/catalogue/")[1]
    assert f"<strong>{PRODUCTS - 1}</strong> results" in page and "Kitchenalia" in page
    await site.reset()
    page = visitor.get("/catalogue/")[1]
    assert f"<strong>{PRODUCTS}</strong> results" in page and "Kitchenalia" not in page


async def test_a_reset_empties_the_basket_and_keeps_the_login(site: SiteCopy) -> None:
    visitor = Visitor(site, "customer")
    sold = rows(site, "SELECT product_id FROM partner_stockrecord WHERE num_in_stock > 5 LIMIT 1")[0][0]
    visitor.get("/catalogue/")
    assert visitor.post(f"/basket/add/{sold}/", quantity="2")[0] == 302
    assert rows(site, "SELECT product_id, quantity FROM basket_line") == [(sold, 2)]
    await site.reset()
    assert rows(site, "SELECT * FROM basket_line") == []
    assert database_digest(site.database) == database_digest(site.golden_database)
    assert "nora.whitfield@example.test" in visitor.get("/accounts/profile/")[1]


async def test_order_numbers_leave_room_for_the_checkouts_own(site: SiteCopy) -> None:
    assert rows(site, "SELECT min(CAST(number AS INT)), max(CAST(number AS INT)) FROM order_order") == [(20001, 20300)]


@pytest.mark.parametrize("table", ["catalogue_product", "catalogue_category"])
async def test_names_are_unambiguous(site: SiteCopy, table: str) -> None:
    column = "title" if table == "catalogue_product" else "name"
    assert rows(site, f"SELECT lower({column}) FROM {table} GROUP BY 1 HAVING count(*) > 1") == []


async def test_an_order_costs_its_lines_and_the_delivery(site: SiteCopy) -> None:
    wrong = rows(
        site,
        "SELECT o.number FROM order_order o JOIN order_line l ON l.order_id = o.id GROUP BY o.id"
        " HAVING abs(o.total_incl_tax - o.shipping_incl_tax - sum(l.line_price_incl_tax)) > 0.001",
    )
    assert wrong == []


@pytest.mark.slow
async def test_two_builds_differ_in_sessions_alone(tmp_path: Path, site: SiteCopy) -> None:
    again = tmp_path / "again"
    again.mkdir()
    command = (sys.executable, "-m", "envs.suites.sites.building", "shop", str(again))
    process = await asyncio.create_subprocess_exec(*command, env=child_environment(), stdout=asyncio.subprocess.DEVNULL)
    assert await asyncio.wait_for(process.wait(), HANG_S) == 0
    assert lines(again / DATABASE) == lines(site.golden_database)


def lines(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return [line for line in database.iterdump() if 'INTO "django_session"' not in line]


def rows(site: SiteCopy, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(site.database)) as database:
        return database.execute(sql).fetchall()
