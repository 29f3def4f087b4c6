"""Evaluates the forms of JSONPath that task files use: `$.a.b`, `$['a b'][0]`, `$.rows[?(@.new == 1)].name`."""

from __future__ import annotations

import json
import re
from typing import Any

from envs.suites.webarena.json_text import load_json
from envs.suites.webarena.task import Json

_STEP = re.compile(
    r"""\.(?P<name>[\w-]+)|\['(?P<quoted>[^']*)'\]|\[(?P<index>\d+)\]"""
    r"""|\[\?\(@\.(?P<key>[\w-]+)\s*==\s*(?P<value>[^)]+?)\s*\)\]"""
)


def is_path(key: str) -> bool:
    return key.startswith("$")


def find(data: Json, path: str) -> Json:
    """The value at *path*; None if there is none, a list for a path with a filter. JSON in texts is parsed.

    Raises ValueError for a path of another form.
    """
    values, filtered = [data], False
    for step in _steps(path):
        values = [child for value in values for child in _follow(_parsed(value), step)]
        filtered = filtered or step["key"] is not None
    if filtered:
        return values or None
    return values[0] if values else None


def _steps(path: str) -> list[re.Match[str]]:
    steps = list(_STEP.finditer(path))
    if not is_path(path) or "".join(step[0] for step in steps) != path[1:]:
        raise ValueError(f"{path!r} is not a supported path")
    return steps


def _follow(value: Json, step: re.Match[str]) -> list[Json]:
    name = step["name"] or step["quoted"]
    if name is not None:
        return [value[name]] if isinstance(value, dict) and name in value else []
    if not isinstance(value, list):
        return []
    if step["index"] is not None:
        return value[int(step["index"]) :][:1]
    target = json.loads(step["value"].replace("'", '"'))
    return [item for item in value if isinstance(item, dict) and item.get(step["key"]) == target]


def _parsed(value: Json) -> Any:
    """Parses a text that contains JSON, as forms do; other values are unchanged."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return load_json(value)
    except ValueError:
        return value
