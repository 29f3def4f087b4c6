"""Wrong outcomes made from a right one, automatically: each must be rejected by the task's checker.

From the state in which an oracle left the sites: every stated value made another one, every asked-for change undone
or done twice, rows touched that nobody asked for, other pages in front, other answers.
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
"""Rows of other tables that are touched, one mutant each."""

Edit = Callable[[sqlite3.Connection], int]
"""Changes a database; the number of rows it changed."""


class Mutant(NamedTuple):
    """One wrong outcome."""

    what: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class _Edited:
    what: str
    edit: Edit


def mutants(
    outcome: Outcome, reached: Evidence, folder: Path, noise: Mapping[SiteName, Noise], seed: int
) -> Iterator[Mutant]:
    """Wrong versions of *reached*, in which the outcome was met. Databases are edited as copies below *folder*;
    edits that the database itself refuses, or that change nothing, are left out."""
    yield from _other_answers(outcome, reached)
    yield from _other_pages(outcome, reached)
    rng = random.Random(f"mutants {seed}")
    for name, site in reached.sites.items():
        if site.database is None or site.golden is None:
            continue
        live, copy = site.database.path, folder / f"{name}.sqlite3"
        allowed = frozenset(one.table for one in outcome.allowed.get(name, ()))
        ground = _Ground(site.golden.path, noise[name], allowed)
        for one in _edits(outcome.changes.get(name, ()), site.changes, ground, rng):
            if _applied(one.edit, live, copy):
                differ = changes(site.golden.path, copy, noise[name])
                if differ == site.changes:
                    continue  # the edit came to the same state: nothing is wrong with it
                wrong = replace(site, database=Database(copy), changes=differ)
                yield Mutant(f"{name}: {one.what}", replace(reached, sites={**reached.sites, name: wrong}))


def _other_answers(outcome: Outcome, reached: Evidence) -> Iterator[Mutant]:
    if outcome.answer is None:
        return
    yield Mutant("no answer", replace(reached, answer=None))
    for text in outcome.answer.mutants():
        yield Mutant(f"answer {text!r}", replace(reached, answer=text))


def _other_pages(outcome: Outcome, reached: Evidence) -> Iterator[Mutant]:
    if outcome.page is None:
        return
    yield Mutant("no page", replace(reached, urls=()))
    yield Mutant("another page", replace(reached, urls=(f"http://{outcome.page.site}.test/elsewhere/",)))
    if reached.urls:
        yield Mutant("the page below", replace(reached, urls=(reached.urls[0].split("?")[0].rstrip("/") + "/below/",)))
        silent = {name: replace(site, requests=()) for name, site in reached.sites.items()}
        yield Mutant("an address that the server never saw", replace(reached, sites=silent))


class _Ground(NamedTuple):
    """What of a site the outcome does not speak of."""

    golden: Path
    noise: Noise
    allowed: frozenset[str]
    """Tables in which other rows may change."""


def _edits(
    wanted: Sequence[Expected], found: Sequence[Change], ground: _Ground, rng: random.Random
) -> Iterator[_Edited]:
    for expected in wanted:
        change = next((one for one in found if expected.fits(one)), None)
        if change is None:
            continue
        yield _Edited(f"undone: {change.kind} {change.table}", _undo(change, ground.golden))
        if isinstance(expected, Inserted) and change.table not in ground.allowed:
            yield _Edited(f"twice: {change.table}", _again(change))
        stated = (
            {} if isinstance(expected, Deleted) else expected.values if isinstance(expected, Inserted) else expected.to
        )
        for column, value in stated.items():
            other = _other(change.after[column], free=callable(value))
            yield _Edited(f"{change.table}.{column} = {other!r}", _set(change, column, other))
        if isinstance(expected, Updated):
            yield _Edited(f"another row of {change.table}", _elsewhere(change, tuple(expected.to)))
    yield from _stray(ground, rng)


def _stray(ground: _Ground, rng: random.Random) -> Iterator[_Edited]:
    """One value of one row, anywhere in the database."""
    golden, noise, allowed = ground
    with closing(sqlite3.connect(f"file:{golden}?mode=ro&immutable=1", uri=True)) as database:
        tables = [
            name
            for name, kind in database.execute("SELECT name, type FROM pragma_table_list WHERE schema = 'main'")
            if kind == "table" and not name.startswith("sqlite_") and name not in noise.tables | allowed
        ]
        rng.shuffle(tables)
        made = 0
        for table in tables:
            info = database.execute(f'PRAGMA table_info("{table}")').fetchall()
            columns = [row[1] for row in info if not row[5] and not noise.skips(table, row[1])]
            rows = database.execute(f'SELECT rowid FROM "{table}"').fetchall() if columns else []
            if rows:
                yield _Edited(f"stray: {table}", _touch(table, rng.choice(columns), rng.choice(rows)[0]))
                made += 1
            if made == STRAY_ROWS:
                return


def _applied(edit: Edit, live: Path, copy: Path) -> bool:
    """Makes *copy* an edited copy of *live*; False if the database refused the edit or nothing was changed."""
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
    """A row of a table without a primary key cannot be edited by its key."""


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
    """The same values in another row, and the asked-for row as it was."""

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
    """Another value of the same kind; *free*: the checker tests it, so it is made quite another."""
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
