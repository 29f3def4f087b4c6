"""Reads named places, ways and shapes from an OpenStreetMap extract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import osmium

from envs.suites.sites.apps.map.places import ADDRESS, STREET, Place, folded

Point = tuple[float, float]
"""Latitude and longitude, in degrees."""

KEYS = (
    "amenity",
    "shop",
    "tourism",
    "leisure",
    "office",
    "healthcare",
    "craft",
    "historic",
    "railway",
    "place",
    "natural",
    "building",
)
"""Tags that determine the category of a place, in order of precedence."""
LEFT_OUT = {("railway", "level_crossing"), ("place", "city"), ("place", "suburb"), ("place", "city_block")}
STOP = ("highway", "bus_stop")
NAMES = ("name:en", "name:sv", "name:fi", "alt_name", "short_name", "old_name", "loc_name")
KIND_WORDS = {
    "amenity": "{}",
    "shop": "{} shop",
    "tourism": "{}",
    "leisure": "{}",
    "office": "{} office",
    "building": "{} building",
}
KINDS = {
    "fast_food": "fast food",
    "supermarket": "supermarket",
    "kiosk": "kiosk",
    "hairdresser": "hairdresser",
    "optician": "optician",
    "bakery": "bakery",
    "convenience": "convenience store",
    "department_store": "department store",
    "mall": "shopping mall",
    "books": "bookshop",
    "florist": "florist",
    "information": "tourist information",
    "place_of_worship": "place of worship",
    "bicycle_rental": "bicycle rental",
    "tram_stop": "tram stop",
    "bus_stop": "bus stop",
    "subway_entrance": "metro entrance",
    "station": "railway station",
    "atm": "ATM",
    "ngo": "NGO office",
    "toys": "toy shop",
    "shoes": "shoe shop",
    "clothes": "clothes shop",
    "jewelry": "jeweller",
    "travel_agency": "travel agency",
    "funeral_directors": "funeral directors",
}


@dataclass(frozen=True, slots=True)
class Way:
    """A piece of a street or path."""

    points: tuple[Point, ...]
    nodes: tuple[int, ...]
    tags: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.tags.get("name", "")


@dataclass(slots=True)
class Extract:
    """All map data of the site."""

    places: list[Place] = field(default_factory=list[Place])
    ways: list[Way] = field(default_factory=list[Way])
    shapes: list[tuple[str, tuple[Point, ...]]] = field(default_factory=list[tuple[str, tuple[Point, ...]]])
    """Areas to draw: `water`, `park` or `building`, and the outline."""


def extract(path: Path) -> Extract:
    """Reads the OpenStreetMap file *path*."""
    result = Extract()
    reader: Any = osmium.FileProcessor(str(path))
    things: Iterable[Any] = reader.with_locations().with_areas()
    addresses: dict[str, Place] = {}
    for thing in things:
        tags = dict(thing.tags)
        if thing.is_way():
            _take_way(result, thing, tags)
            continue
        if not tags or thing.is_relation():
            continue
        point, outline = _where(thing)
        if point is None:
            continue
        place = _place(_identity(thing), tags, point)
        if place is not None:
            result.places.append(place)
        if "addr:street" in tags and "addr:housenumber" in tags and (place is None or "building" in tags):
            _keep_address(addresses, tags, point)
        if outline:
            result.shapes += [(kind, outline) for kind in _drawn(tags)]
    result.places += addresses.values()
    result.places += _streets(result.ways)
    return result


def _take_way(result: Extract, way: Any, tags: Mapping[str, str]) -> None:
    nodes = [node for node in way.nodes if node.location.valid()]
    if "highway" in tags and tags.get("area") != "yes" and len(nodes) > 1:
        points = tuple((round(node.lat, 6), round(node.lon, 6)) for node in nodes)
        result.ways.append(Way(points, tuple(node.ref for node in nodes), dict(tags)))


def _where(thing: Any) -> tuple[Point | None, tuple[Point, ...]]:
    """The centre of a node or area, and the outline of an area."""
    if thing.is_node():
        return (thing.location.lat, thing.location.lon), ()
    rings = [tuple((node.lat, node.lon) for node in ring) for ring in thing.outer_rings()]
    if not rings or len(rings[0]) < 3:
        return None, ()
    ring = max(rings, key=len)
    lats, lons = [lat for lat, _ in ring], [lon for _, lon in ring]
    return ((min(lats) + max(lats)) / 2, (min(lons) + max(lons)) / 2), ring


def _identity(thing: Any) -> str:
    if thing.is_node():
        return f"n{thing.id}"
    return f"{'w' if thing.from_way() else 'r'}{thing.orig_id()}"


def _place(identity: str, tags: Mapping[str, str], point: Point) -> Place | None:
    """The place of an element; None if it has no name or no category of interest."""
    key = next((key for key in KEYS if key in tags), "highway")
    value = tags.get(key, "")
    is_stop = (key, value) == STOP
    if not tags.get("name") or (key == "highway" and not is_stop) or (key, value) in LEFT_OUT:
        return None
    others = {tags[name] for name in NAMES if name in tags} - {tags["name"]}
    category = value.split(";")[0].strip() if value != "yes" else key
    return Place(
        id=identity,
        name=tags["name"].strip(),
        category=category,
        kind=_kind(key, category),
        lat=round(point[0], 6),
        lon=round(point[1], 6),
        other_names=tuple(sorted(others)),
        street=tags.get("addr:street", ""),
        number=tags.get("addr:housenumber", ""),
        postcode=tags.get("addr:postcode", ""),
        city=tags.get("addr:city", ""),
        opening_hours=tags.get("opening_hours", ""),
        phone=tags.get("phone", tags.get("contact:phone", "")),
        website=tags.get("website", tags.get("contact:website", tags.get("url", ""))),
        cuisine=tags.get("cuisine", "").replace("_", " ").replace(";", ", "),
        wheelchair=tags.get("wheelchair", ""),
    )


def _kind(key: str, category: str) -> str:
    words = KINDS.get(category) or KIND_WORDS.get(key, "{}").format(category.replace("_", " "))
    words = key if words in (f"{key} {key}",) else words
    return words[0].upper() + words[1:]


def _keep_address(known: dict[str, Place], tags: Mapping[str, str], point: Point) -> None:
    name = f"{tags['addr:street']} {tags['addr:housenumber']}"
    known.setdefault(
        name,
        Place(
            id=f"a{len(known) + 1}",
            name=name,
            category=ADDRESS,
            kind="Address",
            lat=round(point[0], 6),
            lon=round(point[1], 6),
            street=tags["addr:street"],
            number=tags["addr:housenumber"],
            postcode=tags.get("addr:postcode", ""),
            city=tags.get("addr:city", ""),
        ),
    )


def _streets(ways: list[Way]) -> Iterator[Place]:
    """One place per street name, at the middle of its longest piece."""
    longest: dict[str, Way] = {}
    for way in ways:
        if way.name and len(way.points) > len(longest.get(way.name, way).points[1:]):
            longest[way.name] = way
    for number, name in enumerate(sorted(longest, key=folded), 1):
        way = longest[name]
        lat, lon = way.points[len(way.points) // 2]
        other = {way.tags[key] for key in NAMES if key in way.tags} - {name}
        yield Place(f"s{number}", name, STREET, "Street", lat, lon, tuple(sorted(other)))


def _drawn(tags: Mapping[str, str]) -> Iterator[str]:
    if "building" in tags:
        yield "building"
    elif tags.get("natural") in ("water", "bay") or tags.get("landuse") in ("basin", "pond"):
        yield "water"
    elif tags.get("leisure") in ("park", "garden", "pitch", "playground") or tags.get("landuse") == "grass":
        yield "park"
