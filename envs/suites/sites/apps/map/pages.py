"""The pages of the map. A page's whole state is in its URL; the application keeps no state between requests.

    /                                        search field and common categories
    /categories                              all categories
    /search?q=&page=                         places by name; coordinates lead to /reverse
    /place/ID                                one place
    /category/CATEGORY?page=                 places of a category, by name
    /nearest?category=&near=&page=           places of a category, by walking distance
    /directions?from=&to=&by=foot|car        route between two places
    /reverse?lat=&lon=                       places at a point
    /static/...

URLs name places by id. A name instead of an id redirects to the id or shows a choice.
"""

from __future__ import annotations

import json
import mimetypes
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from jinja2 import Environment, FileSystemLoader

from envs.suites.sites.apps.base import StartResponse
from envs.suites.sites.apps.map.network import Mode, Network, metres_between
from envs.suites.sites.apps.map.places import ADDRESS, Gazetteer, Place

COORDINATES = re.compile(r"(\d+\.\d+)\s*[,; ]\s*(\d+\.\d+)")
PER_PAGE = 10
NEARBY = 8
HERE = Path(__file__).parent
STATIC_DAYS_S = 86_400
COMMON = (
    "artwork",
    "atm",
    "bank",
    "bar",
    "bicycle_rental",
    "books",
    "bus_stop",
    "cafe",
    "cinema",
    "convenience",
    "embassy",
    "fast_food",
    "gallery",
    "hairdresser",
    "hotel",
    "library",
    "museum",
    "nightclub",
    "park",
    "parking",
    "pharmacy",
    "place_of_worship",
    "pub",
    "restaurant",
    "subway_entrance",
    "supermarket",
    "theatre",
    "tram_stop",
)
"""Common categories, shown on the first page and in lists to choose from."""

Query = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Page:
    """An answer that renders a template."""

    template: str
    values: Mapping[str, Any]
    status: HTTPStatus = HTTPStatus.OK


class Redirect:
    """An answer that redirects to another address."""

    def __init__(self, path: str, **query: str) -> None:
        self.location = f"{path}?{urlencode(query)}" if query else path


Answer = Page | Redirect


