"""Writes the base map that the browser draws, as one GeoJSON file. There are no tiles."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from envs.suites.sites.apps.map.extract import Extract, Point

FILE = "base.json"
WIDE = {"primary", "secondary", "tertiary"}
STREETS = {"residential", "unclassified", "pedestrian", "living_street"}
AREAS = ("park", "water", "building")
ORDER = (*AREAS, "path", "street", "road")


def write_drawing(extracted: Extract, folder: Path) -> None:
    """Writes *folder*/base.json with one feature per kind, in painting order. Thousands of single features would cost
    the browser a second per page."""
    parts: dict[str, list[Any]] = {kind: [] for kind in ORDER}
    for kind, outline in extracted.shapes:
        parts[kind].append([_line(outline)])
    for way in extracted.ways:
        parts[_road(way.tags["highway"])].append(_line(way.points))
    features = [_feature(kind, "MultiPolygon" if kind in AREAS else "MultiLineString", parts[kind]) for kind in ORDER]
    text = json.dumps({"type": "FeatureCollection", "features": features}, separators=(",", ":"))
    (folder / FILE).write_text(text, encoding="utf-8")


def _feature(kind: str, shape: str, coordinates: list[Any]) -> dict[str, Any]:
    return {"type": "Feature", "properties": {"kind": kind}, "geometry": {"type": shape, "coordinates": coordinates}}


def _line(points: Iterable[Point]) -> list[Any]:
    """A line in GeoJSON, longitude first (RFC 7946, 3.1.1)."""
    return [(round(lon, 5), round(lat, 5)) for lat, lon in points]


def _road(highway: str) -> str:
    kind = highway.removesuffix("_link")
    if kind in WIDE:
        return "road"
    return "street" if kind in STREETS else "path"
