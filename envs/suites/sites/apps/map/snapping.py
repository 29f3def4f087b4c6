"""Finds the node of the network that is nearest to a place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from envs.suites.sites.apps.map.extract import Point
from envs.suites.sites.apps.map.network import Network, metres_between
from envs.suites.sites.apps.map.places import Place

CELL_DEG = 0.001
FARTHEST_M = 150.0


class Grid:
    """A spatial grid of nodes, so that only neighbours are measured."""

    def __init__(self, nodes: Iterable[tuple[int, Point]]) -> None:
        self._cells: defaultdict[tuple[int, int], list[tuple[int, Point]]] = defaultdict(list)
        for node, point in nodes:
            self._cells[_cell(point)].append((node, point))

    def nearest(self, point: Point) -> int:
        """The node nearest to *point*; -1 if none is within FARTHEST_M."""
        near = [(metres_between(point, other), node) for node, other in self._around(point)]
        metres, node = min(near, default=(FARTHEST_M, -1))
        return node if metres < FARTHEST_M else -1

    def _around(self, point: Point) -> Iterator[tuple[int, Point]]:
        row, column = _cell(point)
        for down in range(-2, 3):
            for right in range(-3, 4):
                yield from self._cells.get((row + down, column + right), ())


def snapped(places: Iterable[Place], network: Network) -> Iterator[Place]:
    """*places* with their nearest nodes for walking and driving."""
    foot, car = Grid(network.nodes("foot")), Grid(network.nodes("car"))
    for place in places:
        point = (place.lat, place.lon)
        yield replace(place, on_foot=foot.nearest(point), by_car=car.nearest(point))


def _cell(point: Point) -> tuple[int, int]:
    return int(point[0] / CELL_DEG), int(point[1] / CELL_DEG)
