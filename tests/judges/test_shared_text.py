"""The shared words of several instances of a task."""

from __future__ import annotations

import pytest

from judges.shared_text import shared_text

CASES = [
    ([], ""),
    (['Username is "ann"'], 'Username is "ann"'),
    (["Log in", "Log in", "Log in"], "Log in"),
    (['Username is "ann"', 'Username is "bob"', 'Username is "cy"'], 'Username is "…"'),
    (
        ['The page of "Harrow Steel Teapot" is in front', 'The page of "Petrel Pan" is in front'],
        'The page of "…" is in front',
    ),
    (["Fill my basket with 6 pans", "Fill my basket with 12 pans"], "Fill my basket with … pans"),
    (["a b c", "a x c", "a c"], "a … c"),
    (["begins alike here", "begins alike"], "begins alike …"),
    (["so it ends alike", "so ends alike"], "so … ends alike"),
    (["one two", "three four"], ""),
    (["Wait … for it", "Wait … for her"], "Wait … for …"),
    (["漢字 を 書く", "仮名 を 書く"], "… を 書く"),
]


@pytest.mark.parametrize(("texts", "shared"), CASES)
def test_what_texts_share(texts: list[str], shared: str) -> None:
    assert shared_text(texts) == shared
