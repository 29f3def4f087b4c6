"""The map: tolerant search for names, routes by the rules of traffic, pages with complete text."""

from __future__ import annotations

import http.client
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
import pytest_asyncio

from tests.timing import HANG_S

pytest.importorskip("osmium")
pytest.importorskip("networkx")

from envs.suites.sites.apps.map.extract import Way
from envs.suites.sites.apps.map.network import Network, metres_between
from envs.suites.sites.apps.map.places import Gazetteer, Place
from envs.suites.sites.copies import SiteCopy, start_copy

served_tests = pytest.mark.asyncio(loop_scope="module")

A, B, C, D = (60.0, 25.0), (60.0, 25.001), (60.001, 25.001), (60.001, 25.0)
"""A square: 55.6 m from west to east, 111.2 m from south to north."""
SQUARE = (
    Way((A, B), (1, 2), {"highway": "residential", "name": "South Street", "oneway": "yes"}),
    Way((B, C), (2, 3), {"highway": "residential", "name": "East Street"}),
    Way((C, D), (3, 4), {"highway": "residential", "name": "North Street"}),
    Way((D, A), (4, 1), {"highway": "residential", "name": "West Street"}),
    Way((A, C), (1, 3), {"highway": "steps"}),
)
NODE = {A: 0, B: 1, C: 2, D: 3}
PLACES = (
    Place("n1", "Café Ödla", "cafe", "Cafe", *A),
    Place("n2", "Ödla", "shop", "Shop", *B, street="Long Street", number="7", postcode="00100", city="Helsinki"),
    Place("w3", "Twin", "bar", "Bar", *C),
    Place("w4", "Twin", "pub", "Pub", *D),
    Place("a1", "Long Street 7", "address", "Address", *B, street="Long Street", number="7"),
)


def test_a_car_keeps_to_the_one_way_street_and_a_walker_does_not() -> None:
    network = Network.of(SQUARE)
    along, against = (network.route(*ends, "car") for ends in ((NODE[A], NODE[B]), (NODE[B], NODE[A])))
    assert along and against
    assert along.metres == 56
    assert against.metres == 56 + 2 * 111, "round the other three sides"
    walked = network.route(NODE[B], NODE[A], "foot")
    assert walked and walked.metres == 56


def test_a_walker_takes_the_steps() -> None:
    route = Network.of(SQUARE).route(NODE[A], NODE[C], "foot")
    assert route and route.metres == round(metres_between(A, C)) == 124
    assert [(step.turn, step.name) for step in route.steps] == [("Head along", "steps")]


def test_turns_are_seen_from_the_walkers_direction() -> None:
    network = Network.of(SQUARE[:2])
    route = network.route(NODE[A], NODE[C], "foot")
    assert route is not None
    assert [(step.turn, step.name, step.metres) for step in route.steps] == [
        ("Head along", "South Street", 56),
        ("Turn left into", "East Street", 111),
    ]


def test_a_network_survives_writing_and_reading(tmp_path: Path) -> None:
    network = Network.of(SQUARE)
    network.write(tmp_path)
    read = Network.read(tmp_path)
    assert read.edges == network.edges, "to the centimetre: answers are checked to the metre"
    assert read.points == network.points


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cafe odla", ["n1"]),
        ("ODLA", ["n2", "n1"]),
        ("long street 7", ["a1", "n2"]),
        ("twin", ["w3", "w4"]),
        ("", []),
        ("?!", []),
        ("nowhere", []),
    ],
)
def test_search(text: str, expected: list[str]) -> None:
    assert [place.id for place in Gazetteer(PLACES).search(text)] == expected


@pytest.mark.parametrize(
    ("text", "meant"),
    [("w4", ["w4"]), ("Twin (w4)", ["w4"]), ("Twin", ["w3", "w4"]), ("Ödla", ["n2"]), ("xyz", [])],
)
def test_a_form_field_names_a_place(text: str, meant: list[str]) -> None:
    assert [place.id for place in Gazetteer(PLACES).named(text)] == meant


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SiteCopy]:
    copy = await start_copy("map", tmp_path_factory.mktemp("map") / "copy")
    yield copy
    await copy.close()


