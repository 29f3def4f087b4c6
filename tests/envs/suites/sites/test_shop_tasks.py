"""The shop's tasks: instances agree with the golden state, and some are verified in Chromium."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
import pytest_asyncio

pytest.importorskip("oscar")

from envs.browser.chromium import Chromium
from envs.core.tasks import TaskRef
from envs.suites.sites.changes import Change, mismatch
from envs.suites.sites.environment import SitesEnvironment
from envs.suites.sites.golden import build_golden
from envs.suites.sites.proof import prove
from envs.suites.sites.suite import SitesSuite
from envs.suites.sites.tasks import shop, shop_admin
from envs.suites.sites.tasks.shop.buying import SoldOut, TooMany
from envs.suites.sites.tasks.shop.checkout import about
from envs.suites.sites.tasks.shop.finding import CheapestWith, UnknownProduct
from envs.suites.sites.tasks.shop.orders import SpentBetween, WhichOrder, own_orders
from envs.suites.sites.tasks.shop.shared import CUSTOMER, VISIT, products, shelves
from envs.suites.sites.tasks.shop_admin.orders import IllegalStatus, SetOrderStatus
from envs.suites.sites.tasks.shop_admin.shared import STAFF
from envs.suites.sites.templates import GoldenStates, draw_candidates

pytestmark = pytest.mark.asyncio(loop_scope="module")
TEMPLATES = (*shop.TEMPLATES, *shop_admin.TEMPLATES)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def golden() -> GoldenStates:
    return GoldenStates({"shop": await build_golden("shop")})


@pytest.mark.parametrize(("key", "email"), [(CUSTOMER, "nora.whitfield"), (STAFF, "sam.okafor")])
async def test_the_personas_are_who_the_tasks_take_them_for(golden: GoldenStates, key: int, email: str) -> None:
    stored = golden.database("shop").value("SELECT email FROM auth_user WHERE id = ?", key)
    assert stored == f"{email}@example.test"


async def test_no_two_things_of_a_shelf_cost_the_same(golden: GoldenStates) -> None:
    for shelf, sold in shelves(products(golden)).items():
        assert len({item.price for item in sold}) == len(sold), shelf


async def test_the_cheapest_that_fulfils_a_condition(golden: GoldenStates) -> None:
    known = {item.title: item for item in products(golden)}
    for p in draw_candidates(CheapestWith(), golden):
        prices = [known[title].price for title in (*p.cheaper, p.title)]
        assert prices == sorted(prices) and known[p.title].shelf == p.shelf


async def test_sums_and_orders_of_a_time(golden: GoldenStates) -> None:
    orders = own_orders(golden)
    for p in draw_candidates(SpentBetween(), golden):
        inside = [order for order in orders if p.first <= order.placed <= p.last]
        assert p.total == sum((order.total for order in inside), Decimal()) and len(inside) > 1
    for p in draw_candidates(WhichOrder(), golden):
        holding = [order.number for order in orders if p.first <= order.placed <= p.last and p.title in order.lines]
        assert holding == [p.number]


async def test_what_cannot_be_done_cannot_be_done(golden: GoldenStates) -> None:
    known = {item.title: item for item in products(golden)}
    assert all(known[p.title].stock == 0 for p in draw_candidates(SoldOut(), golden))
    assert all(0 < known[p.title].stock < p.quantity for p in draw_candidates(TooMany(), golden))
    assert not any(p.title in known for p in draw_candidates(UnknownProduct(), golden))


@pytest.mark.parametrize("module", [shop, shop_admin], ids=["customer", "staff"])
async def test_several_kinds_and_refusals(module: object) -> None:
    templates = getattr(module, "TEMPLATES", ())
    assert {template.kind for template in templates} >= {"information", "navigation", "content", "configuration"}
    assert sum(template.kind == "impossible" for template in templates) >= 2
    assert {template.difficulty for template in templates} == {"easy", "medium", "hard"}


@pytest.mark.parametrize(("total", "right"), [(12.34, True), (12.35, True), (12.36, False), ("12.34", False)])
async def test_a_discounted_total_is_right_to_the_penny(total: float | str, right: bool) -> None:
    assert about(Decimal("12.345"))(total) is right


async def test_things_saved_for_later_are_not_a_basket() -> None:
    """Oscar keeps saved items in a second basket. Its lines look the same, but belong to another basket."""
    saved = Change("basket_basket", "insert", (2,), {}, {"id": 2, "status": "Saved", "owner_id": CUSTOMER})
    assert "Saved" in mismatch([saved], (), VISIT["shop"])


async def test_what_is_asked_of_an_order_and_what_is_refused_have_nothing_in_common(golden: GoldenStates) -> None:
    possible = {(p.old, p.new) for p in draw_candidates(SetOrderStatus(), golden)}
    refused = {(p.status, p.wanted) for p in draw_candidates(IllegalStatus(), golden)}
    assert possible and refused and not possible & refused
    assert not {old for old, _ in possible} & {"Delivered", "Returned", "Cancelled"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SitesEnvironment]:
    folder: Path = tmp_path_factory.mktemp("shop-tasks")
    async with Chromium() as chromium, SitesSuite(chromium, folder) as suite:
        environment = await suite.environment()
        yield environment
        await environment.close()


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("name", ["shop-order", "shop-dead-coupon", "shop-admin-change-price"])
async def test_an_instance_proves_itself(environment: SitesEnvironment, name: str) -> None:
    seed = Random(name).randrange(40)
    proof = await prove(environment, TaskRef(suite="sites", name=name, seed=seed), random_agent=False)
    assert proof.problems == ()
    assert proof.mutants > 5
