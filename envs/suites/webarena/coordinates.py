"""Latitude and longitude as people write them, in degrees."""

from __future__ import annotations

import re
from collections.abc import Mapping

from envs.suites.webarena.task import Json

_DEGREES = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*°?\s*([nsew]\b)?", re.IGNORECASE)
_AROUND = re.compile(r"(?:[\s,;:/()\[\]]|lat(?:itude)?|lon(?:g(?:itude)?)?|lng)*", re.IGNORECASE)
"""What may stand beside the two numbers of a text."""


def read_coordinates(value: Json) -> tuple[float, float] | None:
    """(latitude, longitude) of an object, a pair or a text with the two; None for everything else."""
    if isinstance(value, Mapping):
        parts = named_parts(value)
        found = None if parts is None else (_degrees(parts[0]), _degrees(parts[1]))
    elif isinstance(value, list | tuple) and len(value) == 2:
        found = _degrees(value[0]), _degrees(value[1])
    else:
        found = _in_text(str(value))
    if found is None or found[0] is None or found[1] is None:
        return None
    return found[0], found[1]


def named_parts(value: Mapping[str, Json]) -> tuple[Json, Json] | None:
    """The values under a beginning of `latitude` (lat, Lat, LATI …) and of `longitude`, or `lng`."""
    found: dict[str, Json] = {}
    for name, part in value.items():
        for whole in ("latitude", "longitude"):
            if (len(name) >= 2 and whole.startswith(name.lower())) or (whole == "longitude" and name.lower() == "lng"):
                found.setdefault(whole, part)
    return (found["latitude"], found["longitude"]) if len(found) == 2 else None


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
