"""The few forms of JSONPath that task files use: `$.a.b`, `$['a b'][0]`, `$.rows[?(@.new == 1)].name`."""

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
    """What *path* leads to; None where it leads nowhere, a list where it filters. Texts that hold JSON are entered.

    Raises ValueError for a path of another form.
    """
    found, filtered = [data], False
    for step in _steps(path):
        found = [after for value in found for after in _follow(_entered(value), step)]
        filtered = filtered or step["key"] is not None
    if filtered:
        return found or None
    return found[0] if found else None


def _steps(path: str) -> list[re.Match[str]]:
    steps = list(_STEP.finditer(path))
    if not is_path(path) or "".join(step[0] for step in steps) != path[1:]:
        raise ValueError(f"{path!r} is no path that is understood here")
    return steps


def _follow(value: Json, step: re.Match[str]) -> list[Json]:
    name = step["name"] or step["quoted"]
    if name is not None:
        return [value[name]] if isinstance(value, dict) and name in value else []
    if not isinstance(value, list):
        return []
    if step["index"] is not None:
        return value[int(step["index"]) :][:1]
    wanted = json.loads(step["value"].replace("'", '"'))
    return [item for item in value if isinstance(item, dict) and item.get(step["key"]) == wanted]


def _entered(value: Json) -> Any:
    """Forms carry JSON as text."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return load_json(value)
    except ValueError:
        return value
