"""Reads JSON by a schema and compares it part by part, as WebArena-Verified does.

A value of an answer that cannot be read as its type is kept unchanged and equals nothing. In a reference (`strict`) it
makes the check fail for every answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from envs.suites.webarena.evaluators.original.kinds import KindName, Known, read_known, same_known
from envs.suites.webarena.evaluators.original.normal import Derender
from envs.suites.webarena.evaluators.original.readers import Unreadable
from envs.suites.webarena.json_text import load_json
from envs.suites.webarena.task import Json, Shape

Part = Any
"""A Known, None, a value that could not be read, a dict of parts, or a tuple of parts."""


def kind_of(shape: Shape | None) -> KindName:
    return cast(KindName, (shape and (shape.format or shape.type)) or "string")


def read_items(data: tuple[Json, ...], shape: Shape, derender: Derender, *, strict: bool) -> tuple[Part, ...]:
    """Reads the data of an answer. Raises Unreadable if *shape* is no array, and if *strict* for unreadable values."""
    if shape.type not in (None, "array"):
        raise Unreadable(f"the schema is no array but {shape.type}")
    items = shape.items or Shape()
    if items.type == "object":
        return tuple(_objects(item, items, derender, strict=strict) for item in data)
    return tuple(_value(item, items, derender, strict=strict) for item in data)


def read_object(value: Json, shape: Shape, derender: Derender, *, strict: bool) -> Part:
    """Reads an object. *shape* types its properties; others are texts. Raises Unreadable if *strict*."""
    content = _parsed(value, dict)
    if not isinstance(content, dict):
        if strict:
            raise Unreadable("no object")
        return content
    shapes = shape.properties
    return {name: _property(part, shapes.get(name), derender, strict=strict) for name, part in content.items()}


def _objects(item: Json, shape: Shape, derender: Derender, *, strict: bool) -> Part:
    if isinstance(item, list):
        return tuple(read_object(part, shape, derender, strict=strict) for part in item)
    return read_object(item, shape, derender, strict=strict)


def _property(value: Json, shape: Shape | None, derender: Derender, *, strict: bool) -> Part:
    if value is None:
        return None
    if shape is not None and shape.type == "array":
        return _array(value, shape.items, derender, strict=strict)
    if shape is not None and shape.type == "object" and shape.format is None:
        return read_object(value, shape, derender, strict=strict)
    return _value(value, shape, derender, strict=strict)


def _array(value: Json, items: Shape | None, derender: Derender, *, strict: bool) -> Part:
    content = _parsed(value, list)
    if not isinstance(content, list):
        if strict:
            raise Unreadable("no array")
        return content
    if items is not None and items.type == "object":
        return tuple(read_object(item, items, derender, strict=strict) for item in content)
    return tuple(_value(item, items, derender, strict=strict) for item in content)


def _value(value: Json, shape: Shape | None, derender: Derender, *, strict: bool) -> Part:
    try:
        return read_known(value, kind_of(shape), derender)
    except (Unreadable, TypeError, ValueError, ArithmeticError):
        if strict:
            raise Unreadable(str(value)) from None
        return tuple(value) if isinstance(value, list) else value


def _parsed(value: Json, expected: type) -> Json:
    """Parses a text that contains JSON of the *expected* type; other values are unchanged."""
    if not isinstance(value, str):
        return value
    try:
        content = load_json(value)
    except ValueError:
        return value
    return content if isinstance(content, expected) else value


def same(expected: Part, actual: Part, *, ordered: bool = False, more: bool = False) -> bool:
    """Compares parts. *ordered*: lists must have the same order. *more*: an object may have further properties."""
    if expected is None or actual is None:
        return expected is None and actual is None
    if isinstance(expected, Mapping):
        return _same_objects(cast(Mapping[str, Part], expected), actual, ordered=ordered, more=more)
    if isinstance(expected, list | tuple):
        return isinstance(actual, list | tuple) and _same_lists(
            list(expected), list(actual), ordered=ordered, more=more
        )
    if isinstance(expected, Known):
        return _same_values(expected, actual)
    return not isinstance(actual, Known) and bool(expected == actual)


def _same_objects(expected: Mapping[str, Part], actual: Part, *, ordered: bool, more: bool) -> bool:
    if (
        not isinstance(actual, Mapping)
        or not set(expected) <= set(actual)
        or (not more and set(actual) - set(expected))
    ):
        return False
    return all(same(value, actual[name], ordered=ordered, more=more) for name, value in expected.items())


def _same_lists(expected: list[Part], actual: list[Part], *, ordered: bool, more: bool) -> bool:
    """Compares lists. Without order, each expected item is matched with the first equal remaining item."""
    if len(expected) != len(actual):
        return False
    if ordered:
        return all(same(want, got, ordered=True, more=more) for want, got in zip(expected, actual, strict=True))
    left = list(actual)
    for want in expected:
        index = next((n for n, got in enumerate(left) if same(want, got, more=more)), None)
        if index is None:
            return False
        del left[index]
    return True


def _same_values(expected: Known, actual: Part) -> bool:
    """Compares values; an unread text is read if a text is expected."""
    if isinstance(actual, Known):
        return same_known(expected, actual)
    if expected.kind == "string" and isinstance(actual, str):
        return same_known(expected, read_known(actual, "string", str))
    return False
