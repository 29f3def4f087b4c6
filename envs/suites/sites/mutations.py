"""Derives wrong outcomes from a right one. The task's checker must reject each of them.

From the state after an oracle's success: each stated value is changed, each expected change is undone or repeated,
unrelated rows are edited, other pages are in front, other answers are given.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

from envs.suites.sites.changes import Change, Deleted, Expected, Inserted, Noise, SqlValue, Updated, changes
from envs.suites.sites.evidence import Database, Evidence
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.templates import Outcome

STRAY_ROWS = 4
"""Number of mutants that edit a row of an unrelated table."""

Edit = Callable[[sqlite3.Connection], int]
"""Edits a database and returns the number of changed rows."""


class Mutant(NamedTuple):
    """One wrong outcome."""

    description: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class _NamedEdit:
    description: str
    edit: Edit


def mutants(
    outcome: Outcome, success: Evidence, folder: Path, noise: Mapping[SiteName, Noise], seed: int
) -> Iterator[Mutant]:
    """Wrong versions of *success*, the evidence of an episode that met the outcome.

    Database edits happen on copies below *folder*. Edits that the database refuses or that change nothing are skipped.
    """
    yield from _other_answers(outcome, success)
    yield from _other_pages(outcome, success)
    rng = random.Random(f"mutants {seed}")
    for name, site in success.sites.items():
        if site.database is None or site.golden is None:
            continue
        live, copy = site.database.path, folder / f"{name}.sqlite3"
        allowed = frozenset(expected.table for expected in outcome.allowed.get(name, ()))
        state = _SiteState(site.golden.path, noise[name], allowed)
        for edit in _edits(outcome.changes.get(name, ()), site.changes, state, rng):
            if _applied(edit.edit, live, copy):
                edited = changes(site.golden.path, copy, noise[name])
                if edited == site.changes:
                    continue  # the edit led to the same state, so it is not wrong
                wrong = replace(site, database=Database(copy), changes=edited)
                yield Mutant(f"{name}: {edit.description}", replace(success, sites={**success.sites, name: wrong}))


def _other_answers(outcome: Outcome, success: Evidence) -> Iterator[Mutant]:
    if outcome.answer is None:
        return
    yield Mutant("no answer", replace(success, answer=None))
    for text in outcome.answer.mutants():
        yield Mutant(f"answer {text!r}", replace(success, answer=text))


def _other_pages(outcome: Outcome, success: Evidence) -> Iterator[Mutant]:
    if outcome.page is None:
        return
    yield Mutant("no page", replace(success, urls=()))
    yield Mutant("another page", replace(success, urls=(f"http://{outcome.page.site}.test/elsewhere/",)))
    if success.urls:
        yield Mutant("the page below", replace(success, urls=(success.urls[0].split("?")[0].rstrip("/") + "/below/",)))
        unlogged = {name: replace(site, requests=()) for name, site in success.sites.items()}
        yield Mutant("an address that the server never saw", replace(success, sites=unlogged))


class _SiteState(NamedTuple):
    """The state of a site and the differences that the checker ignores."""

    golden: Path
    noise: Noise
    allowed: frozenset[str]
    """Tables in which other rows may change."""


def _edits(
    expectations: Sequence[Expected], actual: Sequence[Change], state: _SiteState, rng: random.Random
) -> Iterator[_NamedEdit]:
    for expected in expectations:
        change = next((change for change in actual if expected.fits(change)), None)
        if change is None:
            continue
        yield _NamedEdit(f"undone: {change.kind} {change.table}", _undo(change, state.golden))
        if isinstance(expected, Inserted) and change.table not in state.allowed:
            yield _NamedEdit(f"twice: {change.table}", _again(change))
        stated = (
            {} if isinstance(expected, Deleted) else expected.values if isinstance(expected, Inserted) else expected.to
        )
        for column, value in stated.items():
            other = _other(change.after[column], free=callable(value))
            yield _NamedEdit(f"{change.table}.{column} = {other!r}", _set(change, column, other))
        if isinstance(expected, Updated):
            yield _NamedEdit(f"another row of {change.table}", _elsewhere(change, tuple(expected.to)))
    yield from _stray(state, rng)


def _stray(state: _SiteState, rng: random.Random) -> Iterator[_NamedEdit]:
    """Edits one value of one row in each of STRAY_ROWS unrelated tables."""
    golden, noise, allowed = state
    with closing(sqlite3.connect(f"file:{golden}?mode=ro&immutable=1", uri=True)) as database:
        tables = [
            name
            for name, kind in database.execute("SELECT name, type FROM pragma_table_list WHERE schema = 'main'")
            if kind == "table" and not name.startswith("sqlite_") and name not in noise.tables | allowed
        ]
        rng.shuffle(tables)
        edited = 0
        for table in tables:
            info = database.execute(f'PRAGMA table_info("{table}")').fetchall()
            columns = [row[1] for row in info if not row[5] and not noise.skips(table, row[1])]
            rows = database.execute(f'SELECT rowid FROM "{table}"').fetchall() if columns else []
            if rows:
                yield _NamedEdit(f"stray: {table}", _touch(table, rng.choice(columns), rng.choice(rows)[0]))
                edited += 1
            if edited == STRAY_ROWS:
                return


def _applied(edit: Edit, live: Path, copy: Path) -> bool:
    """Writes an edited copy of *live* to *copy*. False if the database refused the edit or nothing changed."""
    with (
        closing(sqlite3.connect(f"file:{live}?mode=ro", uri=True, timeout=5.0)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        target.execute("PRAGMA synchronous=OFF")
        source.backup(target)
        try:
            changed = edit(target)
        except (sqlite3.IntegrityError, _NoKey):
            return False
        target.commit()
        return changed > 0


class _NoKey(Exception):
    """A row of a table without a primary key cannot be selected."""


def _where(database: sqlite3.Connection, table: str) -> str:
    keys = [row[1] for row in database.execute(f'PRAGMA main.table_info("{table}")') if row[5]]
    if not keys:
        raise _NoKey(table)
    return " AND ".join(f'"{key}" IS ?' for key in keys)


def _set(change: Change, column: str, value: SqlValue) -> Edit:
    def edit(database: sqlite3.Connection) -> int:
        where = _where(database, change.table)
        return database.execute(
            f'UPDATE "{change.table}" SET "{column}" = ? WHERE {where}', (value, *change.key)
        ).rowcount

    return edit


def _undo(change: Change, golden: Path) -> Edit:
    def edit(database: sqlite3.Connection) -> int:
        where = _where(database, change.table)
        done = database.execute(f'DELETE FROM "{change.table}" WHERE {where}', change.key).rowcount
        if change.kind != "insert":
            database.commit()
            database.execute("ATTACH DATABASE ? AS golden", (str(golden),))
            back = f'INSERT INTO main."{change.table}" SELECT * FROM golden."{change.table}" WHERE {where}'
            done = database.execute(back, change.key).rowcount
        return done

    return edit


def _again(change: Change) -> Edit:
    def edit(database: sqlite3.Connection) -> int:
        info = database.execute(f'PRAGMA main.table_info("{change.table}")').fetchall()
        columns = ", ".join(f'"{row[1]}"' for row in info if not row[5])
        if not columns:
            return 0  # the key is the whole row
        sql = f'INSERT INTO "{change.table}" ({columns}) SELECT {columns} FROM "{change.table}" WHERE '
        return database.execute(sql + _where(database, change.table), change.key).rowcount

    return edit


def _elsewhere(change: Change, columns: tuple[str, ...]) -> Edit:
    """Writes the new values to another row and restores the expected row."""

    def edit(database: sqlite3.Connection) -> int:
        where = _where(database, change.table)
        other = database.execute(
            f'SELECT rowid FROM "{change.table}" WHERE NOT ({where}) LIMIT 1', change.key
        ).fetchone()
        if other is None:
            return 0
        for column in columns:
            after, before = change.after[column], change.before.get(column)
            database.execute(f'UPDATE "{change.table}" SET "{column}" = ? WHERE rowid = ?', (after, other[0]))
            database.execute(f'UPDATE "{change.table}" SET "{column}" = ? WHERE {where}', (before, *change.key))
        return 1

    return edit


def _touch(table: str, column: str, rowid: int) -> Edit:
    def edit(database: sqlite3.Connection) -> int:
        row = database.execute(f'SELECT "{column}" FROM "{table}" WHERE rowid = ?', (rowid,)).fetchone()
        if row is None:
            return 0
        sql = f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?'
        return database.execute(sql, (_other(row[0], free=False), rowid)).rowcount

    return edit


def _other(value: SqlValue, *, free: bool) -> SqlValue:
    """Another value of the same type. *free*: the checker uses a test, so the text is also reversed."""
    if value is None:
        return 1
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, bytes):
        return value + b"x"
    try:
        return str(Decimal(value) + 1)
    except InvalidOperation:
        return value[::-1] + "x" if free else value + " x"
