"""A request, an answer or a text that a task's reference accepts: what the mutations start from."""

from __future__ import annotations

import re
from re import _constants as codes  # pyright: ignore
from re import _parser as parser  # pyright: ignore
from typing import Any
from urllib.parse import quote

Json = Any

SITES = {
    "SHOPPING_ADMIN": "http://127.0.0.1:7780/admin",
    "SHOPPING": "http://127.0.0.1:7770",
    "REDDIT": "http://127.0.0.1:9999",
    "GITLAB": "http://127.0.0.1:8023",
    "MAP": "http://127.0.0.1:3000",
    "WIKIPEDIA": "http://127.0.0.1:8888",
    "HOMEPAGE": "http://127.0.0.1:4399",
}
POST_ID = "{{post_id}}"
ROUTING = "http://127.0.0.1:8080/osrm"


def filled(text: str) -> str:
    """With the addresses of the copies."""
    for name, url in SITES.items():
        text = text.replace(f"__{name}__", url)
    return text


def plain(value: Json) -> Json:
    """*value*, or a text that fits where it is a pattern."""
    if isinstance(value, str) and value.startswith("^"):
        return fitting(value)
    return value


def fitting(pattern: str) -> str:
    """A short text that *pattern* matches; look-arounds are left out, so check it."""
    return "".join(_draw(parser.parse(pattern)))


def _draw(tree: Any) -> list[str]:
    out: list[str] = []
    for code, argument in tree:
        if code is codes.LITERAL:
            out.append(chr(argument))
        elif code is codes.NOT_LITERAL:
            out.append("y")
        elif code is codes.ANY:
            out.append("x")
        elif code is codes.IN:
            out.append(_member(argument))
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            low, high, inner = argument
            out += _draw(inner) * min(max(low, 1), high)
        elif code is codes.SUBPATTERN:
            out += _draw(argument[-1])
        elif code is codes.ASSERT:
            out += _draw(argument[1])
        elif code is codes.BRANCH:
            out += _draw(argument[1][0])
    return out


def _member(choices: Any) -> str:
    if choices[0][0] is codes.NEGATE:
        return " "
    for code, argument in choices:
        if code is codes.LITERAL:
            return chr(argument)
        if code is codes.RANGE:
            return chr(argument[0])
        if code is codes.CATEGORY:
            return {codes.CATEGORY_DIGIT: "7", codes.CATEGORY_SPACE: " "}.get(argument, "w")
    return "y"


def answer(expected: Json, schema: Json, choice: int = 0) -> Json:
    """A value that *expected* accepts: of alternatives the one numbered *choice* or the last, a text for a pattern."""
    kind = (schema or {}).get("type")
    if isinstance(expected, dict) and (schema or {}).get("format") == "coordinates":
        return expected
    if isinstance(expected, dict):
        properties = (schema or {}).get("properties", {})
        return {name: answer(value, properties.get(name), choice) for name, value in expected.items()}
    if isinstance(expected, list) and kind == "array":
        return [answer(value, (schema or {}).get("items"), choice) for value in expected]
    return plain(_one(expected, choice))


def _one(value: Json, choice: int) -> Json:
    return value[min(choice, len(value) - 1)] if isinstance(value, list | tuple) and value else value


def request(expected: Json, *, navigation: bool, choice: int = 0) -> Json:
    """The request that *expected* describes, as :class:`envs.suites.webarena.request_log.SentRequest` has it."""
    url = _one(expected["url"], choice)
    address = filled(plain(url).replace(POST_ID, "61"))
    if not address.startswith("http"):  # the map's routing server, whose address no task names
        address = f"{ROUTING}{address.removeprefix('x')}"
    query = {
        name: [plain(one) for one in _listed(values)] for name, values in (expected.get("query_params") or {}).items()
    }
    if query:
        address += "?" + "&".join(f"{quote(name)}={quote(one)}" for name, values in query.items() for one in values)
    headers = {
        name.lower(): filled(str(plain(_one(value, choice)))) for name, value in (expected.get("headers") or {}).items()
    }
    return {
        "method": expected.get("http_method") or "GET",
        "url": address,
        "navigation": navigation,
        "headers": headers,
        "post_data": body(expected["post_data"], choice) if expected.get("post_data") else None,
        "status": expected.get("response_status", 200),
        "content": body(expected["response_content"]) if expected.get("response_content") else None,
        "cookies": {name: str(plain(value)) for name, value in (expected.get("response_cookies") or {}).items()},
    }


def body(expected: dict[str, Json], choice: int = 0) -> dict[str, Json]:
    """The object whose names and paths have these values."""
    out: dict[str, Json] = {}
    for raw_key, raw_value in expected.items():
        several = "[?(" in raw_key or not isinstance(raw_value, list) or not _are_texts(raw_value)
        value = plain(raw_value if several else _one(raw_value, choice))
        key = raw_key.strip().replace(POST_ID, "61")
        if value is None:
            continue
        if key.removeprefix("$.").startswith("^"):
            out[fitting(key.removeprefix("$."))] = value
        elif key.startswith("$"):
            _put(out, re.findall(r"\.([\w-]+)|\['([^']*)'\]|\[(\d+)\]|(\[\?[^\]]*\])", key), value)
        else:
            out[key] = value
    return out or {"form_key": "7Hq"}


def _put(out: Json, steps: list[tuple[str, str, str, str]], value: Json) -> None:
    """Makes the way to *value* below *out*."""
    name, quoted, index, found = steps[0]
    rest = steps[1:]
    if found:
        condition = re.search(r"@\.([\w-]+)\s*==\s*(.+?)\s*\)", found)
        matching: list[Json] = [value] if isinstance(value, list) is False else value
        for one in matching:
            item: dict[str, Json] = {condition[1]: _literal(condition[2])} if condition else {}
            _put(item, rest, one)
            out.append(item)
        return
    key: Json = int(index) if index else name or quoted
    if isinstance(out, list):
        while len(out) <= key:
            out.append({})
    if not rest:
        out[key] = value
        return
    empty: Json = [] if rest[0][2] or rest[0][3] else {}
    if isinstance(out, dict):
        out.setdefault(key, empty)
    elif out[key] == {}:
        out[key] = empty
    _put(out[key], rest, value)


def _literal(text: str) -> Json:
    import json

    return json.loads(text.replace("'", '"'))


def _are_texts(values: list[Json]) -> bool:
    return len(values) > 1 and all(isinstance(value, str) for value in values)


def _listed(value: Json) -> list[Json]:
    return list(value) if isinstance(value, list | tuple) else [value]
