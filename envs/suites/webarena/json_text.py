"""Parses JSON that an agent or a page wrote."""

from __future__ import annotations

import json

from envs.suites.webarena.task import Json

MAX_DEPTH = 100


def load_json(text: str) -> Json:
    """Parses *text*. Raises ValueError for invalid JSON, and for nesting deeper than MAX_DEPTH."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        inner = [child for part in level if isinstance(part, dict | list) for child in _parts(part)]
        if not inner:
            return value
        level = inner
    raise ValueError(f"nested more than {MAX_DEPTH} levels deep")


def _parts(value: dict[str, Json] | list[Json]) -> list[Json]:
    return list(value.values()) if isinstance(value, dict) else value
