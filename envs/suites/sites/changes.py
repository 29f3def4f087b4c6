"""What an episode changed in an application's database, row by row, and whether that is what it should have changed.

A checker states the rows that must differ from the golden state. Everything else that differs is a failure, except
noise that a visit alone leaves behind (sessions, counters).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Literal

SqlValue = str | int | float | bytes | None
Row = Mapping[str, SqlValue]
Test = Callable[[SqlValue], bool]
ExpectedValue = SqlValue | Decimal | bool | Test
"""A value, or a test on it."""


@dataclass(frozen=True, slots=True)
class Noise:
    """What a visit alone changes, or what follows from another change: not looked at."""

    tables: frozenset[str] = frozenset()
    columns: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Table to columns; the table `*` stands for all."""

    def skips(self, table: str, column: str) -> bool:
        return column in self.columns.get(table, ()) or column in self.columns.get("*", ())


@dataclass(frozen=True, slots=True)
class Change:
    """One row that differs."""

    table: str
    kind: Literal["insert", "update", "delete"]
    key: tuple[SqlValue, ...]
    """Its primary key."""
    before: Row
    """Empty for an insert."""
    after: Row
    """Empty for a delete."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of an update whose value differs."""
        return tuple(name for name in self.after if name in self.before and self.before[name] != self.after[name])

    def __str__(self) -> str:
        if self.kind == "update":
            told = ", ".join(f"{name}: {self.before[name]!r} → {self.after[name]!r}" for name in self.columns)
        else:
            told = ", ".join(f"{name}={value!r}" for name, value in (self.after or self.before).items())
        return f"{self.kind} {self.table}{self.key}: {told}"[:400]


@dataclass(frozen=True, slots=True)
class Inserted:
    """A new row with these values; columns that are not named are left open."""

    table: str
    values: Mapping[str, ExpectedValue]

    def fits(self, change: Change) -> bool:
        return change.kind == "insert" and change.table == self.table and _all_fit(self.values, change.after)


@dataclass(frozen=True, slots=True)
class Updated:
    """An existing row, found by what it *was*, in which `to` and nothing else was set.

    A column of `to` may have had its value before; `may` names columns that may change besides (time stamps)."""

    table: str
    was: Mapping[str, ExpectedValue]
    to: Mapping[str, ExpectedValue]
    allowed: tuple[str, ...] = ()

    def fits(self, change: Change) -> bool:
        return (
            change.kind == "update"
            and change.table == self.table
            and _all_fit(self.was, change.before)
            and _all_fit(self.to, change.after)
            and set(change.columns) <= {*self.to, *self.allowed}
        )


@dataclass(frozen=True, slots=True)
class Deleted:
    """A row, found by what it was, that is gone."""

    table: str
    was: Mapping[str, ExpectedValue]

    def fits(self, change: Change) -> bool:
        return change.kind == "delete" and change.table == self.table and _all_fit(self.was, change.before)


Expected = Inserted | Updated | Deleted


def values_match(wanted: ExpectedValue, found: SqlValue) -> bool:
    """Equality as a person means it: 3 is "3.00" is True's 1 only where both are numbers; text is exact but for
    line ends and blanks around it."""
    if callable(wanted):
        return wanted(found)
    if wanted is None or found is None:
        return wanted is None and found is None
    if isinstance(wanted, bool | int | float | Decimal):
        return _number(found) == Decimal(str(int(wanted) if isinstance(wanted, bool) else wanted))
    if isinstance(wanted, str) and isinstance(found, str):
        return wanted.replace("\r\n", "\n").strip() == found.replace("\r\n", "\n").strip()
    return wanted == found


def holds(*parts: str) -> Test:
    """A text that contains every one of *parts* (for rich text, where the editor adds markup)."""

    def test(found: SqlValue) -> bool:
        return isinstance(found, str) and all(part in found for part in parts)

    return test


