"""Plain values out of a user's file or options: read, laid over each other, and made a record of, with one line for the
first that is wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from envs.errors import BadInput
from envs.record import Record

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


def checked(kind: type[R], values: Mapping[str, Any], source: str) -> R:
    """Raises BadInput naming *source*, the first bad key and what is wrong with it."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise BadInput(f"{source}: {first_problem(error)}") from None


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
            return f"key {key!r}: {said}, got {problem['input']!r:.80}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
