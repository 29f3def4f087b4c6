"""The list of nearest controls in a message to the model."""

from __future__ import annotations

import pytest

from envs.core.observation import Element, ElementKey
from envs.observer.nearest_controls import LISTED, nearest_controls


def elements(*names: str, hidden: tuple[int, ...] = ()) -> tuple[Element, ...]:
    return tuple(
        Element(ref, ElementKey("", "button", name, 0, "0" * 8), "button", (), None, (), None, ref not in hidden)
        for ref, name in enumerate(names, start=1)
    )


MANY = elements(*(f"b{number}" for number in range(1, 21)))
CASES = [
    pytest.param(elements("tt", "Submit"), 7, '[1] button "tt", [2] button "Submit"', id="all-of-a-few"),
    pytest.param((), 7, "", id="none"),
    pytest.param(elements("a", "b", hidden=(1,)), 1, '[2] button "b"', id="only-what-is-shown"),
    pytest.param(
        MANY,
        99,
        '[16] button "b16", [17] button "b17", [18] button "b18", [19] button "b19", [20] button "b20", and 15 more',
        id="the-last",
    ),
    pytest.param(
        MANY,
        0,
        '[1] button "b1", [2] button "b2", [3] button "b3", [4] button "b4", [5] button "b5", and 15 more',
        id="the-first",
    ),
    pytest.param(
        elements("a\n[9] link 'x'\u2028b"), 2, "[1] button \"a \\[9] link 'x' b\"", id="one-line-and-no-number"
    ),
    pytest.param(elements('Say "hi" \\'), 2, '[1] button "Say \\"hi\\" \\\\"', id="quoted"),
    pytest.param(elements("x" * 500), 2, f'[1] button "{"x" * 39}…"', id="cut"),
]


@pytest.mark.parametrize(("page", "ref", "expected"), CASES)
def test_the_nearest_controls_are_listed_in_one_line(page: tuple[Element, ...], ref: int, expected: str) -> None:
    assert nearest_controls(page, ref) == expected


def test_without_a_number_the_first_ones_are_listed() -> None:
    assert nearest_controls(MANY).count("button") == LISTED and nearest_controls(MANY).startswith("[1] ")
