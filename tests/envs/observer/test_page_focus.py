"""The excerpt of a long page for a small model: relevant lines, only text of the page, within the limit."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.observer.page_focus import Interest, focused_lines, gap_line, interest, stem
from envs.observer.page_lines import CUT, cut_line, pieces, read_line

NAME = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=20).map(
    lambda name: name.replace("\\", "\\\\").replace('"', '\\"')
)


def _control(ref: int, role: str, name: str, rest: str) -> str:
    return f'[{ref}] {role} "{name}"{rest}'


CONTROL = st.builds(
    _control,
    st.integers(1, 400),
    st.sampled_from(["link", "button", "textbox", "combobox", "checkbox"]),
    NAME,
    st.sampled_from(["", " disabled", ' = "x y" focused', ' = "M" options: "S" (disabled) "M" "L | XL" … 3 more']),
)
WORDS = st.text("abcdefgh 123|…-#g[]", max_size=60).map(lambda text: text.replace("[", "("))
CELL = st.one_of(CONTROL, WORDS)
LINE = st.one_of(
    CELL,
    CELL.map(lambda text: f"# {text}"),
    st.lists(CELL, min_size=2, max_size=6).map(" | ".join),
    st.lists(CONTROL, min_size=2, max_size=4).map("  ".join),
    st.sampled_from(["--- 12 more lines", "… g1: row ×332, shown 1-28 (expand g1 or find text)", "word " * 90]),
)
PAGE = st.lists(LINE, min_size=1, max_size=40).map("\n".join)
SOUGHT = st.text("abcdefgh 123", max_size=40).map(lambda text: interest((text, 1.0), (f'Find "{text}"', 1.5)))
REF = re.compile(r"(?<!\\)\[\d+\]")


def is_from(shown: str, line: str) -> bool:
    """Whether the parts between the cuts occur unchanged and in order in *line*."""
    at = 0
    for part in shown.replace(" options: …", "…").split(CUT):
        kept = part.strip(" |").removesuffix("\\")
        at = line.find(kept, at) + len(kept)
        if at < len(kept):
            return False
    return True


@given(PAGE, SOUGHT, st.integers(40, 3_000))
def test_lines_are_the_page_s_own_in_its_order_and_within_the_bound(page: str, sought: Interest, chars: int) -> None:
    shown = focused_lines(page, sought, chars)
    assert len("\n".join(shown)) <= chars
    if len(page) <= chars:
        assert "\n".join(shown) == page
        return
    lines = page.split("\n")
    at = 0
    for line in shown:
        if gap := re.fullmatch(r"--- (\d+) more lines?", line):
            at += int(gap[1])
        else:
            assert set(REF.findall(line)) <= set(REF.findall(lines[at])), "no ref is made up"
            at += 1
    assert at == len(lines), "what is left out is counted"


@given(LINE, st.integers(10, 200))
def test_a_cut_line_has_whole_pieces_in_order(line: str, room: int) -> None:
    shown = cut_line(line, room, lambda piece: len(piece.text) % 7)
    assert shown == line if len(line) <= room else is_from(shown, line)


@given(LINE)
def test_pieces_give_the_line_again(line: str) -> None:
    parts = pieces(line)
    assert line.startswith("".join(piece.before + piece.text for piece in parts))


LINKS = [f'[{n}] link "Topic number {n}"' for n in range(10, 60)]


def shown(lines: list[str], goal: str, next_: str = "", chars: int = 500) -> list[str]:
    return focused_lines("\n".join(lines), interest((goal, 1.0), (next_, 1.5)), chars)


def test_a_quoted_phrase_is_found_among_its_likes() -> None:
    target = '[99] link "Fenwick\'s Harbour Letters"'
    page = ["# Products", *(f'[{n}] link "Fenwick\'s Coastal Letters {n}"' for n in range(40)), target]
    assert target in shown(page, 'Set the price of "Fenwick\'s Harbour Letters" to £11.10.')


def test_a_matching_row_comes_with_its_heading_and_the_head_of_its_table() -> None:
    rows = [f'[{n}] checkbox "" | [{n + 1}] link "20{n}" | Pending | [{n + 2}] link "View"' for n in range(100, 190, 3)]
    page = ["# Orders", *LINKS, "# All orders", "Order | Number | Status", *rows, "# Footer"]
    found = shown(page, "What is the status of order 20151?")
    assert '[151] checkbox "" | [152] link "20151" | Pending | [153] link "View"' in found
    assert found.index("# All orders") < found.index("Order | Number | Status")


def test_the_focused_field_its_follower_and_the_submit_button_stay() -> None:
    form = ['[1] textbox "A" = "x" focused', '[2] textbox "B"', *["Some long explanation of B."] * 9]
    page = ["# Form", *form, '[3] button "Save changes"', *LINKS]
    assert {'[1] textbox "A" = "x" focused', '[2] textbox "B"', '[3] button "Save changes"'} <= set(
        shown(page, "Do it")
    )


def test_the_same_links_under_every_comment_make_room_for_what_differs() -> None:
    names = [f"{first}{second}" for first in ("ann", "bo", "cy", "di", "eva") for second in ("field", "hill", "wood")]
    page = ["# Topic"]
    for n, name in enumerate(names):
        page += [f'[{3 * n + 1}] link "{name}"', f'[{3 * n + 2}] link "report"', f'[{3 * n + 3}] link "share"']
    found = "\n".join(shown(page, "Who wrote the last comment?", chars=700))
    assert all(name in found for name in names)
    assert found.count('link "report"') <= 3


def test_a_message_of_the_page_stays() -> None:
    page = ["# Shop", *LINKS, "Please correct the errors below.", *LINKS]
    assert "Please correct the errors below." in shown(page, "Buy a lamp")


def test_a_long_list_of_options_keeps_the_one_of_the_goal() -> None:
    options = " ".join(f'"Country {n}"' for n in range(200))
    page = ["# Address", f'[1] combobox "Country" = "Country 0" options: {options}', *LINKS]
    line = next(line for line in shown(page, "Deliver to Country 77") if line.startswith("[1]"))
    assert line.startswith('[1] combobox "Country" = "Country 0" options: ') and '"Country 77"' in line


def test_an_option_that_cannot_be_chosen_is_never_shown_as_one_that_can() -> None:
    options = " ".join(f'"Country {n}" (disabled)' for n in range(200))
    page = ["# Address", f'[1] combobox "Country" = "" options: {options}', *LINKS]
    line = next(line for line in shown(page, "Deliver to Country 77") if line.startswith("[1]"))
    assert line.count('"Country ') == line.count(" (disabled)") > 1


def test_a_long_value_leaves_room_for_the_submit_button() -> None:
    line = f'[1] textbox "Body \\"x\\"" = "{"many words " * 30}" focused  [2] button "Send"'
    cut = cut_line(line, 120, lambda piece: 0.0)
    assert cut == f'[1] textbox "Body \\"x\\"" = "{("many words " * 30)[:58]}{CUT}" focused  [2] button "Send"'
    assert read_line(cut).roles == ("textbox", "button")


def test_a_page_cannot_write_our_gap_line() -> None:
    page = ["--- 7 more lines", *LINKS, "--- 1 more line"]
    found = focused_lines("\n".join(page), interest(("more lines", 1.0)), 300)
    assert found[0] == "\\--- 7 more lines" and found[-1] == "\\--- 1 more line"


def test_words_after_our_cut_do_not_read_as_a_group() -> None:
    line = "aaaa | bbbbbbbbbbbbbbbb | g1: row 5, shown none"
    assert "\\… | g1" not in line and "… g1" not in cut_line("aaaa " * 30 + "g1: x", 20, lambda p: "g1" in p.text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("categories", "category"),
        ("created", "create"),
        ("prices", "price"),
        ("editing", "edit"),
        ("addresses", "address"),
    ],
)
def test_endings_do_not_matter(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_numbers_are_words_of_their_own() -> None:
    assert stem("20087") != stem("20088")


def test_a_line_says_what_it_is() -> None:
    assert read_line('[5] textbox "focused"').focused is False
    assert read_line('[5] textbox "Email" = "a" focused required').focused
    assert read_line('[5] textbox "x" readonly').is_idle
    assert not read_line("no controls").is_idle
    assert gap_line(1) == "--- 1 more line"
