"""Plain values out of a user's file or options: read, laid over each other, and made a record of, with one line for the
first that is wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from envs.core.errors import BadInput
from envs.core.record import Record

R = TypeVar("R", bound=Record)


def read_toml(path: Path) -> dict[str, Any]:
    """The values of a configuration file. Raises BadInput."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"config file {str(path)!r} does not exist") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"config file {str(path)!r} cannot be read: {_one_line(str(error))}") from None


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """*base* with the values of *over* in place of its own; tables are merged, everything else is replaced."""
    result = dict(base)
    for key, value in over.items():
        known = result.get(key)
        result[key] = merged(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return result


class Layer(NamedTuple):
    """Values that were laid over others, such as options over a file."""

    source: str
    values: Mapping[str, Any]


def checked(kind: type[R], values: Mapping[str, Any], source: str, over: Layer | None = None) -> R:
    """Raises BadInput naming the first bad key, what is wrong with it, and where it comes from: *over*, if it stands
    there, else *source*."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        where = error.errors(include_url=False, include_context=False)[0]["loc"]
        raise BadInput(f"{source_of(where, source, over)}: {first_problem(error)}") from None


def source_of(key: Sequence[int | str], source: str, over: Layer | None) -> str:
    """Where the value of *key*, a path of names, comes from."""
    if over is None or not over.values or over.source == source:
        return source
    found: Any = over.values
    for place, part in enumerate(key):
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, Mapping) and place in (0, len(key) - 1):  # in between stand the tags of unions
            return source
    whole = isinstance(found, Mapping) and found  # several keys together are wrong, and some of them stand there
    return f"{source} with {over.source}" if whole else over.source


def first_problem(error: ValidationError) -> str:
    """On one line: the key, and what is wrong with its value."""
    problem = error.errors(include_url=False, include_context=False)[0]
    key = ".".join(str(part) for part in problem["loc"]) or "value"
    match problem["type"]:
        case "extra_forbidden":
            return f"unknown key {key!r}"
        case "missing":
            return f"key {key!r} is missing"
        case _:
            said = _one_line(problem["msg"]).removeprefix("Value error, ")
            if not problem["loc"] and problem["type"] == "value_error":
                return said  # of several keys together
            return f"key {key!r}: {said}, got {problem['input']!r:.80}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
