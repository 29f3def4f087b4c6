"""Typed values of WebArena-Verified: a right, a wrong and a difficult case for each type."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.suites.webarena.sites import Sites
from envs.suites.webarena.task import Format, Shape
from envs.suites.webarena.values import _FORMATS, matches, same_items

SITES = Sites.from_environment({"WA_REDDIT": "http://127.0.0.1:9999", "WA_GITLAB": "http://127.0.0.1:8023"})

RIGHT: list[tuple[str | None, str | None, Any, Any]] = [
    ("string", None, "Sprite", " sprite "),
    ("string", None, "Hawkeye Yoga Short-32-Blue", "Hawkeye Yoga Short 32 Blue"),
    ("string", None, "^#?\\s*0*170$", "#000000170"),
    ("string", None, ["Anglebert", "Dinkherhump"], "dinkherhump"),
    ("string", None, "canceled", "Cancelled"),
    ("string", None, "__GITLAB__/a/b", "http://127.0.0.1:8023/a/b"),
    ("string", None, None, ""),
    ("number", None, 6, "6"),
    ("number", None, 1200, "1,200"),
    ("integer", None, 9, 9.0),
    ("boolean", None, True, "yes"),
    ("boolean", None, False, "No"),
    ("number", "currency", 1603.69, "$1,603.69"),
    ("number", "currency", 0, "$0.00"),
    ("number", "currency", "20.40", "20.4000"),
    ("string", "duration", "1hr 44min", "1 hour and 45 minutes"),
    ("string", "duration", "63min", "1:03 hours"),
    ("string", "duration", "7min", "420 s"),
    ("string", "distance", "914km", "914.5 km"),
    ("string", "distance", "557m", "0.557 km"),
    ("string", "distance", "1.7km", "1.06 miles"),
    ("string", "date", "March 2, 2022", "3/2/22"),
    ("string", "date", "05/23/2023", "May 23rd, 2023 10:15 AM"),
    ("string", "date", "01/16/2023", "2023-01-16T08:00:00"),
    ("string", "month", "September", "Sept"),
    ("string", "month", "01", "January"),
    (None, "coordinates", {"latitude": "40.4424191", "longitude": "-79.9397388"}, "40.442419, -79.939738"),
    (None, "coordinates", {"latitude": "40.46076", "longitude": "-79.94666"}, [40.46076, -79.94666]),
    ("string", "location-name", "De Fer Coffee & Tea", "De Fer Coffee and Tea"),
    ("string", "location-name", "apple store shadyside", "Shadyside Apple Store"),
    ("string", "url", "git@__SSH_HOST__:convexegg/chatgpt.git", "ssh://git@code.example:2222/convexegg/chatgpt.git"),
    ("string", "url", "__REDDIT__/f/books/", "http://127.0.0.1:9999/f/books"),
    ("string", "markdown", "# Title\n\n* one\n* two", "# Title\n- one\n- two\n"),
    ("string", "json", '{"urls": ["__REDDIT__/f/x"], "a": 1}', '{"a":1,"urls":["http://127.0.0.1:9999/f/x"]}'),
    ("string", "string_list", "632,64,86", "86, 632,64"),
    # WebArena-Verified's own evaluator accepts these as well.
    ("string", None, "I cried", "I cried."),
    ("string", None, "Hannah Lim", "“Hannah Lim.”"),
    ("string", None, "Hannah Lim", "`Hannah Lim`;"),
    ("string", None, "Inayaili León", "Inayaili Leon"),
    ("string", None, "Cafe", "Café"),
    ("string", None, "???", "“???”"),
    ("string", None, "Computer setup", "🤖 Computer setup"),
    ("string", None, "^@?yjlou$", "@yjlou™"),
    ("string", None, "北京", "北京."),
    ("number", None, 2, "two"),
    ("number", None, 23, "twenty-three"),
    ("number", None, 2, "2."),
    ("number", None, 6, "+6.00"),
    ("number", "currency", 555.2, "US$555.2"),
    ("number", "currency", 68.51, "68.51 items"),
    ("number", "currency", 36.39, 36.3),
    ("number", "currency", 36.39, "36,39 €"),
    ("number", "currency", 1603.69, "1.603,69"),
    ("number", "currency", 1603.69, "USD 1 603.69"),
    ("number", "currency", 1603, "$1,603"),
    ("number", "currency", 36.39, "total: 36.39."),
    ("number", "currency", -5, "-$5.00"),
    ("number", "currency", 0.75, "$.75"),
    ("number", "currency", 0, "free"),
    ("string", "duration", "7min", "“7 min.”"),
    ("string", "distance", "914km", "(914 km)"),
    ("string", "date", "01/16/2023", "Monday, January 16, 2023"),
    ("string", "date", "January 29, 2023", "29.01.2023"),
    ("string", "date", "January 29, 2023", "the 29th of January 2023"),
    ("string", "date", "January 29, 2023", "29-Jan-2023"),
    ("string", "date", "January 29, 2023", "20230129"),
    ("string", "date", "January 29, 2023", "2023-01-29 10:15:00"),
    ("string", "month", "May", "May;"),
    (None, "coordinates", {"latitude": "40.44", "longitude": "-79.93"}, {"lat": " 40.44 ", "longitude": "-79.93 "}),
    (None, "coordinates", {"latitude": "40.44", "longitude": "-79.93"}, {"LATITUDE": 40.44, "Long": "-79.93"}),
    (None, "coordinates", {"latitude": "40.44", "longitude": "-79.93"}, "40.44 N, 79.93 W"),
    (None, "coordinates", {"latitude": "40.44", "longitude": "-79.93"}, "Latitude: 40.44, longitude: -79.93"),
    ("string", "location-name", "La Prima Espresso", "*La Prima Espresso*"),
    ("string", "url", "git@__SSH_HOST__:convexegg/chatgpt.git", "ssh://code.example/ConvexEgg/ChatGPT.git"),
    ("object", None, {"name": "X", "count": 2}, '{"name": "x", "count": 2}'),
]  # fmt: skip
WRONG: list[tuple[str | None, str | None, Any, Any]] = [
    ("string", None, "Sprite", "Sprites"),
    ("string", None, "Sprite", ["Sprite"]),
    ("string", None, "^#?\\s*0*170$", "1170"),
    ("string", None, "Sprite", None),
    ("number", None, 6, "six and more"),
    ("number", None, 1, True),
    ("boolean", None, True, "maybe"),
    ("number", "currency", 36.39, "36.93"),
    ("number", "currency", 36.39, "about 36.39 or 40"),
    ("string", "duration", "7min", "7"),
    ("string", "duration", "7min", "11 min"),
    ("string", "duration", "2h", "2h and something"),
    ("string", "distance", "914km", "914"),
    ("string", "distance", "748m", "748km"),
    ("string", "date", "03/02/2022", "02/03/2022"),
    ("string", "date", "March 2, 2022", "2022"),
    ("string", "month", "June", "July"),
    ("string", "month", "January", "13"),
    (None, "coordinates", {"latitude": "40.44", "longitude": "-79.93"}, "-79.93, 40.44"),
    (None, "coordinates", {"latitude": "40.44", "longitude": "-79.93"}, {"latitude": 40.44}),
    ("string", "location-name", "Schatz Dining Room", "Au Bon Pain"),
    ("string", "url", "git@__SSH_HOST__:convexegg/chatgpt.git", "git@code.example:other/chatgpt.git"),
    ("string", "url", "__REDDIT__/f/books", "http://127.0.0.1:9999/f/bookshelf"),
    ("string", "json", '{"a": 1}', '{"a": 1'),
    ("string", "markdown", "# Title", "# Another"),
    ("string", "string_list", "632,64", "632"),
    ("string", None, "???", ""),
    ("string", None, "???", "!!!"),
    ("string", None, "", "???"),
    ("string", None, "I cried", "I cried twice"),
    ("string", None, "北京", "上海"),
    ("string", None, "Sprite", ["Sprite", "other"]),
    ("number", None, 6, "six or seven"),
    ("number", "currency", 36.39, 36.2),
    ("number", "currency", 36.39, "36.39 or 40"),
    ("number", "currency", 36.39, "36.39-37.39"),
    ("number", "currency", 36.39, "-36.39"),
    ("number", "currency", 36.39, "$-36.39"),
    ("number", "currency", 36.39, "36.39%"),
    ("number", "currency", 36.39, ["36.39"]),
    ("number", "currency", 36.39, [36.39, "other"]),
    ("number", "currency", 1.6, "1,603"),
    ("string", "date", "January 29, 2023", "January 2023"),
    ("string", "date", "January 29, 2023", "30.01.2023"),
    ("string", "date", "January 2, 2023", "29.01.2023"),
    ("string", "date", "January 29, 2023", "January 29, 2023 or later"),
    ("string", "location-name", "The exchange", ["The exchange"]),
    (None, "coordinates", {"latitude": "40.44", "longitude": "-79.93"}, {"latitude": "", "longitude": ""}),
    (None, "coordinates", {"latitude": "40.44", "longitude": "-79.93"}, "40.44 N, 79.93 E"),
    (None, "coordinates", {"latitude": "40.44", "longitude": "-79.93"}, "about 40.44, -79.93 or so"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "form", "expected", "actual"), RIGHT)
def test_same_value(kind: Any, form: Any, expected: Any, actual: Any) -> None:
    assert matches(expected, actual, Shape(type=kind, format=form), SITES)


@pytest.mark.parametrize(("kind", "form", "expected", "actual"), WRONG)
def test_another_value(kind: Any, form: Any, expected: Any, actual: Any) -> None:
    assert not matches(expected, actual, Shape(type=kind, format=form), SITES)


def test_every_format_has_a_rule_and_a_case_of_each_sort() -> None:
    formats = set(get_args(Format))
    assert set(_FORMATS) == formats
    assert {form for _, form, _, _ in RIGHT} >= formats
    assert {form for _, form, _, _ in WRONG} >= formats


@pytest.mark.parametrize(
    ("expected", "actual", "ordered", "same"),
    [
        ((1, 2), [2, 1], False, True),
        ((1, 2), [2, 1], True, False),
        ((1, 2), [1, 2, 3], False, False),
        ((1, 1), [1, 2], False, False),
        (("a", ["a", "b"]), ["b", "a"], False, True),
        ((["a", "b"], "a"), ["a", "b"], False, True),  # the greedy way gives "a" to the alternatives first
        (({"name": "X", "count": 2},), [{"count": 2, "name": "x"}], False, True),
        (({"name": "X", "count": 2},), [{"name": "x"}], False, False),
        (({"name": "X"},), [{"name": "x", "more": 1}], False, False),
        (({"names": ["a", "b"]},), [{"names": ["b", "a"]}], False, True),
    ],
)
def test_lists(expected: Any, actual: Any, ordered: bool, same: bool) -> None:
    assert same_items(expected, actual, Shape(), SITES, ordered=ordered) is same


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.sampled_from([None, *get_args(Format)]), st.sampled_from(["x", 1, 2.5, True, None, {"a": 1}]))
def test_any_answer_is_compared_without_an_error(actual: Any, form: Any, expected: Any) -> None:
    assert matches(expected, actual, Shape(format=form), SITES) in (True, False)
