"""Compares an application's database with its golden state row by row and with the changes that a task expects.

A checker lists the rows that must differ from the golden state. Any other difference is a failure, except noise that
every visit causes (sessions, counters).
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
"""The expected value of a column, or a test of it."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Tables and columns that the comparison ignores: a visit changes them, or they follow from another change."""

    tables: frozenset[str] = frozenset()
    columns: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Table to ignored columns; the table `*` means all tables."""

    def skips(self, table: str, column: str) -> bool:
        return column in self.columns.get(table, ()) or column in self.columns.get("*", ())


@dataclass(frozen=True, slots=True)
class Change:
    """A row that differs from the golden state."""

    table: str
    kind: Literal["insert", "update", "delete"]
    key: tuple[SqlValue, ...]
    """The primary key."""
    before: Row
    """Empty for an insert."""
    after: Row
    """Empty for a delete."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of an update whose values differ."""
        return tuple(name for name in self.after if name in self.before and self.before[name] != self.after[name])

    def __str__(self) -> str:
        if self.kind == "update":
            values = ", ".join(f"{name}: {self.before[name]!r} → {self.after[name]!r}" for name in self.columns)
        else:
            values = ", ".join(f"{name}={value!r}" for name, value in (self.after or self.before).items())
        return f"{self.kind} {self.table}{self.key}: {values}"[:400]


@dataclass(frozen=True, slots=True)
class Inserted:
    """Expects a new row with these values. Other columns may have any value."""

    table: str
    values: Mapping[str, ExpectedValue]

    def fits(self, change: Change) -> bool:
        return change.kind == "insert" and change.table == self.table and values_fit(self.values, change.after)


@dataclass(frozen=True, slots=True)
class Updated:
    """Expects that the row with the values `was` has the values `to` and no other changes.

    A column of `to` may have had its new value before."""

    table: str
    was: Mapping[str, ExpectedValue]
    to: Mapping[str, ExpectedValue]
    allowed: tuple[str, ...] = ()
    """Further columns that may change, such as time stamps."""

    def fits(self, change: Change) -> bool:
        return (
            change.kind == "update"
            and change.table == self.table
            and values_fit(self.was, change.before)
            and values_fit(self.to, change.after)
            and set(change.columns) <= {*self.to, *self.allowed}
        )


@dataclass(frozen=True, slots=True)
class Deleted:
    """Expects that the row with the values `was` is deleted."""

    table: str
    was: Mapping[str, ExpectedValue]

    def fits(self, change: Change) -> bool:
        return change.kind == "delete" and change.table == self.table and values_fit(self.was, change.before)


Expected = Inserted | Updated | Deleted


def values_match(expected: ExpectedValue, actual: SqlValue) -> bool:
    """Compares a column with its expected value.

    An expected number or boolean equals "3.00" as well as 3. Text is equal up to line ends and outer white space."""
    if callable(expected):
        return expected(actual)
    if expected is None or actual is None:
        return expected is None and actual is None
    if isinstance(expected, bool | int | float | Decimal):
        return _number(actual) == Decimal(str(int(expected) if isinstance(expected, bool) else expected))
    if isinstance(expected, str) and isinstance(actual, str):
        return expected.replace("\r\n", "\n").strip() == actual.replace("\r\n", "\n").strip()
    return expected == actual


def changes(golden: Path, live: Path, noise: Noise) -> tuple[Change, ...]:
    """All rows of *live* that differ from *golden*, without noise, ordered by table and key.

    Raises sqlite3.Error if the live database cannot be read.
    """
    with closing(sqlite3.connect(f"file:{live}?mode=ro", uri=True, timeout=5.0)) as database:
        database.execute("ATTACH DATABASE ? AS golden", (f"file:{golden}?mode=ro&immutable=1",))
        rows: list[Change] = []
        for table in _tables(database):
            if table not in noise.tables:
                rows += _table_changes(database, table, noise)
        return tuple(rows)


def mismatch(actual: Sequence[Change], expected: Sequence[Expected], allowed: Sequence[Expected] = ()) -> str:
    """The first difference between the changes and the expected ones; empty if there is none.

    Each of *expected* must match exactly one change, in any order. The rest must match one of *allowed*."""
    rest = list(actual)
    for expectation in expected:
        match = next((change for change in rest if expectation.fits(change)), None)
        if match is None:
            return f"missing change: {_describe(expectation)}"
        rest.remove(match)
    for change in rest:
        if not any(expectation.fits(change) for expectation in allowed):
            return f"unexpected change: {change}"
    return ""


def _table_changes(database: sqlite3.Connection, table: str, noise: Noise) -> list[Change]:
    info = database.execute(f'PRAGMA main.table_info("{table}")').fetchall()
    names = [row[1] for row in info]
    key_columns = [index for index, row in enumerate(info) if row[5]]
    after = _difference(database, "main", "golden", table)
    before = _difference(database, "golden", "main", table)

    def keyed(rows: list[tuple[SqlValue, ...]]) -> dict[tuple[SqlValue, ...], tuple[SqlValue, ...]]:
        return {tuple(row[index] for index in key_columns) if key_columns else row: row for row in rows}

    new, old = keyed(after), keyed(before)
    differences: list[Change] = []
    for key in sorted({*new, *old}, key=repr):
        was = _row(names, old.get(key), table, noise)
        now = _row(names, new.get(key), table, noise)
        if was and now and was == now:
            continue  # only noise differs
        kind: Literal["insert", "update", "delete"] = "update" if was and now else "insert" if now else "delete"
        differences.append(Change(table, kind, key, was, now))
    return differences


def _row(names: list[str], values: tuple[SqlValue, ...] | None, table: str, noise: Noise) -> dict[str, SqlValue]:
    if values is None:
        return {}
    return {name: value for name, value in zip(names, values, strict=True) if not noise.skips(table, name)}


def _difference(database: sqlite3.Connection, of: str, less: str, table: str) -> list[tuple[SqlValue, ...]]:
    return database.execute(f'SELECT * FROM {of}."{table}" EXCEPT SELECT * FROM {less}."{table}"').fetchall()


def _tables(database: sqlite3.Connection) -> list[str]:
    """The ordinary tables, without the shadow tables of search indexes and without `sqlite_sequence`."""
    rows = database.execute("SELECT name, type FROM pragma_table_list WHERE schema = 'main'").fetchall()
    return sorted(name for name, kind in rows if kind == "table" and not name.startswith("sqlite_"))


def values_fit(expected: Mapping[str, ExpectedValue], row: Row) -> bool:
    """Whether *row* has all *expected* columns, with matching values."""
    return all(name in row and values_match(value, row[name]) for name, value in expected.items())


def _number(value: SqlValue) -> Decimal | None:
    if isinstance(value, bytes) or value is None:
        return None
    try:
        return Decimal(str(value).strip()) if re.fullmatch(r"[-+\d.eE]+", str(value).strip()) else None
    except InvalidOperation:
        return None


def _describe(expectation: Expected) -> str:
    values = expectation.values if isinstance(expectation, Inserted) else expectation.was
    columns = ", ".join(f"{name}={'…' if callable(value) else repr(value)}" for name, value in values.items())
    to = f" to {dict(expectation.to)}" if isinstance(expectation, Updated) else ""
    return f"{type(expectation).__name__.lower()} {expectation.table}({columns}){to}"[:300]
