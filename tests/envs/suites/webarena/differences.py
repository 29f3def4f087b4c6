"""Cases in which Mira's rules and the original's rules differ, as listed in docs/webarena.md.

The second verdict is that of libwebarena 0.0.5 and webarena-verified 1.2.3 (`judge`: they would use their model),
except for "pattern as an answer": they accept it, and `--strict-original` does not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from tests.envs.suites.webarena.own_tasks import SITES_OF_OWN, items, retrieve
from tests.envs.suites.webarena.tasks import page, raw, request, response, verified

Entry = dict[str, Any]
Verdicts = tuple[bool | Literal["judge"], bool | Literal["judge"]]
"""The verdicts of Mira and of the original."""


@dataclass(frozen=True, slots=True)
class Case:
    """One check, the agent's answer or request, and both verdicts."""

    name: str
    entry: Entry
    row: Entry
    verdicts: Verdicts

    @property
    def suite(self) -> str:
        return "verified" if "start_urls" in self.entry else "webarena"


def answered_case(name: str, answers: Entry, answer: str, verdicts: Verdicts) -> Case:
    return Case(name, raw(answers=answers), {"kind": "string", "answer": answer}, verdicts)


def stopped(name: str, reference: str, url: str, verdicts: Verdicts) -> Case:
    return Case(name, raw(reference_url=reference), {"kind": "url", "answer": url}, verdicts)


def shown(name: str, required: Entry, text: str, verdicts: Verdicts) -> Case:
    entry = raw(program_html=[page("last", "", **required)])
    return Case(name, entry, {"kind": "html", "page": 0, "answer": text}, verdicts)


def typed(name: str, shape: Entry, expected: Any, actual: Any, verdicts: Verdicts) -> Case:
    answer = json.dumps({"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": [actual]})
    entry = verified(retrieve([expected], items(**shape))) | SITES_OF_OWN
    return Case(name, entry, {"kind": "response", "check": 0, "answer": answer}, verdicts)


def request_case(name: str, check: Entry, fields: Entry, verdicts: Verdicts) -> Case:
    entry = verified(response(None), check) | SITES_OF_OWN
    sent = {"method": "POST", "status": 302, "navigation": False, "headers": {}, **fields}
    return Case(name, entry, {"kind": "request", "check": 1, "answer": [sent]}, verdicts)


TEXT, NUMBER = {"type": "string"}, {"type": "number"}
AMOUNT = {"type": "number", "format": "currency"}
DATE, DURATION = {"type": "string", "format": "date"}, {"type": "string", "format": "duration"}
POINT = {"format": "coordinates"}
HERE = {"latitude": "40.44", "longitude": "-79.93"}
SHOP, FORUM, CODE = "http://127.0.0.1:7770", "http://127.0.0.1:9999", "http://127.0.0.1:8023"
POST: Entry = {"http_method": "POST", "response_status": 302}
BIO = request("__REDDIT__/bio", **POST, post_data={"text": "I cried"})
QUERY = request("__SHOPPING__/search/", query_params={"q": ["usb wifi"]})
SEARCH: Entry = {"method": "GET", "status": 200}

