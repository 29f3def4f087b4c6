"""What the browser draws, as one GeoJSON file; no tile comes from anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from envs.sites.apps.map.extract import Extract, Point

FILE = "base.json"
WIDE = {"primary", "secondary", "tertiary"}
STREETS = {"residential", "unclassified", "pedestrian", "living_street"}
ORDER = ("park", "water", "building", "path", "street", "road")


def write_drawing(extracted: Extract, folder: Path) -> None:
    """Writes *folder*/base.json: features with one property, `kind`, in the order in which they are painted."""
    shapes = [_feature(kind, "Polygon", [_line(outline)]) for kind, outline in extracted.shapes]
    lines = [_feature(_road(way.tags["highway"]), "LineString", _line(way.points)) for way in extracted.ways]
    features = sorted(shapes + lines, key=lambda feature: ORDER.index(feature["properties"]["kind"]))
    text = json.dumps({"type": "FeatureCollection", "features": features}, separators=(",", ":"))
    (folder / FILE).write_text(text, encoding="utf-8")


def _feature(kind: str, shape: str, coordinates: list[Any]) -> dict[str, Any]:
    return {"type": "Feature", "properties": {"kind": kind}, "geometry": {"type": shape, "coordinates": coordinates}}


def _line(points: Iterable[Point]) -> list[Any]:
    """GeoJSON has the longitude first (RFC 7946, 3.1.1)."""
    return [(round(lon, 5), round(lat, 5)) for lat, lon in points]


def _road(highway: str) -> str:
    kind = highway.removesuffix("_link")
    if kind in WIDE:
        return "road"
    return "street" if kind in STREETS else "path"
