"""JSON that an agent or a page wrote."""

from __future__ import annotations

import json

from envs.suites.webarena.task import Json

MAX_DEPTH = 100


def load_json(text: str) -> Json:
    """Raises ValueError for what is no JSON, and for lists in lists that nothing could walk through any more."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("too many lists in lists") from error
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        inside = [one for part in level if isinstance(part, dict | list) for one in _parts(part)]
        if not inside:
            return value
        level = inside
    raise ValueError(f"more than {MAX_DEPTH} lists in lists")


def _parts(value: dict[str, Json] | list[Json]) -> list[Json]:
    return list(value.values()) if isinstance(value, dict) else value