CASES = (
    answered_case("N/A", {"exact_match": "N/A"}, "N/A", (True, True)),
    answered_case("N/A and the reason", {"exact_match": "N/A"}, "N/A: no such shop", (False, False)),
    answered_case("numbers beside a comma", {"must_include": ["40.451", "-79.933"]}, "40.451,-79.933", (True, True)),
    answered_case("two prices", {"must_include": ["1.46", "85"]}, "1.46,85", (True, True)),
    answered_case("two counts", {"must_include": ["914"]}, "914,915", (True, True)),
    answered_case("house number", {"must_include": ["Fuku Tea", "3716"]}, "Fuku Tea,3716", (True, True)),
    answered_case("post code", {"must_include": ["New York", "10001"]}, "Elm St,New York,10001", (True, True)),
    answered_case("a part of a number", {"must_include": ["22"]}, "There are 122.", (False, True)),
    answered_case("a part of a word", {"must_include": ["Lo", "Chen"]}, "Hello Chen", (False, True)),
    answered_case("group of an amount", {"must_include": ["603.69"]}, "$1,603.69", (False, True)),
    answered_case("full stop", {"exact_match": "Yes"}, "Yes.", (True, False)),
    answered_case("white space", {"must_include": ["Joust Bag"]}, "Joust  Bag", (True, False)),
    answered_case("dash", {"must_include": ["Hawkeye-Yoga"]}, "Hawkeye–Yoga", (True, False)),
    answered_case("entity", {"must_include": ["Tea & Biscuits"]}, "Tea &amp; Biscuits", (True, False)),
    answered_case("decimals", {"must_include": ["2"]}, "2.00", (True, False)),
    answered_case("thousands", {"must_include": ["1200"]}, "1,200 stars", (True, False)),
    answered_case("spelling", {"must_include": ["canceled"]}, "It was cancelled", (True, False)),
    answered_case("local address", {"must_include": ["http://www.reddit.com/f/a"]}, f"{FORUM}/f/a", (True, False)),
    answered_case("not applicable", {"fuzzy_match": "N/A"}, "not applicable", (True, "judge")),
    answered_case("alternatives", {"must_include": ["65 |OR| 3"]}, "3", (True, False)),
    answered_case("no list", {"must_include": "yjlou"}, "yjlou", (True, False)),
    stopped("path that begins so", "__SHOPPING__/f/books", f"{SHOP}/f/bookshelf", (False, True)),
    stopped(
        "address in a query", "__SHOPPING__/tea", f"http://evil.test/{SHOP.removeprefix('http://')}/tea", (False, True)
    ),
    shown("meaning of a page", {"fuzzy_match": ["a refund"]}, "I want a refund", ("judge", False)),
    typed("full stop in a text", TEXT, "I cried", "I cried.", (True, True)),
    typed("quotes", TEXT, "Hannah Lim", "“Hannah Lim.”", (True, True)),
    typed("accents", TEXT, "Cafe", "Café", (True, True)),
    typed("only punctuation", TEXT, "???", "!!!", (False, True)),
    typed("several guesses", TEXT, "Sprite", ["Sprite", "Fanta"], (False, True)),
    typed("pattern as an answer", TEXT, "Sprite", "^.*$", (False, False)),
    typed("US$", AMOUNT, 555.2, "US$555.2", (True, True)),
    typed("unit", AMOUNT, 68.51, "68.51 items", (True, True)),
    typed("within 0.1", AMOUNT, 36.39, 36.3, (True, True)),
    typed("beyond 0.1", AMOUNT, 36.39, 36.28, (False, False)),
    typed("thousands in an amount", AMOUNT, 1603, "$1,603", (True, False)),
    typed("two amounts", AMOUNT, 36.39, "36.39 or 40", (False, True)),
    typed("minus behind the sign", AMOUNT, 5, "$-5", (False, True)),
    typed("number words", NUMBER, 2, "two", (True, True)),
    typed("number words among others", NUMBER, 13, "six or seven", (False, True)),
    typed("weekday", DATE, "January 16, 2023", "Monday, January 16, 2023", (True, True)),
    typed("day first", DATE, "January 29, 2023", "29.01.2023", (True, True)),
    typed("and", DURATION, "1hr 44min", "1 hour and 45 minutes", (True, False)),
    typed("full stop behind a unit", DURATION, "7min", "7 min.", (True, False)),
    typed("padded coordinates", POINT, HERE, {"latitude": " 40.44 ", "longitude": "-79.93 "}, (True, True)),
    typed("names in capitals", POINT, HERE, {"LATITUDE": "40.44", "LONGITUDE": "-79.93"}, (True, True)),
    typed("north and west", POINT, HERE, "40.44 N, 79.93 W", (True, False)),
    request_case(
        "posted with a full stop", BIO, {"url": f"{FORUM}/bio", "post_data": {"text": "I cried."}}, (True, True)
    ),
    request_case(
        "another case in a pattern", request("^__GITLAB__/api/\\d+$", **POST), {"url": f"{CODE}/API/7"}, (False, False)
    ),
    request_case(
        "another case in an address", request("__GITLAB__/api/7", **POST), {"url": f"{CODE}/API/7"}, (True, True)
    ),
    request_case("another case in a query", QUERY, {**SEARCH, "url": f"{SHOP}/search?q=USB+wifi"}, (True, True)),
    request_case("two values", QUERY, {**SEARCH, "url": f"{SHOP}/search?q=usb+wifi&q=zz"}, (False, True)),
    request_case("slash after a parameter", QUERY, {**SEARCH, "url": f"{SHOP}/search?q=usb+wifi/"}, (False, True)),
    request_case(
        "number as text",
        request("__SHOPPING__/totals", **POST, response_content={"items": 1}),
        {"url": f"{SHOP}/totals", "content": {"items": "1"}},
        (True, False),
    ),
    request_case(
        "number that is not known before",
        request("__REDDIT__/f/a/{{post_id}}/-/comment", **POST),
        {"url": f"{FORUM}/f/a/61/-/comment"},
        (True, False),
    ),
    request_case(
        "list of one",
        request("__GITLAB__/issues", **POST, post_data={"$.issue.ids": [23]}),
        {"url": f"{CODE}/issues", "post_data": {"issue": {"ids": [23]}}},
        (True, False),
    ),
    request_case(
        "data by GET",
        request("__SHOPPING__/save", post_data={"a": "1"}, response_status=302),
        {"url": f"{SHOP}/save", "post_data": {"a": "1"}},
        (True, False),
    ),
)
