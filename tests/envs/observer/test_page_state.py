"""Volatile text does not change the page state; content does."""

from __future__ import annotations

import pytest

from envs.observer.page_state import page_state, steady_url

SAME = {
    "an age": ("Posted 36 s ago by ann", "Posted 2 minutes ago by ann"),
    "an age in words": ("edited an hour ago", "edited 2 hours ago"),
    "a clock": ("Now 10:32:05", "Now 10:32:41"),
    "a countdown": ("Time left: 9 / 10sec", "Time left: 3 / 10sec"),
    "a token": ("key 9f86d081884c7d659a2feaa0c55ad015", "key 60303ae22b998861bce3b28f33eec1be"),
    "a uuid": ("id 123e4567-e89b-12d3-a456-426614174000", "id 9b2d7f10-5c2e-4a87-8f0a-3f2c9a7b1e55"),
    "server time": ("Generated in 0.034 seconds", "Generated in 0.12 seconds"),
    "focus": ('[3] textbox "Name" = "x" focused', '[3] textbox "Name" = "x"'),
    "other numbers of elements": ('[3] link "Home" | [4] link "Orders"', '[5] link "Home" | [6] link "Orders"'),
}

OTHER = {
    "a quantity": ('[3] textbox "Qty" = "1"', '[3] textbox "Qty" = "2"'),
    "a price": ("Total £12.99", "Total £13.99"),
    "a date": ("Due 2026-03-16", "Due 2026-03-17"),
    "a duration": ("Walk: 12 min", "Walk: 15 min"),
    "a box ticked": ('[6] checkbox "Agree"', '[6] checkbox "Agree" checked'),
    "a number in brackets that is text": ("see [1]st rule", "see [2]nd rule"),
    "a word in hex letters": ("facade", "decade"),
}


@pytest.mark.parametrize(("one", "two"), SAME.values(), ids=SAME.keys())
def test_what_changes_by_itself_is_the_same_state(one: str, two: str) -> None:
    assert page_state("http://x/", one) == page_state("http://x/", two)


@pytest.mark.parametrize(("one", "two"), OTHER.values(), ids=OTHER.keys())
def test_what_the_page_says_is_another_state(one: str, two: str) -> None:
    assert page_state("http://x/", one) != page_state("http://x/", two)


ADDRESSES = {
    "a token": ("http://x/a?csrf_token=1&q=b", "http://x/a?q=b&csrf_token=2"),
    "a session": ("http://x/a?PHPSESSID=1", "http://x/a?PHPSESSID=2"),
    "a cache buster": ("http://x/a?_=16", "http://x/a?_=17"),
    "a final slash": ("http://x/a/", "http://x/a"),
    "order of the query": ("http://x/a?b=1&c=2", "http://x/a?c=2&b=1"),
    "a host in capitals": ("http://X/a", "http://x/a"),
}


@pytest.mark.parametrize(("one", "two"), ADDRESSES.values(), ids=ADDRESSES.keys())
def test_addresses_of_one_page(one: str, two: str) -> None:
    assert steady_url(one) == steady_url(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("http://x/a?page=1", "http://x/a?page=2"),
        ("http://x/#a", "http://x/#b"),
        ("http://x/watch?v=1", "http://x/watch?v=2"),
    ],
)
def test_addresses_of_other_pages(one: str, two: str) -> None:
    assert steady_url(one) != steady_url(two)


def test_an_address_that_is_none_is_kept() -> None:
    assert steady_url("http://[x") == "http://[x"
