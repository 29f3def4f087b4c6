"""Lines that several shown pages have in common are shown once, and nothing is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from envs.observer.page_lines import without_refs
from judges.repeated_lines import LAST, RUN, without_repeats

MENU = "\n".join(f'[{n}] link "{name}"' for n, name in enumerate(("Home", "Orders", "Help", "Log out"), 1))
SHIFTED = MENU.replace("[", "[1")


def test_a_menu_is_shown_once_whatever_its_numbers_are() -> None:
    first, second = without_repeats(
        [("the page at step 1", f"{SHIFTED}\n# Orders\nOrder 7 | sent"), ("the page at step 2", f"# News\n{MENU}")],
        f"{MENU}\n# End",
    )
    assert first == "=== 4 lines as on the last page\n# Orders\nOrder 7 | sent"
    assert second == "# News\n=== 4 lines as on the last page"


def test_an_earlier_page_is_named_where_the_last_page_lacks_the_lines() -> None:
    first, second = without_repeats([("the page at step 1", MENU), ("the page at step 4", f"{MENU}\nNew")], "# End")
    assert first == MENU
    assert second == "=== 4 lines as on the page at step 1\nNew"


def test_runs_in_a_row_share_a_line() -> None:
    pages = [("the page at step 1", "a\nb\nc\nNew"), ("the page at step 2", f"{MENU}\na\nb\nc\nNewer")]
    assert without_repeats(pages, MENU)[1] == "=== 4 lines as on the last page, 3 as on the page at step 1\nNewer"


def test_short_runs_stay() -> None:
    assert without_repeats([("the page at step 1", "a\nb")], "a\nb") == ["a\nb"]


def test_numbers_of_controls_are_removed_and_texts_like_them_stay() -> None:
    assert without_refs('[1] link "a"  [22] button "b [3] c"') == 'link "a"  button "b c"'
    assert without_refs(r"\[1] footnote") == r"\[1] footnote"


TEXTS = st.lists(st.sampled_from("abcde"), max_size=12).map("\n".join)


@given(pages=st.lists(TEXTS, max_size=4), last=TEXTS)
def test_every_replaced_run_stands_on_the_page_it_names(pages: list[str], last: str) -> None:
    named = [(f"page {number}", text) for number, text in enumerate(pages)]
    whole = {LAST: last, **dict(named)}
    for (_, text), short in zip(named, without_repeats(named, last), strict=True):
        left = text.split("\n")
        for line in short.split("\n"):
            if not line.startswith("==="):
                assert left.pop(0) == line
                continue
            for run_of in line.removeprefix("=== ").replace(" lines", "").split(", "):
                number, _, source_name = run_of.partition(" as on ")
                count = int(number)
                run, left = left[:count], left[count:]
                source = whole[source_name].split("\n")
                assert count >= RUN and run in [source[at : at + count] for at in range(len(source))]
        assert not left
