"""The watch for typed causes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.core.actions import Status
from planners.replan_triggers import ReplanDetector, ReplanSettings, StepSummary, loop_period


def ticks(*steps: tuple[str, str] | dict[str, Any]) -> list[StepSummary]:
    """Steps from (action, digest) pairs or from fields that differ from a healthy step."""
    summaries: list[StepSummary] = []
    for number, step in enumerate(steps, 1):
        healthy = StepSummary(number, f"click [{number}]", f"page{number}", Status.OK)
        fields = {"action_text": step[0], "digest": step[1]} if isinstance(step, tuple) else step
        summaries.append(replace(healthy, **fields))
    return summaries


def known_pages(count: int, z: tuple[bool, ...]) -> list[dict[str, Any]]:
    """Steps with other actions on two pages in turn; only the first step finds a new one."""
    return [{"z": z, "digest": f"page{number % 2}"} for number in range(count)]


OK: dict[str, Any] = {}
STALE = {"status": Status.STALE}
AMBIGUOUS = {"status": Status.AMBIGUOUS}
BLOCKED = {"status": Status.BLOCKED}
A, B, C, D, E = (("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("e", "5"))

CASES = {
    "nothing_yet": ([], None),
    "healthy": ([OK] * 12, None),
    "one_action_twice": ([A, A], None),
    "one_action_three_times": ([A, A, A], "loop"),
    "same_action_on_changing_pages": ([("a", "1"), ("a", "2"), ("a", "3")], None),
    "period_two": ([A, B, A, B], "loop"),
    "period_three": ([A, B, C, A, B, C], "loop"),
    "period_four": ([A, B, C, D, A, B, C, D], "loop"),
    "period_five_is_too_long": ([A, B, C, D, E, A, B, C, D, E], None),
    "a_loop_that_was_left": ([A, B, A, B, OK], None),
    "page_unchanged_for_three": ([("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")], None),
    "page_unchanged_for_four": ([("a", "1"), ("b", "1"), ("c", "1"), ("d", "1"), ("e", "1")], "stall"),
    "stale_once": ([OK, STALE], None),
    "stale_twice": ([STALE, STALE], "stale_element"),
    "stale_then_ambiguous": ([STALE, AMBIGUOUS], "stale_element"),
    "stale_with_a_success_between": ([STALE, OK, STALE], None),
    "blocked_once": ([OK, BLOCKED], "blocked"),
    "blocked_earlier": ([BLOCKED, OK], None),
    "milestone_taken_back": ([{"z": (True, False)}, {"z": (False, False)}], "milestone_lost"),
    "milestone_gained": ([{"z": (False, False)}, {"z": (True, False)}], None),
    "another_plan_is_no_loss": ([{"z": (True, False)}, {"z": (False,)}], None),
    "lost_by_its_checker": ([{"z": (True,), "lost": ("Have Ann in Name",)}], "milestone_lost"),
    "no_milestone_for_ten": (known_pages(12, (True, False)), "stall"),
    "no_milestone_for_nine": (known_pages(11, (True, False)), None),
    "no_milestone_on_new_pages": ([{"z": (True, False)}] * 30, None),
    "no_milestone_on_new_pages_for_too_long": ([{"z": (True, False)}] * 31, "stall"),
    "a_clock_is_no_new_page": ([{"z": (False,), "state": f"page{n % 2}"} for n in range(14)], "stall"),
    "typing_into_a_long_form": ([{"z": (False,), "state": f"{n} fields"} for n in range(14)], None),
    "each_find_shows_other_lines": ([{"digest": "1", "shown": f"line {n}"} for n in range(8)], None),
    "each_find_shows_the_same_line": ([{"digest": "1", "shown": "line 7"}] * 8, "stall"),
    "reading_that_ended": ([{"digest": "1", "shown": s} for s in ("a", "b", "", "", "", "", "")], "stall"),
    "back_and_forth_between_two_pages": (known_pages(14, (False,)), "stall"),
    "all_milestones_done_is_no_stall": ([{"z": (True, True)}] * 15, None),
    "no_plan_is_no_stall": ([{"z": ()}] * 15, None),
    "blocked_names_more_than_stale": ([STALE, STALE, BLOCKED], "blocked"),
    "stale_names_more_than_loop": ([{"action_text": "a", "digest": "1", **STALE}] * 3, "stale_element"),
}


@pytest.mark.parametrize(("steps", "cause"), CASES.values(), ids=CASES.keys())
def test_cause(steps: list[Any], cause: str | None):
    trouble = ReplanDetector().check(ticks(*steps))
    assert (trouble and trouble.cause) == cause


def test_the_detail_says_what_happened():
    watch = ReplanDetector()
    assert watch.check(ticks(A, B, A, B)) == ("loop", "the same actions on the same page again: 'a' → 'b'")
    assert watch.check(ticks({"lost": ("Have Ann in Name",)})) == (
        "milestone_lost",
        "no longer holds: 'Have Ann in Name'",
    )
    assert watch.check(ticks({"action_text": "goto [x]", **BLOCKED})) == (
        "blocked",
        "step 1: 'goto [x]' was refused",
    )


def test_steps_before_the_plan_do_not_count_against_it():
    looped = ticks(A, B, A, B)
    assert ReplanDetector().check(looped) is not None
    assert ReplanDetector().check(looped, planned_at=4) is None


def test_a_loop_must_close_after_the_plan_to_count_against_it():
    watch = ReplanDetector(ReplanSettings(cooldown=0))
    steps = ticks(A, B, A, B, A, B, A)
    assert [watch.check(steps[:n], planned_at=3) is not None for n in range(4, 8)] == [False, False, False, True]


def test_a_new_plan_is_given_its_cooldown():
    steps = ticks(OK, OK, BLOCKED, BLOCKED, BLOCKED)
    watch = ReplanDetector(ReplanSettings(cooldown=2))
    assert [watch.check(steps[:n], planned_at=2) is not None for n in (3, 4, 5)] == [False, False, True]


def test_unreadable_answers_call_for_a_plan_once_in_each_row():
    watch = ReplanDetector(ReplanSettings(parse_errors=2))
    causes = [trouble and trouble.cause for trouble in map(watch.unreadable, range(1, 6))]
    assert causes == [None, "parse_error", None, None, None]


def test_the_first_plan_has_no_cooldown():
    assert ReplanDetector().check(ticks(BLOCKED)) is not None


def test_unknown_settings_are_refused():
    with pytest.raises(ValueError, match="extra"):
        ReplanSettings.model_validate({"period": 3})


STEP = st.fixed_dictionaries(
    {
        "action_text": st.sampled_from("ab"),
        "digest": st.sampled_from("12"),
        "status": st.sampled_from([Status.OK, Status.STALE, Status.BLOCKED, None]),
        "z": st.sampled_from([(False, False), (True, False)]),
    }
)


@given(st.lists(STEP, max_size=30))
def test_a_window_of_the_history_is_enough(steps: list[dict[str, Any]]):
    watch, summaries = ReplanDetector(), ticks(*steps)
    full, tail = watch.check(summaries), watch.check(summaries[-watch.window :])
    assert (full and full.cause) == (tail and tail.cause)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=4), st.integers(3, 5))
def test_whatever_repeats_three_times_is_found_at_its_period_or_a_shorter_one(cycle: list[int], times: int):
    period = loop_period(cycle * times, max_period=4, repeats=3, cycle_repeats=2)
    assert period is not None and period <= len(cycle)
