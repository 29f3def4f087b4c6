"""Differences between two databases and their comparison with an outcome."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from envs.core.errors import BadInput
from envs.suites.sites.changes import Deleted, Expected, Inserted, Noise, Updated, changes, mismatch
from envs.suites.sites.templates import Outcome

SCHEMA = """
CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price NUMERIC, stock INTEGER, seen TEXT);
CREATE TABLE tag (item INTEGER, word TEXT, PRIMARY KEY (item, word));
CREATE TABLE bare (word TEXT);
CREATE TABLE visits (id INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT);
CREATE VIRTUAL TABLE search USING fts5(word);
INSERT INTO item VALUES (1, 'kettle', 12.5, 4, 'a'), (2, 'lamp', 30, 0, 'a'), (3, 'rug', 99, 1, 'a');
INSERT INTO tag VALUES (1, 'red'), (2, 'red');
INSERT INTO bare VALUES ('one');
"""
NOISE = Noise(tables=frozenset({"visits"}), columns={"item": frozenset({"seen"})})


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A golden database and a live copy of it."""
    golden, live = tmp_path / "golden.sqlite3", tmp_path / "live.sqlite3"
    with closing(sqlite3.connect(golden)) as database:
        database.executescript(SCHEMA)
    shutil.copyfile(golden, live)
    return golden, live


def edit(live: Path, *statements: str) -> None:
    with closing(sqlite3.connect(live)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


CASES: list[tuple[str, list[str], tuple[Expected, ...], bool]] = [
    ("nothing", [], (), True),
    ("noise only", ["INSERT INTO visits (at) VALUES ('x')", "UPDATE item SET seen = 'b'"], (), True),
    ("search index only", ["INSERT INTO search VALUES ('x')"], (), True),
    ("update", ["UPDATE item SET stock = 9 WHERE id = 1"], (Updated("item", {"id": 1}, {"stock": 9}),), True),
    (
        "update to text",
        ["UPDATE item SET stock = '9.0' WHERE id = 1"],
        (Updated("item", {"id": 1}, {"stock": 9}),),
        True,
    ),
    ("off by one", ["UPDATE item SET stock = 8 WHERE id = 1"], (Updated("item", {"id": 1}, {"stock": 9}),), False),
    ("other row", ["UPDATE item SET stock = 9 WHERE id = 2"], (Updated("item", {"id": 1}, {"stock": 9}),), False),
    (
        "a column besides",
        ["UPDATE item SET stock = 9, price = 1 WHERE id = 1"],
        (Updated("item", {"id": 1}, {"stock": 9}),),
        False,
    ),
    (
        "a column that may",
        ["UPDATE item SET stock = 9, price = 1 WHERE id = 1"],
        (Updated("item", {"id": 1}, {"stock": 9}, allowed=("price",)),),
        True,
    ),
    ("a row besides", ["DELETE FROM tag WHERE item = 2"], (), False),
    ("deleted", ["DELETE FROM tag WHERE item = 2"], (Deleted("tag", {"item": 2, "word": "red"}),), True),
    ("inserted", ["INSERT INTO tag VALUES (3, 'blue')"], (Inserted("tag", {"item": 3, "word": "blue"}),), True),
    (
        "inserted twice",
        ["INSERT INTO tag VALUES (3, 'blue')", "INSERT INTO tag VALUES (1, 'blue')"],
        (Inserted("tag", {"word": "blue"}),),
        False,
    ),
    ("not inserted", [], (Inserted("tag", {"word": "blue"}),), False),
    ("no primary key", ["INSERT INTO bare VALUES ('two')"], (Inserted("bare", {"word": "two"}),), True),
    (
        "rich text",
        ["UPDATE item SET name = '<p>new name</p>' WHERE id = 1"],
        (Updated("item", {"id": 1}, {"name": lambda value: "new name" in str(value)}),),
        True,
    ),
    ("replaced by itself", ["REPLACE INTO item VALUES (1, 'kettle', 12.5, 4, 'z')"], (), True),
]


@pytest.mark.parametrize(("edits", "expected", "met"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_exactly_the_asked_for_rows_may_differ(
    pair: tuple[Path, Path], edits: list[str], expected: tuple[Expected, ...], met: bool
) -> None:
    edit(pair[1], *edits)
    assert (mismatch(changes(*pair, NOISE), expected) == "") is met


def test_what_may_change_need_not(pair: tuple[Path, Path]) -> None:
    allowed = (Inserted("tag", {"item": 3}),)
    assert mismatch(changes(*pair, NOISE), (), allowed) == ""
    edit(pair[1], "INSERT INTO tag VALUES (3, 'a')", "INSERT INTO tag VALUES (3, 'b')")
    assert mismatch(changes(*pair, NOISE), (), allowed) == ""
    edit(pair[1], "INSERT INTO tag VALUES (2, 'b')")
    assert "unexpected change: insert tag" in mismatch(changes(*pair, NOISE), (), allowed)


def test_an_outcome_that_asks_for_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="does nothing"):
        Outcome(changes={"shop": ()})
