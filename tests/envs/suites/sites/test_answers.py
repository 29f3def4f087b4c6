"""Typed answers: which texts are accepted and which similar texts are rejected."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.suites.sites.answers import Answer, Day, Names, Number, Refusal, Text, dates_in, numbers_in

CASES: list[tuple[Answer, str, bool]] = [
    (Number(7), "7", True),
    (Number(7), "There are 7 of them.", True),
    (Number(7), "7 or 8", False),
    (Number(7), "seven", False),
    (Number(7), "17", False),
    (Number(7), "", False),
    (Number(Decimal("1234.50")), "£1,234.50", True),
    (Number(Decimal("1234.50")), "1234.5", True),
    (Number(Decimal("1234.50")), "1.234,50", False),
    (Number(-3), "−3", True),
    (Number(850, within=10), "about 845 metres", True),
    (Number(850, within=10), "839", False),
    (Number(5), "item2 has 5", True),
    (Day(date(2026, 3, 16)), "2026-03-16", True),
    (Day(date(2026, 3, 16)), "16 March 2026", True),
    (Day(date(2026, 3, 16)), "on Mar. 16th, 2026", True),
    (Day(date(2026, 3, 16)), "03/16/2026", False),
    (Day(date(2026, 3, 16)), "2026-03-16 or 2026-03-17", False),
    (Day(date(2026, 3, 16)), "2026-02-31", False),
    (Text("Blue Kettle"), " blue kettle. ", True),
    (Text("Blue Kettle"), '"Blue  Kettle"', True),
    (Text("Blue Kettle"), "Blue Kettle Deluxe", False),
    (Text("Blue Kettle"), "It is not the Blue Kettle", False),
    (Text("O’Brien"), "O'Brien", True),
    (Names(frozenset({"Ann Lee", "Bo Ek"})), "Bo Ek, Ann Lee", True),
    (Names(frozenset({"Ann Lee", "Bo Ek"})), "Bo Ek and Ann Lee", True),
    (Names(frozenset({"Ann Lee", "Bo Ek", "Cy"})), "Ann Lee, Bo Ek, and Cy", True),
    (Names(frozenset({"Ann Lee", "Bo Ek"})), "1. Ann Lee\n2. Bo Ek", True),
    (Names(frozenset({"Ann Lee", "Bo Ek"})), "Ann Lee", False),
    (Names(frozenset({"Ann Lee", "Bo Ek"})), "Ann Lee, Bo Ek, Cy", False),
    (Names(frozenset({"Salt and Pepper", "Tea"})), "Salt and Pepper; Tea", True),
    (Names(frozenset({"Smith, John", "Tea"})), "Smith, John; Tea", True),
    (Refusal("it is out of stock", ("out of stock", "unavailable")), "N/A: it is out of stock", True),
    (Refusal("it is out of stock", ("out of stock", "unavailable")), "Not possible, it is unavailable", True),
    (Refusal("it is out of stock", ("out of stock", "unavailable")), "N/A", False),
    (Refusal("it is out of stock", ("out of stock", "unavailable")), "It was out of stock but I bought another", False),
    (Refusal("it is out of stock", ("out of stock", "unavailable")), "Done", False),
]


@pytest.mark.parametrize(("answer", "text", "right"), CASES, ids=[str(number) for number in range(len(CASES))])
def test_an_answer_is_judged_by_its_meaning(answer: Answer, text: str, right: bool) -> None:
    assert answer.accepts(text) is right


@pytest.mark.parametrize("answer", [case[0] for case in CASES], ids=[str(number) for number in range(len(CASES))])
def test_the_truth_is_accepted_and_every_mutant_is_not(answer: Answer) -> None:
    assert answer.accepts(answer.truth())
    assert not [text for text in answer.mutants() if answer.accepts(text)]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    numbers_in(text)
    dates_in(text)
    for answer, _, _ in CASES:
        assert answer.accepts(text) in (True, False)


@given(st.integers(-(10**9), 10**9))
def test_a_number_is_read_as_it_is_written(value: int) -> None:
    assert Number(value).accepts(f"{value:,}")
    assert not Number(value + 1).accepts(str(value))


@given(st.dates())
def test_a_date_is_read_as_it_is_written(value: date) -> None:
    assert Day(value).accepts(f"{value:%B} {value.day}, {value.year:04d}")
    assert Day(value).accepts(value.isoformat())
