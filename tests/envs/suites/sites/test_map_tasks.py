"""The map's tasks: their answer types, and instances that agree with the map's data."""

from __future__ import annotations

import random

import pytest
import pytest_asyncio

pytest.importorskip("osmium")
pytest.importorskip("networkx")

from envs.suites.sites.golden import build_golden
from envs.suites.sites.tasks.map.nearest import nearest_of
from envs.suites.sites.tasks.map.shared import Coordinates, Phone, landmarks, truth
from envs.suites.sites.templates import GoldenStates


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("60.17204, 24.93658", True),
        ("60.17204 24.93658", True),
        ("Latitude 60.1720, longitude 24.9366.", True),
        ("24.93658, 60.17204", False),
        ("60.17204", False),
        ("60.17, 24.94", False),
        ("60.17204, 24.93658, 12", False),
        ("", False),
    ],
)
def test_coordinates(text: str, accepted: bool) -> None:
    assert Coordinates(60.17204, 24.93658).accepts(text) is accepted


@pytest.mark.parametrize(
    ("known", "text", "accepted"),
    [
        ("+358 9 622 2653", "+358 9 622 2653", True),
        ("+358 9 622 2653", "09 622 2653", True),
        ("+358 9 622 2653", "+35896222653", True),
        ("+358 (0)294 500 501", "+358 294 500 501", True),
        ("+358 (0)294 500 501", "0294 500 501", True),
        ("09-1234567", "+358 9 1234567", True),
        ("+358 9 622 2653", "+358 9 622 265", False),
        ("+358 9 622 2653", "+358 9 622 2653 or +358 9 622 2654", False),
        ("+358 9 622 2653", "", False),
    ],
)
def test_phone_numbers_are_compared_as_they_are_dialled(known: str, text: str, accepted: bool) -> None:
    assert Phone(known).accepts(text) is accepted


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def golden() -> GoldenStates:
    return GoldenStates({"map": await build_golden("map")})


@pytest.mark.asyncio(loop_scope="module")
async def test_landmarks_are_found_by_their_names(golden: GoldenStates) -> None:
    names = landmarks(golden)
    assert len(names) >= 40
    assert len({name.casefold() for name in names.values()}) == len(names)
    assert {"Kiasma", "Ateneum", "Amos Rex"} <= set(names.values())


@pytest.mark.asyncio(loop_scope="module")
async def test_the_nearest_is_nearer_than_every_other(golden: GoldenStates) -> None:
    for near in nearest_of(golden, random.Random(1), 1)[:40]:
        sql = (
            "SELECT min(metres) FROM walk JOIN place ON place.id = walk.place"
            " WHERE start = ? AND category = ? AND place.id <> ?"
        )
        others = truth(golden).value(sql, near.start, near.category, near.places[0])
        assert others is not None and near.metres < others
