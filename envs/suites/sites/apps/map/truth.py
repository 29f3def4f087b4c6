"""Writes the map's data to an SQLite file for the checkers, which cannot query the application.

Tables of `truth.sqlite3`: `place` has all places, `walk` the walking distance from each landmark to the NEAREST places
of each category, `route` the route between each two landmarks. A landmark is a place with a unique name.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from envs.suites.sites.apps.map.network import Mode, Network
from envs.suites.sites.apps.map.places import Gazetteer, Place, folded

NEAREST = 5
"""Number of places per category whose distance from a landmark is stored."""
MOST_FOUND = 8
"""Largest number of search results for a landmark's name, so that it can be distinguished."""
FILE = "truth.sqlite3"
LANDMARK_KINDS = ("museum", "theatre", "library", "hotel", "cinema", "place_of_worship", "station", "mall", "square")
MODES: tuple[Mode, ...] = ("foot", "car")

SCHEMA = """
CREATE TABLE place (id TEXT PRIMARY KEY, name TEXT, category TEXT, kind TEXT, lat REAL, lon REAL, address TEXT,
    opening_hours TEXT, phone TEXT, website TEXT, cuisine TEXT, wheelchair TEXT, landmark INTEGER,
    found INTEGER);
CREATE TABLE walk (start TEXT, place TEXT, metres INTEGER, PRIMARY KEY (start, place)) WITHOUT ROWID;
CREATE TABLE route (start TEXT, end TEXT, by TEXT, metres INTEGER, minutes INTEGER, PRIMARY KEY (start, end, by))
    WITHOUT ROWID;
"""


def write_truth(gazetteer: Gazetteer, network: Network, folder: Path) -> None:
    """Writes `truth.sqlite3`. `place.found` is the number of search results for the place's name."""
    marks = landmarks(gazetteer)
    ids = {place.id for place in marks}
    with closing(sqlite3.connect(folder / FILE)) as database, database:
        database.executescript(SCHEMA)
        database.executemany(
            f"INSERT INTO place VALUES ({','.join('?' * 14)})",
            (
                (
                    *(p.id, p.name, p.category, p.kind, p.lat, p.lon, p.address, p.opening_hours, p.phone, p.website),
                    *(p.cuisine, p.wheelchair, p.id in ids, len(gazetteer.search(p.name))),
                )
                for p in gazetteer.places
            ),
        )
        database.executemany("INSERT INTO walk VALUES (?,?,?)", _walks(marks, gazetteer, network))
        database.executemany("INSERT INTO route VALUES (?,?,?,?,?)", _routes(marks, network))


def landmarks(gazetteer: Gazetteer) -> list[Place]:
    """Reachable places of LANDMARK_KINDS with unique names."""
    names = Counter(folded(place.name) for place in gazetteer.places)
    return [
        place
        for kind in LANDMARK_KINDS
        for place in gazetteer.categories.get(kind, [])
        if names[folded(place.name)] == 1
        and min(place.on_foot, place.by_car) >= 0
        and len(gazetteer.search(place.name)) <= MOST_FOUND
    ]


def _walks(marks: list[Place], gazetteer: Gazetteer, network: Network) -> Iterator[tuple[str, str, int]]:
    for mark in marks:
        metres = network.walks(mark.on_foot)
        for group in gazetteer.categories.values():
            reached = [place for place in group if place.on_foot in metres and place.id != mark.id]
            for place in sorted(reached, key=lambda place: (metres[place.on_foot], place.id))[:NEAREST]:
                yield mark.id, place.id, round(metres[place.on_foot])


def _routes(marks: list[Place], network: Network) -> Iterator[tuple[str, str, str, int, int]]:
    for mode in MODES:
        nodes = {place.id: place.on_foot if mode == "foot" else place.by_car for place in marks}
        for start, node in nodes.items():
            lengths = network.lengths(node, set(nodes.values()), mode)
            for end, other in nodes.items():
                if end != start and other in lengths:
                    yield start, end, mode, *lengths[other]
