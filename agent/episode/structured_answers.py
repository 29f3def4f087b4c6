"""Checks the answer of an open task against the user's JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from envs.core.actions import says_impossible
from envs.core.errors import BadInput

MAX_PROBLEM_CHARS = 300


class AnswerSchema:
    """A JSON Schema (2020-12); references to other documents are not followed."""

    def __init__(self, schema: Any) -> None:
        """Raises jsonschema's SchemaError, and referencing's Unresolvable for a missing reference.

        In a schema whose parts have an `$id`, a missing reference shows only when an answer is checked."""
        Draft202012Validator.check_schema(schema)
        empty: Registry[Any] = Registry()  # nothing is fetched
        self._validator = Draft202012Validator(schema, registry=empty)
        if not _bases(schema):
            document = empty.with_resource("", DRAFT202012.create_resource(schema))
            resolver = document.resolver(schema.get("$id", "") if isinstance(schema, dict) else "")
            for reference in _references(schema):
                resolver.lookup(reference)
        self._text = json.dumps(schema, ensure_ascii=False)

    @classmethod
    def of(cls, given: Path | dict[str, Any]) -> AnswerSchema:
        """The schema in a file, or *given* itself. Raises BadInput where the file cannot be read, or is no schema."""
        name = f"answer schema {str(given)!r}" if isinstance(given, Path) else "the answer schema"
        try:
            return cls(json.loads(given.read_text(encoding="utf-8")) if isinstance(given, Path) else given)
        except OSError as error:
            raise BadInput(f"{name} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise BadInput(f"{name} is not JSON: {error}") from None
        except RecursionError:
            raise BadInput(f"{name} is nested too deeply") from None
        except SchemaError as error:
            raise BadInput(f"{name} is not a JSON Schema: {error.message}") from None
        except Unresolvable as error:
            raise BadInput(f"{name} has a reference to {error.ref!r}, which it does not hold: add it") from None

    def add_to(self, instruction: str) -> str:
        """Returns *instruction* with the schema of the answer."""
        return f"{instruction} (Give the answer as JSON that fits this schema: {self._text})"

    def problem(self, answer: str | None) -> str | None:
        """Returns why *answer* does not fit, on one line for the policy; None if it fits.

        `N/A` fits every schema: a task that cannot be done has no other answer."""
        if says_impossible(answer):
            return None
        if answer is None:
            return "the answer is missing: give it as JSON that fits the schema"
        try:
            value = json.loads(answer)
        except ValueError as error:
            return f"the answer is not JSON: {error}"
        except RecursionError:
            return "the answer is nested too deeply"
        try:
            error = best_match(self._validator.iter_errors(value))
        except RecursionError:
            return "the answer is nested too deeply"
        except Unresolvable as error:
            return f"the answer cannot be checked: the schema refers to {error.ref!r}, which it does not hold"
        if error is None:
            return None
        return f"the answer does not fit the schema at {error.json_path}: {error.message}"[:MAX_PROBLEM_CHARS]


def _references(schema: Any) -> Iterator[str]:
    return (value for key, value in _members(schema) if key in ("$ref", "$dynamicRef") and isinstance(value, str))


def _bases(schema: Any) -> bool:
    """Whether a part of *schema* has its own `$id`."""
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return any(key == "$id" for part in parts for key, _ in _members(part))


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields every key with its value, at any depth."""
    if isinstance(value, dict):
        yield from value.items()
        for inner in value.values():
            yield from _members(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _members(inner)
