"""Reads, merges and validates plain values from a user's file or options; an error names the first invalid value."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from envs.core.errors import BadInput
from envs.core.record import Record

R = TypeVar("R", bound=Record)

ALIKE: Final = 0.8
"""Similarity in [0, 1] above which a key may be a misspelling of another."""
SUGGESTED: Final = 3
"""Most keys that a message suggests."""
CONFIDENTIAL: Final = frozenset({"secrets", "http_credentials", "proxy"})
"""Keys whose wrong value may be a password in place of its source, so that no message shows it."""


def read_toml(path: Path) -> dict[str, Any]:
    """Reads a configuration file. Raises BadInput."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"config file {str(path)!r} does not exist") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"config file {str(path)!r} cannot be read: {_one_line(str(error))}") from None
    except RecursionError:
        raise BadInput(f"config file {str(path)!r} cannot be read: it is nested too deeply") from None


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Returns *base* updated by *over*: tables are merged, all other values are replaced."""
    result = dict(base)
    for key, value in over.items():
        known = result.get(key)
        result[key] = merged(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return result


def flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of nested tables by dotted key, in order; an empty table has none."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= flattened(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
    return flat


class Layer(NamedTuple):
    """Values that override others, such as options that override a file."""

    source: str
    values: Mapping[str, Any]


def checked(kind: type[R], values: Mapping[str, Any], source: str, over: Layer | None = None) -> R:
    """Validates *values* as a record of *kind*. Raises BadInput, which names the first invalid key, its problem and its
    origin: *over* if it has the key, else *source*."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False)[0]
        where = problem["loc"]
        hint = _suggestion(kind, where) if problem["type"] == "extra_forbidden" else ""
        raise BadInput(f"{source_of(where, source, over)}: {first_problem(error)}{hint}") from None


def _suggestion(kind: type[BaseModel], where: Sequence[int | str]) -> str:
    """The keys of *kind* that were probably meant: those with this last name, else one that is written alike."""
    known = list(_keys(kind))
    same = [key for key in known if key.rpartition(".")[2] == where[-1]]
    alike = same or get_close_matches(".".join(map(str, where)), known, n=1, cutoff=ALIKE)
    return f"; did you mean {' or '.join(map(repr, alike[:SUGGESTED]))}?" if alike else ""


def _keys(kind: type[BaseModel], above: tuple[type[BaseModel], ...] = ()) -> Iterator[str]:
    """The dotted keys of a record and of the records in it."""
    for name, field in kind.model_fields.items():
        yield name
        for part in _records(field.annotation):
            if part not in (kind, *above):
                yield from (f"{name}.{key}" for key in _keys(part, (kind, *above)))


def _records(annotation: object) -> Iterator[type[BaseModel]]:
    """The records that an annotation, such as `Limits | None`, admits as a value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (Union, UnionType, Annotated):
        for part in get_args(annotation):
            yield from _records(part)


def source_of(key: Sequence[int | str], source: str, over: Layer | None) -> str:
    """Returns the source of the value of *key*, a path of names."""
    if over is None or not over.values or over.source == source:
        return source
    value: Any = over.values
    for place, part in enumerate(key):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, Mapping) and place in (0, len(key) - 1):  # the parts in between may be tags of unions
            return source
    is_table = isinstance(value, Mapping) and value  # the error concerns several keys, of which *over* has some
    return f"{source} with {over.source}" if is_table else over.source


def first_problem(error: ValidationError) -> str:
    """Describes the first error on one line: the key and what is wrong with its value."""
    problem = error.errors(include_url=False, include_context=False)[0]
    key = ".".join(str(part) for part in problem["loc"]) or "value"
    match problem["type"]:
        case "extra_forbidden":
            return f"unknown key {key!r}"
        case "missing":
            return f"key {key!r} is missing"
        case _:
            reason = _one_line(problem["msg"]).removeprefix("Value error, ")
            if not problem["loc"] and problem["type"] == "value_error":
                return reason  # it concerns several keys
            shown = "" if CONFIDENTIAL.intersection(problem["loc"]) else f", got {problem['input']!r:.80}"
            return f"key {key!r}: {reason}{shown}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
