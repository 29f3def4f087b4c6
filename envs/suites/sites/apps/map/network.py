"""The network of streets and paths as a graph, with routing."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, cast

import networkx as nx

from envs.suites.sites.apps.map.extract import Point, Way

FILE = "network.json"
Mode = Literal["foot", "car"]
WALK_M_PER_MIN = 5000 / 60
"""5 km/h."""
CAR_KMH = {"primary": 40, "secondary": 40, "tertiary": 30, "residential": 30, "unclassified": 30, "service": 15}
"""Speed without a signed limit. Links have the speed of their road."""
CAR_SHARE = 0.6
"""Average speed in a city centre, as a fraction of the limit."""
NAMELESS = {
    "footway": "a footpath",
    "cycleway": "a cycle path",
    "path": "a path",
    "steps": "steps",
    "elevator": "a lift",
    "service": "a service road",
    "pedestrian": "a pedestrian way",
    "platform": "a platform",
}
NOT_WALKED = {"construction", "trail", "proposed", "motorway", "corridor"}
NO = {"no", "private", "use_sidepath"}
YES = {"yes", "designated", "permissive", "destination"}


@dataclass(frozen=True, slots=True)
class Edge:
    """A straight piece of a way between two nodes, in one direction."""

    start: int
    end: int
    metres: float
    name: str
    """Name of the street; for a nameless path its kind, such as `a footpath` or `steps`."""
    foot: bool
    kmh: float
    """Speed limit for cars; 0 if cars may not use it."""


@dataclass(frozen=True, slots=True)
class Step:
    """A stretch of a route along one street."""

    turn: str
    """`Head along`, `Turn left into`, `Turn right into` or `Continue along`."""
    name: str
    metres: int


@dataclass(frozen=True, slots=True)
class Route:
    """A route with its steps and its line on the map."""

    metres: int
    minutes: int
    """Rounded, at least 1."""
    steps: tuple[Step, ...]
    points: tuple[Point, ...]


class Network:
    """The walking and the driving graph."""

    def __init__(self, points: Sequence[Point], edges: Iterable[Edge]) -> None:
        self.points = [tuple(point) for point in points]
        self.edges = list(edges)
        self._foot = _graph((e for e in self.edges if e.foot), lambda e: e.metres)
        self._car = _graph((e for e in self.edges if e.kmh), _driven_min)
        self._foot = self._foot.subgraph(max(nx.weakly_connected_components(self._foot), key=len)).copy()
        self._car = self._car.subgraph(max(nx.strongly_connected_components(self._car), key=len)).copy()

    @classmethod
    def of(cls, ways: Iterable[Way]) -> Network:
        """Builds the network from OpenStreetMap ways."""
        numbers: dict[int, int] = {}
        points: list[Point] = []
        edges: list[Edge] = []
        for way in ways:
            for ref, point in zip(way.nodes, way.points, strict=True):
                if ref not in numbers:
                    numbers[ref] = len(points)
                    points.append(point)
            edges += _edges(way, [numbers[ref] for ref in way.nodes], points)
        return cls(points, edges)

    @classmethod
    def read(cls, folder: Path) -> Network:
        """Reads the network from *folder*. Raises ValueError for an invalid file."""
        data = json.loads((folder / FILE).read_text(encoding="utf-8"))
        names = data["names"]
        return cls(data["points"], (Edge(a, b, m, names[n], bool(f), k) for a, b, m, n, f, k in data["edges"]))

    def write(self, folder: Path) -> None:
        names = sorted({edge.name for edge in self.edges})
        place = {name: number for number, name in enumerate(names)}
        rows = [(e.start, e.end, e.metres, place[e.name], int(e.foot), e.kmh) for e in self.edges]
        text = json.dumps({"names": names, "points": self.points, "edges": rows}, separators=(",", ":"))
        (folder / FILE).write_text(text, encoding="utf-8")

    def nodes(self, mode: Mode) -> list[tuple[int, Point]]:
        """All nodes at which a route may begin or end."""
        return [(node, cast(Point, self.points[node])) for node in sorted(self._graph(mode).nodes)]

    def route(self, start: int, end: int, mode: Mode) -> Route | None:
        """The shortest route on foot or the fastest by car; None if there is none."""
        try:
            nodes = nx.dijkstra_path(self._graph(mode), start, end, weight="cost")
        except (nx.NetworkXNoPath, nx.NodeNotFound):
            return None
        edges = _edges_of(self._graph(mode), nodes)
        metres, minutes = _measured(edges, mode)
        points = tuple(cast(Point, self.points[node]) for node in nodes)
        return Route(metres, minutes, tuple(_steps(edges, self.points)), points)

    def lengths(self, start: int, ends: Iterable[int], mode: Mode) -> dict[int, tuple[int, int]]:
        """Metres and minutes of the route to each reachable node of *ends*, from one search."""
        graph = self._graph(mode)
        paths = nx.single_source_dijkstra_path(graph, start, weight="cost")
        return {end: _measured(_edges_of(graph, paths[end]), mode) for end in ends if end in paths}

    def walks(self, start: int) -> Mapping[int, float]:
        """Walking distance in metres from *start* to every reachable node."""
        if start not in self._foot:
            return {}
        return nx.single_source_dijkstra_path_length(self._foot, start, weight="cost")

    def _graph(self, mode: Mode) -> nx.DiGraph[int]:
        return self._foot if mode == "foot" else self._car


def metres_between(a: Point, b: Point) -> float:
    """Distance in metres, with a flat approximation that is accurate within a city."""
    scale = math.cos(math.radians((a[0] + b[0]) / 2))
    return 111_195 * math.hypot(a[0] - b[0], (a[1] - b[1]) * scale)


def _driven_min(edge: Edge) -> float:
    return edge.metres / 1000 / (edge.kmh * CAR_SHARE) * 60


def _edges_of(graph: nx.DiGraph[int], nodes: Sequence[int]) -> list[Edge]:
    return [cast(Edge, graph.edges[a, b]["edge"]) for a, b in pairwise(nodes)]


def _measured(edges: Sequence[Edge], mode: Mode) -> tuple[int, int]:
    """Length in metres and duration in minutes, rounded; at least one minute."""
    metres = sum(edge.metres for edge in edges)
    minutes = metres / WALK_M_PER_MIN if mode == "foot" else sum(_driven_min(edge) for edge in edges)
    return round(metres), max(1, round(minutes))


def _graph(edges: Iterable[Edge], cost: Callable[[Edge], float]) -> nx.DiGraph[int]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    for edge in edges:
        value = cost(edge)
        if not graph.has_edge(edge.start, edge.end) or value < graph[edge.start][edge.end]["cost"]:
            graph.add_edge(edge.start, edge.end, cost=value, edge=edge)
    return graph


def _edges(way: Way, nodes: Sequence[int], points: Sequence[Point]) -> Iterable[Edge]:
    tags = way.tags
    walked, forward, back = _walked(tags), _car_kmh(tags), _car_kmh(tags)
    oneway = tags.get("oneway")
    if oneway in ("yes", "true", "1") or tags.get("junction") == "roundabout":
        back = 0.0
    elif oneway == "-1":
        forward = 0.0
    name = way.name or NAMELESS.get(tags["highway"], "a street")
    for a, b in pairwise(nodes):
        metres = round(metres_between(points[a], points[b]), 2)  # rounded as in the file
        if walked or forward:
            yield Edge(a, b, metres, name, walked, forward)
        if walked or back:
            yield Edge(b, a, metres, name, walked, back)


def _walked(tags: Mapping[str, str]) -> bool:
    if tags["highway"] in NOT_WALKED:
        return False
    if "foot" in tags:
        return tags["foot"] not in NO
    return tags.get("access") not in NO


def _car_kmh(tags: Mapping[str, str]) -> float:
    """Speed limit for cars; 0 if cars are not allowed."""
    kind = tags["highway"].removesuffix("_link")
    if kind not in CAR_KMH or any(tags.get(key) in NO for key in ("access", "vehicle", "motor_vehicle", "motorcar")):
        return 0.0
    limit = tags.get("maxspeed", "")
    return float(limit) if limit.isdigit() else float(CAR_KMH[kind])


def _steps(edges: Sequence[Edge], points: Sequence[tuple[float, ...]]) -> Iterable[Step]:
    """The steps of a route, one per street."""
    groups: list[list[Edge]] = []
    for edge in edges:
        if groups and groups[-1][-1].name == edge.name:
            groups[-1].append(edge)
        else:
            groups.append([edge])
    for number, group in enumerate(groups):
        turn = _turn(groups[number - 1][-1], group[0], points) if number else "Head along"
        yield Step(turn, group[0].name, round(sum(edge.metres for edge in group)))


def _turn(before: Edge, after: Edge, points: Sequence[tuple[float, ...]]) -> str:
    angle = (_bearing(after, points) - _bearing(before, points) + 180) % 360 - 180
    if abs(angle) < 35:
        return "Continue along"
    return "Turn right into" if angle > 0 else "Turn left into"


def _bearing(edge: Edge, points: Sequence[tuple[float, ...]]) -> float:
    """Direction of an edge in degrees clockwise from north."""
    (lat1, lon1), (lat2, lon2) = points[edge.start], points[edge.end]
    return math.degrees(math.atan2((lon2 - lon1) * math.cos(math.radians(lat1)), lat2 - lat1))
