"""Reads and compares values of WebArena-Verified's data types.

A list in place of a plain value contains alternatives, in answers and references: the benchmark reads both the same
way. A pattern is used only in a reference; in an answer it would match every reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from envs.suites.webarena.evaluators.original import readers
from envs.suites.webarena.evaluators.original.normal import Derender, is_pattern, normal
from envs.suites.webarena.evaluators.original.readers import Unreadable
from envs.suites.webarena.evaluators.original.urls import Address, SameAddress, read_address
from envs.suites.webarena.folding import bare
from envs.suites.webarena.similarity import similarity
from envs.suites.webarena.task import Json
from envs.suites.webarena.values import MAX_CHARS, MAX_MARKDOWN_CHARS, MAX_TYPED_CHARS

KindName = Literal[
    "string",
    "number",
    "integer",
    "boolean",
    "currency",
    "date",
    "month",
    "duration",
    "distance",
    "coordinates",
    "location-name",
    "markdown",
    "json",
    "string_list",
    "url",
]
AS_THEY_ARE = ("markdown", "url")
"""Kinds whose texts are not converted to lower-case ASCII first."""
LONG = ("string", "json", "string_list", "location-name", "url")
"""Kinds that may be long; others are read by patterns that take quadratic time."""


@dataclass(frozen=True, slots=True)
class Known:
    """A value that could be read: one form, or several alternatives."""

    kind: KindName
    forms: tuple[Any, ...]


def read_known(value: Json, kind: KindName, derender: Derender) -> Known:
    """Reads a value. Raises Unreadable."""
    if isinstance(value, list | tuple) and not (kind == "coordinates" and _is_pair(value)):
        if len(value) < 2:
            raise Unreadable("there must be at least two alternatives")
        return Known(kind, tuple(_read(item, kind, derender) for item in value))
    return Known(kind, (_read(value, kind, derender),))


def same_known(expected: Known, actual: Known) -> bool:
    """True if one of the actual forms equals one of the expected forms."""
    return expected.kind == actual.kind and _SAME.get(expected.kind, _overlap)(expected.forms, actual.forms)


def _is_pair(value: list[Json] | tuple[Json, ...]) -> bool:
    return len(value) == 2 and all(isinstance(part, int | float | str) for part in value)


def _read(value: Json, kind: KindName, derender: Derender) -> Any:
    if kind == "url":
        return read_address(value, derender)
    if isinstance(value, str):
        if len(value) > (MAX_CHARS if kind in LONG else MAX_MARKDOWN_CHARS if kind == "markdown" else MAX_TYPED_CHARS):
            raise Unreadable("too long")
        value = value.strip() if kind in AS_THEY_ARE else normal(value, derender)
    return _READ[kind](value)


def _overlap(expected: tuple[Any, ...], actual: tuple[Any, ...]) -> bool:
    return any(form in actual for form in expected)


def _same_text(expected: tuple[str, ...], actual: tuple[str, ...]) -> bool:
    """Compares texts unchanged, or without surrounding punctuation, so `???` equals an empty text."""
    if any(_fits(pattern, text) for pattern in expected if is_pattern(pattern) for text in actual):
        return True
    return _overlap(expected, actual) or _overlap(tuple(map(bare, expected)), tuple(map(bare, actual)))


def _fits(pattern: str, text: str) -> bool:
    return re.compile(pattern, re.IGNORECASE).fullmatch(text) is not None


def _same_amount(expected: tuple[Decimal, ...], actual: tuple[Decimal, ...]) -> bool:
    return abs(expected[0] - actual[0]) <= Decimal("0.1")


def _same_duration(expected: tuple[float, ...], actual: tuple[float, ...]) -> bool:
    return any(abs(want - got) <= max(180.0, 0.1 * max(want, got)) for want in expected for got in actual)


def _same_distance(expected: tuple[Decimal, ...], actual: tuple[Decimal, ...]) -> bool:
    share = Decimal("0.02")
    return any(abs(want - got) <= max(Decimal(10), share * max(want, got)) for want in expected for got in actual)


def _same_point(expected: tuple[tuple[float, float], ...], actual: tuple[tuple[float, float], ...]) -> bool:
    return all(abs(want - got) <= 1e-5 for want, got in zip(expected[0], actual[0], strict=True))


def _same_place(expected: tuple[str, ...], actual: tuple[str, ...]) -> bool:
    return any(
        want == got if not want or not got else similarity(want, got) >= 80 for want in expected for got in actual
    )


def _same_address(expected: tuple[Address, ...], actual: tuple[Address, ...]) -> bool:
    return any(SameAddress(want).includes(got) for want in expected for got in actual)


_READ: dict[KindName, Callable[[Json], Any]] = {
    "string": readers.read_text,
    "number": readers.read_number,
    "integer": readers.read_number,
    "boolean": readers.read_boolean,
    "currency": readers.read_amount,
    "date": readers.read_day,
    "month": readers.read_month,
    "duration": readers.read_duration,
    "distance": readers.read_distance,
    "coordinates": readers.read_coordinates,
    "location-name": readers.read_place_name,
    "markdown": readers.read_markdown,
    "json": readers.read_json,
    "string_list": readers.read_list,
}
_SAME: dict[KindName, Callable[[Any, Any], bool]] = {
    "string": _same_text,
    "currency": _same_amount,
    "duration": _same_duration,
    "distance": _same_distance,
    "coordinates": _same_point,
    "location-name": _same_place,
    "url": _same_address,
}
