"""JSON read by a schema and compared part by part, as WebArena-Verified does it.

What cannot be read as its type stays as it is in an answer, and then equals nothing; in a reference it makes the
whole check one that nothing meets (`strict`).
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
    """The data of an answer. Raises Unreadable where *shape* is no array; where *strict*, for what cannot be read."""
    if shape.type not in (None, "array"):
        raise Unreadable(f"the schema is no array but {shape.type}")
    items = shape.items or Shape()
    if items.type == "object":
        return tuple(_objects(item, items, derender, strict=strict) for item in data)
    return tuple(_value(item, items, derender, strict=strict) for item in data)


def read_object(value: Json, shape: Shape, derender: Derender, *, strict: bool) -> Part:
    """An object whose properties are typed by *shape*; texts where they are not. Raises Unreadable where *strict*."""
    found = _parsed(value, dict)
    if not isinstance(found, dict):
        if strict:
            raise Unreadable("no object")
        return found
    return {name: _property(one, shape.properties.get(name), derender, strict=strict) for name, one in found.items()}


def _objects(item: Json, shape: Shape, derender: Derender, *, strict: bool) -> Part:
    if isinstance(item, list):
        return tuple(read_object(one, shape, derender, strict=strict) for one in item)
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
    found = _parsed(value, list)
    if not isinstance(found, list):
        if strict:
            raise Unreadable("no array")
        return found
    if items is not None and items.type == "object":
        return tuple(read_object(one, items, derender, strict=strict) for one in found)
    return tuple(_value(one, items, derender, strict=strict) for one in found)


def _value(value: Json, shape: Shape | None, derender: Derender, *, strict: bool) -> Part:
    try:
        return read_known(value, kind_of(shape), derender)
    except (Unreadable, TypeError, ValueError, ArithmeticError):
        if strict:
            raise Unreadable(str(value)) from None
        return tuple(value) if isinstance(value, list) else value


def _parsed(value: Json, wanted: type) -> Json:
    """The object or list that a text holds as JSON."""
    if not isinstance(value, str):
        return value
    try:
        found = load_json(value)
    except ValueError:
        return value
    return found if isinstance(found, wanted) else value


def same(expected: Part, actual: Part, *, ordered: bool = False, more: bool = False) -> bool:
    """*ordered*: the order of lists counts. *more*: an object may have more than is expected."""
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
    """Without order, each expected item takes the first that is left and the same."""
    if len(expected) != len(actual):
        return False
    if ordered:
        return all(same(want, got, ordered=True, more=more) for want, got in zip(expected, actual, strict=True))
    left = list(actual)
    for want in expected:
        found = next((n for n, got in enumerate(left) if same(want, got, more=more)), None)
        if found is None:
            return False
        del left[found]
    return True


def _same_values(expected: Known, actual: Part) -> bool:
    """A text may stand unread beside an expected text."""
    if isinstance(actual, Known):
        return same_known(expected, actual)
    if expected.kind == "string" and isinstance(actual, str):
        return same_known(expected, read_known(actual, "string", str))
    return False
