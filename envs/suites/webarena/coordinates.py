"""Reads latitude and longitude in degrees from objects, pairs and texts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from envs.suites.webarena.task import Json

_DEGREES = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*°?\s*([nsew]\b)?", re.IGNORECASE)
_AROUND = re.compile(r"(?:[\s,;:/()\[\]]|lat(?:itude)?|lon(?:g(?:itude)?)?|lng)*", re.IGNORECASE)
"""Text that may surround the two numbers."""


def read_coordinates(value: Json) -> tuple[float, float] | None:
    """(latitude, longitude) of an object, a pair or a text with two numbers; None for other values."""
    if isinstance(value, Mapping):
        parts = named_parts(value)
        point = None if parts is None else (_degrees(parts[0]), _degrees(parts[1]))
    elif isinstance(value, list | tuple) and len(value) == 2:
        point = _degrees(value[0]), _degrees(value[1])
    else:
        point = _in_text(str(value))
    if point is None or point[0] is None or point[1] is None:
        return None
    return point[0], point[1]


def named_parts(value: Mapping[str, Json]) -> tuple[Json, Json] | None:
    """The values whose names are prefixes of `latitude` (lat, Lat, LATI …) and of `longitude`, or `lng`."""
    parts: dict[str, Json] = {}
    for name, part in value.items():
        for axis in ("latitude", "longitude"):
            if (len(name) >= 2 and axis.startswith(name.lower())) or (axis == "longitude" and name.lower() == "lng"):
                parts.setdefault(axis, part)
    return (parts["latitude"], parts["longitude"]) if len(parts) == 2 else None


def _in_text(text: str) -> tuple[float | None, float | None] | None:
    numbers = [match[0] for match in _DEGREES.finditer(text)]
    if len(numbers) != 2 or not _AROUND.fullmatch(_DEGREES.sub(" ", text)):
        return None
    return _degrees(numbers[0]), _degrees(numbers[1])


def _degrees(value: Json) -> float | None:
    """South and west are negative."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    match = _DEGREES.fullmatch(str(value).strip())
    if match is None:
        return None
    degrees = float(match[1])
    return -abs(degrees) if (match[2] or "").lower() in ("s", "w") else degrees
