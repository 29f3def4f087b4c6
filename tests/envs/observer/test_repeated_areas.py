"""Clickable rows whose name repeats the text of the lines after them."""

from __future__ import annotations

import pytest

from envs.observer.page_lines import with_short_areas, without_repeated_areas

ROW = '[9] clickable "Whitefly on my courgettes, what now? Gardening 12 5h"'
PARTS = '[10] link "Whitefly on my courgettes, what now?"\n[11] link "Gardening"\n12\n5h'


def test_a_row_keeps_its_number_and_the_beginning_of_its_name() -> None:
    assert (
        with_short_areas(f"# Topics\n{ROW}\n{PARTS}\nend")
        == f'# Topics\n[9] clickable "Whitefly on my c…"\n{PARTS}\nend'
    )


def test_readers_without_actions_see_the_words_once() -> None:
    assert without_repeated_areas(f"# Topics\n{ROW}\n{PARTS}") == f"# Topics\n{PARTS}"


def test_an_escape_is_not_cut_in_half() -> None:
    shown = with_short_areas('[1] clickable "Notes of Annas \\"Red\\" Smith"\nNotes of Annas \\"Red\\" Smith')
    assert shown.split("\n")[0] == '[1] clickable "Notes of Annas …"'


def test_a_name_that_the_observer_cut_is_compared_with_its_beginning() -> None:
    assert without_repeated_areas('[1] clickable "One two three fo…"\n[2] link "One two"\nthree four') == (
        '[2] link "One two"\nthree four'
    )


@pytest.mark.parametrize(
    "text",
    [
        '[9] clickable "Map of the world"\n[10] button "Zoom in"',
        '[9] clickable "A B"\n[10] link "A"\nB',
        f"{ROW} (selected)\n{PARTS}",
        f'{ROW}\n[10] link "Another topic"\n{PARTS}',
        f"\\{ROW}\n{PARTS}",
        ROW,
    ],
    ids=["other words", "short", "with a state", "words elsewhere", "text of the page", "last line"],
)
def test_other_lines_stay(text: str) -> None:
    assert with_short_areas(text) == without_repeated_areas(text) == text