def get(site: SiteCopy, path: str) -> tuple[int, str, str]:
    """Status, text and the target of a redirect."""
    connection = http.client.HTTPConnection(*site.address, timeout=HANG_S)
    connection.request("GET", path, headers={"Host": "map.test"})
    answer = connection.getresponse()
    text = answer.read().decode("utf-8", "replace")
    connection.close()
    return answer.status, text, answer.headers.get("Location", "")


def landmark(site: SiteCopy, name: str) -> str:
    with closing(sqlite3.connect(site.golden / "fixed" / "truth.sqlite3")) as truth:
        return truth.execute("SELECT id FROM place WHERE name = ? AND landmark", (name,)).fetchone()[0]


@served_tests
async def test_every_page_names_the_source_of_its_data_and_loads_nothing_from_elsewhere(site: SiteCopy) -> None:
    kiasma = landmark(site, "Kiasma")
    paths = ("/", "/categories", "/search?q=cafe", f"/place/{kiasma}", "/category/cafe", "/directions", "/nearest")
    for path in (*paths, "/about", "/reverse?lat=60.17&lon=24.94", "/nowhere"):
        status, page, _ = get(site, path)
        assert status == (404 if path == "/nowhere" else 200), path
        assert "OpenStreetMap contributors" in page and "Open Database Licence" in page, path
        assert re.findall(r'(?:src|href)="(?:https?:)?//', page) == [], path


@served_tests
async def test_names_lead_to_an_address_that_holds_the_whole_state(site: SiteCopy) -> None:
    query = urlencode({"from": "ateneum", "to": "kiasma", "by": "car"})
    status, _, location = get(site, f"/directions?{query}")
    start, end = landmark(site, "Ateneum"), landmark(site, "Kiasma")
    assert (status, location) == (302, f"/directions?from={start}&to={end}&by=car")
    _, page, _ = get(site, "/directions?from=stockmann&to=kiasma")
    assert "do you mean (from)" in page


@served_tests
@pytest.mark.parametrize("by", ["foot", "car"])
async def test_the_page_agrees_with_the_truth_database(site: SiteCopy, by: str) -> None:
    start, end = landmark(site, "Ateneum"), landmark(site, "Amos Rex")
    with closing(sqlite3.connect(site.golden / "fixed" / "truth.sqlite3")) as truth:
        sql = "SELECT metres, minutes FROM route WHERE start = ? AND end = ? AND by = ?"
        metres, minutes = truth.execute(sql, (start, end, by)).fetchone()
    _, page, _ = get(site, f"/directions?from={start}&to={end}&by={by}")
    assert f"<strong>{metres} m</strong>" in page and f"<strong>{minutes} min</strong>" in page
    steps = [int(metres_of_step) for metres_of_step in re.findall(r" for (\d+) m</li>", page)]
    assert abs(sum(steps) - metres) <= len(steps), "steps are rounded one by one"


@served_tests
async def test_nearest_is_sorted_by_distance(site: SiteCopy) -> None:
    _, page, _ = get(site, f"/nearest?category=cafe&near={landmark(site, 'Kiasma')}")
    metres = [int(number) for number in re.findall(r"<strong>(\d+) m</strong>", page)]
    assert len(metres) == 10
    assert metres == sorted(metres)


@served_tests
@pytest.mark.parametrize("path", ["/static/../truth.sqlite3", "/static/%2e%2e/places.json", "/static//etc/passwd"])
async def test_files_beside_the_static_ones_are_not_served(site: SiteCopy, path: str) -> None:
    assert get(site, path)[0] == 404


@served_tests
@pytest.mark.parametrize("text", ['"><script>alert(1)</script>', "a" * 3000, "\u0000", "ä ö (w1)"])
async def test_whatever_is_searched_for_is_text(site: SiteCopy, text: str) -> None:
    status, page, _ = get(site, f"/search?q={quote(text)}")
    assert status == 200
    assert "<script>alert" not in page
