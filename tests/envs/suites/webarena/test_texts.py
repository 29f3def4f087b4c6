"""Comparisons of texts: an answer equals a reference, and a text contains it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.suites.webarena.texts import includes, plain, same

SAME = [
    ("Quest Lumaflex™ Band", "quest lumaflex band"),
    ("Yes", "Yes."),
    ("Yes", '"yes"'),
    ("0", "$0.00"),
    ("1603.69", "$1,603.69"),
    ("Canceled", "Cancelled"),
    ("a & b", "a &amp; b"),
    ("it's", "it’s"),
    ("two words", " two\n  words "),
    ("06516", "06516"),
    ("47.00", "47.0000"),
]
OTHER = [
    ("Yes", "No"),
    ("Yes", "Yes and no"),
    ("06516", "6516"),
    ("4125785000", "412578500"),
    ("0", ""),
    ("2", "2.5"),
    ("Canceled", "Completed"),
]
HELD = [
    ("0", "You spent $0.00."),
    ("170", "It is order #000000170"),
    ("2", "There are 2 of them"),
    ("36.39", "the total is $36.39 with shipping"),
    ("1200", "1,200 stars"),
    ("40.442", "40.4424191, -79.9397388"),
    ("-79.939", "40.4424191, −79.9397388"),
    ("canceled", "The order was cancelled"),
    ("Lo", "Lo, Chen and Chu"),
    ("914km", "it is 914km away"),
    ("16x24", "size: 16x24"),
    ("Joust Bag", "the JOUST&nbsp;BAG"),
    ("", "anything"),
    ("-79.933", "40.451,-79.933"),
    ("40.451", "40.451,-79.933"),
    ("85", "1.46,85"),
    ("1.46", "1.46,85"),
    ("914", "914,915"),
    ("915", "914,915"),
    ("914915", "914,915"),
    ("3716", "Fuku Tea,3716"),
    ("10001", "456 Oak Avenue,New York,10001"),
    ("15213", "3716,Forbes Avenue,15213,Pittsburgh"),
    ("000000180", "148,000000180"),
    ("65", "65,3"),
    ("3", "65,3"),
    ("12.99", "order 180,12.99"),
    ("7", "5,6,7,8"),
    ("1603.69", "$1,603.69"),
    ("30303", "Atlanta,30303,000 inhabitants"),
    ("914", "...914"),
    ("12.99", "order 180 $12.99"),
    ("180", "order 180 $12.99"),
    ("15232", "Pittsburgh-15232"),
    ("7", "5-7 days"),
]
NOT_HELD = [
    ("2", "12"),
    ("2", "2.5"),
    ("0", "10"),
    ("0", "none"),
    ("36.39", "136.39"),
    ("36.39", "36.391"),
    ("914km", "1914km"),
    ("Lo", "Hello"),
    ("No", "None of them"),
    ("9.99", "19.99"),
    ("12", "2012-01-01T00:00:00.12"),
    ("2", "2,000 tins"),
    ("1", "$1,603.69"),
    ("603.69", "$1,603.69"),
    ("603", "usd 1,603"),
    ("14", "1,014"),
    ("5", "15,25"),
    ("25", "15,250"),
    ("914", ".914"),
    ("914", "9140,915"),
    ("79.933", "40.451,-79.933"),
]


@pytest.mark.parametrize(("reference", "text"), SAME)
def test_same(reference: str, text: str) -> None:
    assert same(reference, text)


@pytest.mark.parametrize(("reference", "text"), OTHER)
def test_not_the_same(reference: str, text: str) -> None:
    assert not same(reference, text)


@pytest.mark.parametrize(("reference", "text"), HELD)
def test_held(reference: str, text: str) -> None:
    assert includes(reference, text)


@pytest.mark.parametrize(("reference", "text"), NOT_HELD)
def test_not_held(reference: str, text: str) -> None:
    assert not includes(reference, text)


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_texts_can_be_compared(first: str, second: str) -> None:
    assert same(first, first)
    assert same(first, second) == same(second, first) or first.rstrip().endswith(".") or second.rstrip().endswith(".")
    assert includes(plain(first), plain(first)) or not plain(first)
