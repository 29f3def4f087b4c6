"""The divergence of a failed episode from a success: tables of short episodes."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.align import Alignment, reference_of
from judges.analysis.records import Comparison
from tests.judges.analysis.episodes import NO_PAGES, steps

PROFILE = (
    "/ | click link Account",
    "/profile | click link Edit profile",
    "/edit | type textbox First name = Ada",
    "/edit 1 | type textbox Last name = Oakley",
    "/edit 2 | click button Save",
    "/profile new | stop",
)
"""A path through a form that submits."""
SEARCH = (
    "/ | type searchbox Search = red teapot",
    "/ 1 | click button Search",
    "/search?q=red+teapot | click link Harrow Teapot",
    "/p/34 | stop 4737",
)
"""A path through a search to a fact."""


class Case(NamedTuple):
    reference: tuple[str, ...]
    failed: tuple[str, ...]
    step: int | None
    """Of the divergence."""
    reference_step: int | None = None


def without(way: tuple[str, ...], *places: int) -> tuple[str, ...]:
    return tuple(line for i, line in enumerate(way) if i not in places)


CASES = {
    # the same way
    "the_same_way": Case(PROFILE, PROFILE, None),
    "capitals_and_blanks": Case(
        PROFILE, (*PROFILE[:3], "/edit 1 | type textbox Last  name = OAKLEY", *PROFILE[4:]), None
    ),
    "fields_in_another_order": Case(
        PROFILE,
        (
            *PROFILE[:2],
            "/edit | type textbox Last name = Oakley",
            "/edit 9 | type textbox First name = Ada",
            *PROFILE[4:],
        ),
        None,
    ),
    "looking_around": Case(PROFILE, ("/ | scroll", "/ | find account", "/ | wait", "/ | scroll up", *PROFILE), None),
    "failed_actions": Case(PROFILE, ("/ | !click link Orders", "/ | !click link Home", *PROFILE), None),
    "a_detour": Case(PROFILE, ("/ | click link Orders", "/orders | back", *PROFILE), None),
    "a_detour_of_two_links": Case(
        PROFILE, ("/ | click link Orders", "/orders | click link 17", "/orders/17 | click link Home", *PROFILE), None
    ),
    "a_menu_opened_first": Case(PROFILE, ("/ | click button Menu", "/ menu | click link Account", *PROFILE[1:]), None),
    "another_way_to_the_same_page": Case(
        PROFILE, ("/ | click link Settings", "/settings | click link Profile", *PROFILE[1:]), None
    ),
    "by_its_address": Case(PROFILE, ("/ | goto /profile", *PROFILE[1:]), None),
    "a_value_corrected_later": Case(
        PROFILE,
        (
            *PROFILE[:3],
            "/edit 1 | type textbox Last name = Oakly",
            "/edit x | type textbox Last name = Oakley",
            *PROFILE[4:],
        ),
        None,
    ),
    "sent_by_enter": Case(
        PROFILE, (*PROFILE[:3], "/edit 1 | type textbox Last name = Oakley ⏎", "/profile new | stop"), None
    ),
    "another_query_for_the_same_item": Case(
        SEARCH,
        ("/ | type searchbox Search = teapot ⏎", "/search?q=teapot | click link Harrow Teapot", "/p/34 | stop 4737"),
        None,
    ),
    "a_count_behind_a_name": Case(
        ("/ | click link Inbox (3)", "/inbox | stop"), ("/ | click link Inbox (4)", "/inbox | stop"), None
    ),
    "the_logo_instead_of_home": Case(
        ("/p | click link Home", "/ | click link Saw", "/s | stop"),
        ("/p | click link Logo", "/ | click link Saw", "/s | stop"),
        None,
    ),
    "the_logo_instead_of_home_at_one_address": Case(
        ("/app p | click link Home", "/app | click link Saw", "/app s | stop"),
        ("/app p | click link Logo", "/app | click link Saw", "/app s | stop"),
        None,
    ),
    "the_logo_instead_of_home_before_a_wrong_link": Case(
        ("/app p | click link Home", "/app | click link Saw", "/app s | stop"),
        ("/app p | click link Logo", "/app | click link Axe", "/app a | stop"),
        2,
        2,
    ),
    # values
    "a_wrong_value": Case(
        PROFILE,
        (*PROFILE[:3], "/edit 1 | type textbox Last name = Smith", "/edit 8 | click button Save", "/profile x | stop"),
        4,
        4,
    ),
    "the_right_value_made_wrong": Case(
        PROFILE,
        (*PROFILE[:4], "/edit 2 | type textbox Last name = Smith", "/edit 8 | click button Save", "/profile x | stop"),
        5,
        4,
    ),
    "a_wrong_password_that_no_look_shows": Case(
        ("/ | type textbox Password = right", "/ | click button Log in", "/in | stop"),
        ("/ | type textbox Password = wrong", "/ | click button Log in", "/in | stop"),
        1,
        1,
    ),
    "a_value_in_the_wrong_field": Case(
        PROFILE,
        (*PROFILE[:3], "/edit 1 | type textbox Nickname = Oakley", "/edit 7 | click button Save", "/profile 7 | stop"),
        4,
        4,
    ),
    "a_field_left_out": Case(PROFILE, (*PROFILE[:3], "/edit 1 | click button Save", "/profile 3 | stop"), 4, 4),
    "numbers_are_not_similar": Case(
        ("/ | type textbox Order = 000012", "/ 1 | click button Go", "/o | stop"),
        ("/ | type textbox Order = 000013", "/ 2 | click button Go", "/o x | stop"),
        1,
        1,
    ),
    # ways
    "a_wrong_link": Case(
        SEARCH, (*SEARCH[:2], "/search?q=red+teapot | click link Petrel Teapot", "/p/28 | stop 12"), 3, 3
    ),
    "a_wrong_link_with_a_similar_name_on_the_same_page": Case(
        SEARCH, (*SEARCH[:2], "/search?q=red+teapot | click link Harrow Teapots", "/p/29 | stop 4737"), 3, 3
    ),
    "the_same_button_of_another_item": Case(
        ("/ | click link Saw", "/p/1 | click button Add", "/basket | click link Pay", "/pay | stop"),
        ("/ | click link Axe", "/p/2 | click button Add", "/basket axe | click link Pay", "/pay axe | stop"),
        1,
        1,
    ),
    "the_wrong_one_of_two_namesakes": Case(
        ("/list | click button Delete #1", "/list b | stop"), ("/list | click button Delete", "/list a | stop"), 1, 1
    ),
    "something_more_was_bought": Case(
        ("/ | click link Saw", "/p/1 | click button Add", "/basket | stop"),
        (
            "/ | click link Axe",
            "/p/2 | click button Add",
            "/basket axe | click link Home",
            "/ axe | click link Saw",
            "/p/1 axe | click button Add",
            "/basket both | stop",
        ),
        1,
        1,
    ),
    "a_wrong_link_and_back_before_the_wrong_link": Case(
        SEARCH,
        (
            *SEARCH[:2],
            "/search?q=red+teapot | click link Cup",
            "/p/9 | back",
            "/search?q=red+teapot | click link Petrel Teapot",
            "/p/28 | stop 12",
        ),
        5,
        3,
    ),
    # ends
    "stopped_too_early": Case(PROFILE, (*PROFILE[:4], "/edit 2 | stop"), 5, 5),
    "another_answer": Case(SEARCH, (*SEARCH[:3], "/p/34 | stop 12"), 4, 4),
    "went_on_at_the_end": Case(
        PROFILE, (*PROFILE[:5], "/profile new | click link Orders", "/orders | click link Home"), 6, 6
    ),
    "only_links_to_the_page_that_was_shown": Case(
        SEARCH,
        (
            "/ | click link Logo",
            "/ | click link Home",
            "/ | click link Home",
            "/ | click link Logo",
            "/ | click link X",
        ),
        1,
        1,
    ),
    "links_to_the_page_that_was_shown_then_a_wrong_link": Case(
        SEARCH,
        (
            "/ | click link Logo",
            "/ | click link Home",
            "/ | click link Blog",
            "/blog | click link News",
            "/news | stop",
        ),
        3,
        1,
    ),
    "still_trying_what_the_reference_did": Case(
        PROFILE, (*PROFILE[:4], "/edit 2 | !click button Save", "/edit 2 | !click button Save"), None
    ),
    "just_looked_on": Case(PROFILE, (*PROFILE[:2], "/edit | scroll", "/edit | find name"), 3, 3),
    "ran_out_on_the_way": Case(PROFILE, PROFILE[:3], None),
    "nothing_in_common": Case(PROFILE, ("/ | click link Blog", "/blog | click link News", "/news | stop"), 1, 1),
}


def compare(failed: tuple[str, ...], *references: tuple[str, ...]) -> Comparison:
    known = [reference_of(f"ref{i}", steps(*way), NO_PAGES) for i, way in enumerate(references)]
    result = Alignment(steps(*failed), NO_PAGES).nearest(known)
    assert result is not None
    return result.comparison


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_first_significant_divergence(case: Case):
    result = compare(case.failed, case.reference).divergence
    assert (result and result.step, result and result.reference_step) == (case.step, case.reference_step)
    assert result is None or result.reason


def test_the_nearest_reference_is_taken():
    failed = (
        *PROFILE[:3],
        "/edit 1 | type textbox Last name = Smith",
        "/edit 8 | click button Save",
        "/profile x | stop",
    )
    other = ("/ | goto /api", "/api | type textbox Query = rename", "/api 1 | click button Run", "/api 2 | stop")
    result = compare(failed, other, PROFILE, SEARCH)
    assert result.reference == "ref1"
    assert result.divergence is not None and result.divergence.step == 4


def test_a_reference_may_have_gone_astray_itself():
    astray = ("/ | click link Orders", "/orders | back", *PROFILE)
    assert compare(PROFILE, astray).divergence is None


def test_two_things_done_in_another_order():
    one = (
        "/ | goto /p/1",
        "/p/1 | click button Watch",
        "/p/1 w | goto /p/2",
        "/p/2 | click button Watch",
        "/p/2 w | stop",
    )
    two = (
        "/ | goto /p/2",
        "/p/2 | click button Watch",
        "/p/2 w | goto /p/1",
        "/p/1 | click button Watch",
        "/p/1 w | stop",
    )
    assert compare(two, one).divergence is None


def test_a_form_sent_before_it_was_filled_in_is_no_other_order():
    failed = (
        *PROFILE[:2],
        "/edit | click button Save",
        "/edit e | type textbox Last name = Oakley",
        "/edit f | scroll",
    )
    assert compare(failed, PROFILE).divergence is not None


def test_everything_done_and_no_exit():
    result = compare((*PROFILE[:5], "/profile new | click link Orders", "/orders | click link Home"), PROFILE)
    assert (result.done_at, result.followed) == (6, 5)
    assert compare(PROFILE[:4], PROFILE).done_at is None


def test_an_exit_that_was_all_that_was_left_and_no_step_after():
    assert compare(PROFILE[:5], PROFILE).done_at == 5


FORM = [f"type textbox Field {i} = value {i}" for i in range(4)]


@given(st.permutations(range(4)), st.permutations(range(4)), st.integers(0, 3))
def test_the_order_of_fields_does_not_change_the_divergence(mine: list[int], its: list[int], wrong: int):
    """The step moves with the field that got the wrong value, and stays on it."""

    def way(order: list[int], values: list[str]) -> tuple[str, ...]:
        filled = [f"/form {order[:n]} {values} | {values[field]}" for n, field in enumerate(order)]
        return ("/ | click link Form", *filled, f"/form full {values} | click button Send", f"/sent {values} | stop")

    mistaken = [text + " x" if i == wrong else text for i, text in enumerate(FORM)]
    result = compare(way(mine, mistaken), way(its, FORM)).divergence
    assert result is not None and result.step == mine.index(wrong) + 2