def changes(golden: Path, live: Path, noise: Noise) -> tuple[Change, ...]:
    """Every row of *live* that differs from *golden*, noise left out, in the order of tables and keys.

    Raises sqlite3.Error where the live database cannot be read.
    """
    with closing(sqlite3.connect(f"file:{live}?mode=ro", uri=True, timeout=5.0)) as database:
        database.execute("ATTACH DATABASE ? AS golden", (f"file:{golden}?mode=ro&immutable=1",))
        found: list[Change] = []
        for table in _tables(database):
            if table not in noise.tables:
                found += _table_changes(database, table, noise)
        return tuple(found)


def mismatch(found: Sequence[Change], wanted: Sequence[Expected], allowed: Sequence[Expected] = ()) -> str:
    """Why *found* is not exactly *wanted* (each once, in any order) plus any of *may*; empty if it is."""
    left = list(found)
    for one in wanted:
        match = next((change for change in left if one.fits(change)), None)
        if match is None:
            return f"not changed as asked: {_told(one)}"
        left.remove(match)
    for change in left:
        if not any(one.fits(change) for one in allowed):
            return f"changed besides: {change}"
    return ""


def _table_changes(database: sqlite3.Connection, table: str, noise: Noise) -> list[Change]:
    info = database.execute(f'PRAGMA main.table_info("{table}")').fetchall()
    names = [row[1] for row in info]
    places = [index for index, row in enumerate(info) if row[5]]
    after = _difference(database, "main", "golden", table)
    before = _difference(database, "golden", "main", table)

    def keyed(rows: list[tuple[SqlValue, ...]]) -> dict[tuple[SqlValue, ...], tuple[SqlValue, ...]]:
        return {tuple(row[place] for place in places) if places else row: row for row in rows}

    new, old = keyed(after), keyed(before)
    made: list[Change] = []
    for key in sorted({*new, *old}, key=repr):
        was = _row(names, old.get(key), table, noise)
        now = _row(names, new.get(key), table, noise)
        if was and now and was == now:
            continue  # only noise differs
        kind: Literal["insert", "update", "delete"] = "update" if was and now else "insert" if now else "delete"
        made.append(Change(table, kind, key, was, now))
    return made


def _row(names: list[str], values: tuple[SqlValue, ...] | None, table: str, noise: Noise) -> dict[str, SqlValue]:
    if values is None:
        return {}
    return {name: value for name, value in zip(names, values, strict=True) if not noise.skips(table, name)}


def _difference(database: sqlite3.Connection, of: str, less: str, table: str) -> list[tuple[SqlValue, ...]]:
    return database.execute(f'SELECT * FROM {of}."{table}" EXCEPT SELECT * FROM {less}."{table}"').fetchall()


def _tables(database: sqlite3.Connection) -> list[str]:
    """Ordinary tables: a search index's shadow tables follow from others, `sqlite_sequence` from inserts."""
    rows = database.execute("SELECT name, type FROM pragma_table_list WHERE schema = 'main'").fetchall()
    return sorted(name for name, kind in rows if kind == "table" and not name.startswith("sqlite_"))


def _all_fit(wanted: Mapping[str, ExpectedValue], row: Row) -> bool:
    return all(name in row and values_match(value, row[name]) for name, value in wanted.items())


def _number(found: SqlValue) -> Decimal | None:
    if isinstance(found, bytes) or found is None:
        return None
    try:
        return Decimal(str(found).strip()) if re.fullmatch(r"[-+\d.eE]+", str(found).strip()) else None
    except InvalidOperation:
        return None


def _told(one: Expected) -> str:
    values = one.values if isinstance(one, Inserted) else one.was
    told = ", ".join(f"{name}={'…' if callable(value) else repr(value)}" for name, value in values.items())
    to = f" to {dict(one.to)}" if isinstance(one, Updated) else ""
    return f"{type(one).__name__.lower()} {one.table}({told}){to}"[:300]
