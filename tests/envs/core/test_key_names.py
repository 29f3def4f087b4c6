"""Keys are pressed under the names that people and models give them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.core.actions import Press
from envs.core.key_names import KEY_NAMES, named_keys


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ("ctrl+a", "Control+a"),
        ("Ctrl + Shift + End", "Control+Shift+End"),
        ("esc", "Escape"),
        ("Return", "Enter"),
        ("DOWN", "ArrowDown"),
        ("Page_Down", "PageDown"),
        ("cmd+plus", "Meta++"),
        ("Control+A", "Control+A"),
        ("ControlOrMeta+KeyA", "ControlOrMeta+KeyA"),
        ("+", "+"),
        ("Control++", "Control++"),
        (" ", " "),
        ("é", "é"),
        ("NoSuchKey", "NoSuchKey"),
    ],
)
def test_common_names_of_keys_are_understood(written: str, keys: str) -> None:
    assert Press(keys=written).keys == keys


@given(st.text(max_size=12) | st.lists(st.sampled_from([*KEY_NAMES, "a", "A", " ", "+"]), max_size=4).map("+".join))
def test_keys_in_the_notation_of_playwright_stay(text: str) -> None:
    assert named_keys(named_keys(text)) == named_keys(text)