class Pages:
    """The WSGI application."""

    def __init__(self, gazetteer: Gazetteer, network: Network, static: Path) -> None:
        self._gazetteer = gazetteer
        self._network = network
        self._folders = (static.resolve(), (HERE / "assets").resolve())
        self._templates = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True)
        self._templates.filters["mapped"] = _mapped
        self._routes: dict[str, Callable[[Query], Answer]] = {
            "/": self._home,
            "/about": lambda _: _page("about.html"),
            "/categories": self._categories,
            "/search": self._search,
            "/nearest": self._nearest,
            "/directions": self._directions,
            "/reverse": self._reverse,
        }

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        path = unquote(environ.get("PATH_INFO", "/").encode("latin-1").decode("utf-8", "replace")) or "/"
        if path.startswith("/static/"):
            return self._file(path.removeprefix("/static/"), start_response)
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _send(start_response, HTTPStatus.METHOD_NOT_ALLOWED, b"", "text/plain")
        query = dict(parse_qsl(environ.get("QUERY_STRING", ""), errors="replace"))
        answer = self._answer(path, query)
        if isinstance(answer, Redirect):
            start_response("302 Found", [("Location", answer.location), ("Content-Length", "0")])
            return [b""]
        html = self._templates.get_template(answer.template).render(query=query, **answer.values)
        return _send(start_response, answer.status, html.encode(), "text/html; charset=utf-8")

    def _answer(self, path: str, query: Query) -> Answer:
        if path in self._routes:
            return self._routes[path](query)
        kind, _, name = path.removeprefix("/").partition("/")
        if kind == "place":
            return self._place(name)
        if kind == "category":
            return self._category(name, query)
        return _missing("There is no such page.")

    def _home(self, query: Query) -> Answer:
        rows = [row for row in self._counted() if row[1] in COMMON]
        return _page("categories.html", title="Central Helsinki", categories=rows, is_home=True)

    def _categories(self, query: Query) -> Answer:
        return _page("categories.html", title="All categories", categories=self._counted(), is_home=False)

    def _search(self, query: Query) -> Answer:
        text = query.get("q", "").strip()
        point = COORDINATES.fullmatch(text)
        if point:
            return Redirect("/reverse", lat=point.group(1), lon=point.group(2))
        places = self._gazetteer.search(text)
        return _page("search.html", text=text, **_paged(places, query, "/search", q=text))

    def _place(self, identity: str) -> Answer:
        place = self._gazetteer.get(identity)
        if place is None:
            return _missing("There is no such place.")
        return _page("place.html", place=place, points=[place], categories=self._choices())

    def _category(self, category: str, query: Query) -> Answer:
        places = self._gazetteer.categories.get(category)
        if places is None:
            return _missing("There is no such category.")
        paged = _paged(places, query, f"/category/{category}")
        return _page("category.html", kind=places[0].kind, category=category, **paged)

    def _nearest(self, query: Query) -> Answer:
        category, text = query.get("category", ""), query.get("near", "").strip()
        places = self._gazetteer.categories.get(category)
        starts = self._gazetteer.named(text)
        kinds = {"kind": places[0].kind if places else "", "category": category, "categories": self._choices()}
        if places is None or len(starts) != 1:
            field = {"near": _choice("near", text, starts, query)} if text else {}
            return _page("nearest.html", fields=field, near=None, rows=[], text=text, **kinds)
        if text != starts[0].id:
            return Redirect("/nearest", category=category, near=starts[0].id)
        metres = self._network.walks(starts[0].on_foot)
        reached = [(round(metres[p.on_foot]), p) for p in places if p.on_foot in metres and p.id != starts[0].id]
        reached.sort(key=lambda row: (row[0], row[1].id))
        paged = _paged(reached, query, "/nearest", category=category, near=starts[0].id)
        return _page("nearest.html", fields={}, near=starts[0], text=starts[0].label, **kinds, **paged)

    def _directions(self, query: Query) -> Answer:
        texts = {name: query.get(name, "").strip() for name in ("from", "to")}
        mode: Mode = "car" if query.get("by") == "car" else "foot"
        matches = {name: self._gazetteer.named(text) for name, text in texts.items() if text}
        ends = {name: places[0] for name, places in matches.items() if len(places) == 1}
        labels = {name: ends[name].label if name in ends else text for name, text in texts.items()}
        choices = {
            name: _choice(name, texts[name], places, query) for name, places in matches.items() if name not in ends
        }
        if len(ends) < 2:
            return _page("directions.html", mode=mode, labels=labels, choices=choices, route=None, ends={})
        canonical = {"from": ends["from"].id, "to": ends["to"].id, "by": mode}
        if any(query.get(name) != value for name, value in canonical.items()):
            return Redirect("/directions", **canonical)
        nodes = [place.on_foot if mode == "foot" else place.by_car for place in (ends["from"], ends["to"])]
        route = self._network.route(nodes[0], nodes[1], mode)
        return _page(
            "directions.html",
            mode=mode,
            labels=labels,
            choices={},
            route=route,
            ends=ends,
            points=[ends["from"], ends["to"]],
            line=json.dumps(route.points if route else []),
        )

    def _reverse(self, query: Query) -> Answer:
        try:
            point = (float(query.get("lat", "")), float(query.get("lon", "")))
        except ValueError:
            return _missing("Coordinates are two numbers, as in /reverse?lat=60.17000&lon=24.94000")
        near = sorted((metres_between(point, (p.lat, p.lon)), p.id, p) for p in self._gazetteer.places)
        rows = [(round(metres), place) for metres, _, place in near]
        address = next((row for row in rows if row[1].category == ADDRESS), None)
        others = [row for row in rows if row[1].category != ADDRESS][:NEARBY]
        return _page("reverse.html", lat=point[0], lon=point[1], address=address, rows=others)

    def _counted(self) -> list[tuple[str, str, int]]:
        """Kind, category and number of places, ordered by kind."""
        groups = self._gazetteer.categories.items()
        return sorted((places[0].kind, category, len(places)) for category, places in groups)

    def _choices(self) -> list[tuple[str, str]]:
        """Kind and category of the common categories, for a list to choose from."""
        return [(kind, category) for kind, category, _ in self._counted() if category in COMMON]

    def _file(self, name: str, start_response: StartResponse) -> Iterable[bytes]:
        for folder in self._folders:
            path = (folder / name).resolve()
            if path.is_relative_to(folder) and path.is_file():
                kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
                return _send(start_response, HTTPStatus.OK, path.read_bytes(), kind, STATIC_DAYS_S)
        return _send(start_response, HTTPStatus.NOT_FOUND, b"not found", "text/plain")


def _mapped(places: Sequence[Place]) -> str:
    """The places of the page as JSON, for the script."""
    return json.dumps([{"lat": place.lat, "lon": place.lon, "name": place.name} for place in places])


def _page(template: str, **values: Any) -> Page:
    return Page(template, values)


def _missing(message: str) -> Page:
    return Page("missing.html", {"message": message}, HTTPStatus.NOT_FOUND)


def _paged(rows: Sequence[Any], query: Query, path: str, **kept: str) -> dict[str, Any]:
    """One page of *rows* and the addresses of the previous and the next page."""
    pages = max(1, -(-len(rows) // PER_PAGE))
    text = query.get("page", "1")
    page = min(max(int(text) if text.isdecimal() else 1, 1), pages)

    def address(number: int) -> str:
        return f"{path}?{urlencode({**kept, 'page': str(number)})}" if 1 <= number <= pages else ""

    shown = rows[(page - 1) * PER_PAGE : page * PER_PAGE]
    points = [row[1] if isinstance(row, tuple) else row for row in shown]
    return {
        "rows": shown,
        "points": points,
        "total": len(rows),
        "first": (page - 1) * PER_PAGE + 1,
        "page": page,
        "pages": pages,
        "earlier": address(page - 1),
        "later": address(page + 1),
    }


def _choice(field: str, text: str, places: Sequence[Place], query: Query) -> dict[str, Any]:
    """The places that a field's text may mean, each with the address that selects it."""
    options = [
        (place, "?" + urlencode({**{k: v for k, v in query.items() if k != "page"}, field: place.id}))
        for place in places[:PER_PAGE]
    ]
    return {"text": text, "options": options, "total": len(places)}


def _send(
    start_response: StartResponse, status: HTTPStatus, body: bytes, kind: str, cached_s: int = 0
) -> Iterable[bytes]:
    headers = [("Content-Type", kind), ("Content-Length", str(len(body)))]
    if cached_s:
        headers.append(("Cache-Control", f"max-age={cached_s}"))
    start_response(f"{status.value} {status.phrase}", headers)
    return [body]
