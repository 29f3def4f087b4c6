"""The rules of failure analysis: tables of short traces, written as (action, page) pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.core.actions import ActionResult, Click, Scroll, Status, Stop
from envs.core.trace import (
    Commit,
    ElementKeyRecord,
    EndedBy,
    Failure,
    Intent,
    ObservationRecord,
    Outcome,
    Rating,
    Timings,
)
from judges.analysis import Case, FailureRules, explain
from judges.analysis.loops import Step, find_cycles

NOW = "2026-01-01T00:00:00Z"


def step(number: int, action: str, page: str, *, z: str = "", status: Status = Status.OK, key: str = "") -> Step:
    """One step. *action* is `stop`, `scroll` or the number of an element; *z* is written `100`; *key* names it."""
    acts: dict[str, Any] = {"stop": Stop(answer="x"), "scroll": Scroll(direction="down")}
    act = acts.get(action) or Click(ref=int(action))
    seen = ObservationRecord(
        url=f"http://x/{page}", title="", digest=page, text_blob="", keys_blob="", controls_total=0
    )
    target = (
        ElementKeyRecord(ref=int(action), frame="", role="button", name=key, ordinal=0, digest="0") if key else None
    )
    rating = Rating(z=tuple(c == "1" for c in z))
    intent = Intent(step=number, seen=seen, rating=rating, action=act, raw="", target=target, at=NOW)
    return intent, Commit(step=number, result=ActionResult(status=status), timings=Timings(), at=NOW)


def trace(text: str, **fields: Any) -> list[Step]:
    """A trace from words such as `1@a 2@b stop@c`: each an action and the page it was taken on."""
    return [step(number, *word.split("@"), **fields) for number, word in enumerate(text.split(), 1)]


def analyze(
    steps: Sequence[Step], *, ended_by: EndedBy, outcome: Outcome, rules: FailureRules | None = None
) -> Failure:
    return explain(Case(steps, ended_by, outcome), rules)


A, B, C, D = "stop_at_wrong_page", "stuck_midway", "no_reasonable_attempt", "other"

CASES: dict[str, tuple[str, EndedBy, str, int | None]] = {
    "stopped_on_a_wrong_page": ("1@a 2@b 3@c stop@d", "stop", A, 3),
    "stopped_after_a_loop_is_still_a_stop": ("1@a 1@a 1@a 1@a stop@a", "stop", A, 4),
    "stopped_at_once": ("stop@a", "stop", C, 1),
    "stopped_at_the_second_step": ("1@a stop@b", "stop", C, 2),
    "stopped_at_the_third_step": ("1@a 2@b stop@c", "stop", A, 2),
    "environment_ended_by_a_wrong_submit": ("1@a 2@b", "environment", A, 2),
    "environment_ended_by_the_first_click": ("1@a", "environment", C, 1),
    "one_action_again_and_again": ("1@a 2@b 3@c 3@c 3@c 3@c", "max_steps", B, 3),
    "identical_last_actions_on_pages_that_are_all_new": ("1@a 5@b 5@c 5@d", "max_steps", D, 4),
    "identical_last_actions_that_go_round": ("9@z 5@a 5@b 5@c 5@d 5@e 5@a 5@b 5@c", "max_steps", B, 2),
    "identical_last_actions_until_nothing_is_new": ("1@a 5@b 5@c 5@d 5@e 5@e 5@e", "max_steps", B, 5),
    "identical_last_actions_entered_from_another_page": ("1@a 2@b 5@c 5@d 5@d 5@d", "max_steps", B, 3),
    "one_action_among_others": ("1@a 2@b 5@c 8@c 5@c 6@c 5@c 7@c 5@c 9@c 5@c", "max_steps", B, 3),
    "one_action_among_more_others": ("5@c 8@c 6@c 5@c 7@c 9@c 5@c 3@c 4@c 5@c 2@c 1@c 5@c", "max_steps", D, 1),
    "identical_actions_that_were_not_the_last": ("5@b 5@c 5@d 1@e", "max_steps", D, 1),
    "scrolling_past_something_new": ("1@a 2@b scroll@c scroll@d scroll@e scroll@f", "max_steps", D, 1),
    "scrolling_at_the_end_of_a_page": ("1@a scroll@b scroll@c scroll@c scroll@c", "max_steps", B, 3),
    "back_and_forth": ("1@a 2@b 3@c 2@b 3@c", "max_steps", B, 2),
    "a_cycle_of_four": ("9@z 1@a 2@b 3@c 4@d 1@a 2@b 3@c 4@d", "max_seconds", B, 2),
    "a_cycle_of_five_is_none": ("1@a 2@b 3@c 4@d 5@e 1@a 2@b 3@c 4@d 5@e", "max_steps", D, 1),
    "a_cycle_that_was_left_again": ("1@a 2@b 1@a 2@b 5@e", "max_steps", B, 1),
    "same_actions_on_other_pages_are_no_cycle": ("1@a 2@b 1@c 2@d", "max_steps", D, 1),
    "a_loop_that_was_left_for_new_pages": ("1@a 2@b 1@a 2@b 5@e 6@f 7@g", "max_steps", D, 1),
    "a_loop_that_was_left_for_another": ("1@a 1@a 1@a 4@a 5@e 5@e 5@e", "max_steps", B, 5),
    "other_actions_on_two_pages_in_turn": ("1@a 2@b 3@a 4@b 5@a 6@b", "max_steps", B, 1),
    "two_pages_twice_by_other_actions": ("1@a 2@b 3@a 4@b", "max_steps", D, 1),
    "a_round_entered_by_another_action": ("9@z 5@a 2@b 1@a 2@b 1@a 2@b", "max_steps", B, 2),
    "a_round_on_a_page_that_looked_different_at_first": ("9@z 1@a 2@x 3@c 1@a 2@b 3@c 1@a 2@b", "max_steps", B, 2),
    "one_action_while_the_page_changes_by_itself": (
        "scroll@a scroll@a scroll@a scroll@b scroll@b scroll@b",
        "max_steps",
        B,
        1,
    ),
    "only_scrolled": ("scroll@a scroll@b scroll@c", "max_steps", C, 1),
    "twice_is_not_stuck": ("1@a 1@a 2@b", "max_steps", D, 1),
    "just_too_long": ("1@a 2@b 3@c 4@d", "max_tokens", D, 1),
    "no_step_at_all": ("", "max_steps", C, None),
    "declined_by_a_person": ("1@a 2@b", "declined", D, 1),
    "declined_before_the_first_step": ("", "declined", D, None),
}


@pytest.mark.parametrize(("text", "ended_by", "category", "key"), CASES.values(), ids=CASES.keys())
def test_rule(text: str, ended_by: EndedBy, category: str, key: int | None):
    failure = analyze(trace(text), ended_by=ended_by, outcome="failure")
    assert (failure.category, failure.key_step) == (category, key)
    assert failure.reason


REPEATED = [
    pytest.param("7@a 7@a 7@a", "click on button 'Save' was repeated 3 times", id="one action"),
    pytest.param(
        "7@a 8@b 7@a 8@b", "a round of 2 steps (click on button 'Save'; click on button 'Close') was", id="a round"
    ),
    pytest.param(
        "7@a 8@a 7@a 7@a 3@a 7@a 8@a 7@a",
        "until step 8, with other steps in between, click on button 'Save'",
        id="among",
    ),
]


@pytest.mark.parametrize(("text", "actions"), REPEATED)
def test_stuck_names_the_action_that_was_repeated(text: str, actions: str):
    names = {"7": "Save", "8": "Close"}
    steps = [
        step(n, *word.split("@"), key=names.get(word.split("@")[0], "Other")) for n, word in enumerate(text.split(), 1)
    ]
    failure = analyze(steps, ended_by="max_steps", outcome="failure")
    assert failure.category == B and actions in failure.reason


def test_actions_that_are_all_refused_are_no_progress():
    """The page changes by itself; nothing is done to it."""
    steps = [step(n, "7", str(n), status=Status.COVERED) for n in (1, 2, 3, 4)]
    failure = analyze(steps, ended_by="max_steps", outcome="failure")
    assert (failure.category, failure.key_step) == (B, 1)


def test_a_limit_that_cuts_equal_actions_with_a_new_page_each_time_is_the_reason():
    failure = analyze(trace("1@a 5@b 5@c 5@d 5@e"), ended_by="max_steps", outcome="failure")
    assert failure.cut_short and failure.loop is None
    assert failure.reason.startswith(
        "the limit of steps ended it after 5 steps, apparently while progress was being made"
    )
    assert "4 times from step 2 on, led to a new page each time" in failure.reason


def test_looking_between_equal_actions_does_not_stop_progress():
    failure = analyze(trace("5@a scroll@b 5@b scroll@c 5@c 5@d"), ended_by="max_steps", outcome="failure")
    assert (failure.category, failure.key_step, failure.cut_short) == (D, 6, True)


def test_a_milestone_reached_by_the_last_of_equal_actions_is_progress():
    """Nobody saw the page after it; the check at the end did."""
    steps = [step(n, "5", str(n), z="10") for n in (1, 2, 3, 4)]
    failure = explain(Case(steps, "max_steps", "failure", final=(True, True)))
    assert failure.category == C, "everything is done"
    steps = [step(n, "5", str(n), z="100") for n in (1, 2, 3, 4)]
    failure = explain(Case(steps, "max_steps", "failure", final=(True, True, False)))
    assert (failure.category, failure.key_step, failure.cut_short) == (D, 4, True)
    assert "limit of steps" in failure.reason and "while progress was being made" in failure.reason
    assert "and to a milestone" in failure.reason


def test_a_milestone_reached_by_the_last_action_is_no_loop():
    steps = [step(n, "5", "a", z="10") for n in (1, 2, 3)]
    failure = explain(Case(steps, "max_seconds", "failure", final=(True, True)))
    assert failure.category != B
    steps = [step(n, "5", "a", z="100") for n in (1, 2, 3)]
    failure = explain(Case(steps, "max_seconds", "failure", final=(True, True, False)))
    assert (failure.category, failure.key_step, failure.cut_short) == (D, 3, True)
    assert "the limit of seconds ended it after 3 steps" in failure.reason


def test_a_milestone_that_a_model_missed_on_the_way_is_not_reached_at_the_end():
    """The checker looked at the end, a model before: their counts are not compared."""
    steps = [step(n, "5", "a", z="100") for n in (1, 2, 3)]
    rated = [(i.model_copy(update={"rating": i.rating.model_copy(update={"source": "model"})}), c) for i, c in steps]
    assert explain(Case(rated, "max_steps", "failure", final=(True, True, False))).category == B


@pytest.mark.parametrize("ended_by", ["declined", "interrupted", "error"])
def test_only_a_limit_cuts_short(ended_by: EndedBy):
    assert not analyze(trace("5@a 5@b 5@c 5@d"), ended_by=ended_by, outcome="failure").cut_short


def test_right_page_but_never_exited():
    steps = [step(1, "1", "a", z="00"), step(2, "2", "b", z="10"), step(3, "3", "c", z="11"), step(4, "4", "d", z="11")]
    failure = analyze(steps, ended_by="max_steps", outcome="failure")
    assert (failure.category, failure.key_step) == (C, 3)


def test_stuck_comes_before_no_attempt():
    steps = [step(n, "1", "a", z="11") for n in (1, 2, 3)]
    assert analyze(steps, ended_by="max_steps", outcome="failure").category == B


def test_nothing_was_ever_carried_out():
    steps = [step(n, str(n), str(n), status=Status.NO_SUCH_REF) for n in (1, 2, 3, 4)]
    assert analyze(steps, ended_by="max_steps", outcome="failure").category == C


def test_key_step_of_the_rest_is_where_progress_ended():
    steps = [step(n, str(n), str(n), z=z) for n, z in enumerate(("00", "10", "10", "10"), 1)]
    failure = analyze(steps, ended_by="max_steps", outcome="failure")
    assert (failure.category, failure.key_step) == (D, 2)


def test_the_same_element_under_other_numbers_is_the_same_action():
    steps = [step(n, str(n + 4), "a", key="Save") for n in (1, 2, 3)]
    assert analyze(steps, ended_by="max_steps", outcome="failure").category == B


def test_other_elements_under_the_same_number_are_other_actions():
    steps = [step(n, "1", "a", key=name) for n, name in enumerate(("Save", "Print", "Send"), 1)]
    assert analyze(steps, ended_by="max_steps", outcome="failure").category == D


@pytest.mark.parametrize(("outcome", "ended_by"), [("broken", "stop"), ("broken", "environment"), ("broken", "error")])
def test_a_broken_environment_says_nothing_about_the_agent(outcome: Any, ended_by: EndedBy):
    failure = analyze(trace("1@a 1@a 1@a"), ended_by=ended_by, outcome=outcome)
    assert (failure.category, failure.key_step) == (D, 3)


def test_a_policy_that_ends_in_answers_without_an_action_is_its_own_failing():
    """The checker has judged it, so nothing broke: the loop before counts."""
    failure = analyze(trace("1@a 1@a 1@a"), ended_by="error", outcome="failure")
    assert (failure.category, failure.key_step) == (B, 1)


@pytest.mark.parametrize("outcome", ["success", "unjudged"])
def test_what_did_not_fail_is_not_analyzed(outcome: Any):
    with pytest.raises(ValueError, match=outcome):
        analyze(trace("1@a"), ended_by="stop", outcome=outcome)


def test_a_step_without_a_commit_is_read():
    intent, _ = step(1, "1", "a")
    assert analyze([(intent, None)], ended_by="max_seconds", outcome="failure").category == C


def test_key_steps_are_the_traces_own_numbers():
    steps = [step(n, "1", "a") for n in (11, 12, 13)]
    assert analyze(steps, ended_by="max_steps", outcome="failure").key_step == 11


def test_thresholds_are_settings():
    stop = trace("1@a stop@b")
    assert analyze(stop, ended_by="stop", outcome="failure", rules=FailureRules(early_exit_steps=1)).category == A
    twice = trace("1@a 1@a")
    assert (
        analyze(twice, ended_by="max_steps", outcome="failure", rules=FailureRules(identical_actions=2)).category == B
    )
    five = trace(CASES["a_cycle_of_five_is_none"][0])
    assert analyze(five, ended_by="max_steps", outcome="failure", rules=FailureRules(max_period=5)).category == B


CYCLES = [
    ("abab", 2, 2, (0, 2, 4)),
    ("xabab", 2, 2, (1, 2, 4)),
    ("xababa", 2, 2, (1, 2, 5)),
    ("ababyabab", 2, 2, (0, 2, 4)),
    ("aba", 2, 2, None),
    ("aaxaaa", 1, 3, (3, 1, 3)),
    ("", 1, 2, None),
]


@pytest.mark.parametrize(("keys", "period", "repeats", "found"), CYCLES)
def test_the_first_of_find_cycles(keys: str, period: int, repeats: int, found: tuple[int, int, int] | None):
    assert next(find_cycles(keys, period=period, repeats=repeats), None) == found


def slow_first_cycle(keys: Sequence[int], period: int, repeats: int) -> int | None:
    """The definition, tried at every place: the start of the first window that repeats often enough."""
    size = period * repeats
    windows = (keys[i : i + size] for i in range(len(keys) - size + 1))
    return next((i for i, w in enumerate(windows) if list(w) == list(w[:period]) * repeats), None)


@given(st.lists(st.integers(0, 2), max_size=20), st.integers(1, 4), st.integers(2, 3))
def test_find_cycles_agrees_with_its_definition(keys: list[int], period: int, repeats: int):
    cycle = next(find_cycles(keys, period=period, repeats=repeats), None)
    assert (cycle and cycle.start) == slow_first_cycle(keys, period, repeats)


def test_a_loop_that_a_milestone_came_after_explains_nothing():
    words = "1@a 1@a 1@a 2@a 3@b 4@c"
    steps = [step(n, *word.split("@"), z=z) for n, (word, z) in enumerate(zip(words.split(), "000011", strict=True), 1)]
    assert analyze(steps, ended_by="max_steps", outcome="failure").category != B


def test_the_loop_is_reported_whatever_the_category():
    failure = analyze(trace("1@a 2@b 2@b 2@b stop@b"), ended_by="stop", outcome="failure")
    assert failure.category == A
    assert failure.loop is not None and failure.loop.entry == 2


def test_a_step_that_was_intended_twice_is_one_step():
    again = [(intent, None) for intent, _ in trace("1@a 1@a")]
    steps = [step(1, "1", "a"), *[(i.model_copy(update={"step": 2}), c) for i, c in again], step(3, "2", "b")]
    assert analyze(steps, ended_by="max_steps", outcome="failure").category == D


def test_what_was_rated_at_the_very_end_counts():
    failure = explain(Case(trace("1@a 2@b 3@c"), "max_steps", "failure", final=(True, True)))
    assert (failure.category, failure.key_step) == (C, 3)


def test_what_broke_is_named():
    failure = explain(Case(trace("1@a 2@b"), "error", "broken", error="PageCrashed: the renderer died"))
    assert "PageCrashed" in failure.reason


FIRST_CLICKS = [
    ("Advertisement", "000", C),
    ("Advertisement", "001", D),  # something came of it
    ("Edit my name", "000", D),  # the task speaks of it
]


@pytest.mark.parametrize(("name", "z", "category"), FIRST_CLICKS)
def test_a_nonsensical_first_click(name: str, z: str, category: str):
    steps = [step(n, str(n), str(n), z=one, key=name if n == 1 else "") for n, one in enumerate(z, 1)]
    # The other milestone is never reached, so that this is no missing exit.
    steps = [(i.model_copy(update={"rating": Rating(z=(*i.rating.z, False))}), c) for i, c in steps]
    case = Case(steps, "max_steps", "failure", instruction="Change my name")
    assert explain(case).category == category


def test_a_first_click_without_a_witness_is_not_judged():
    steps = [step(n, str(n), str(n), key="Advertisement" if n == 1 else "") for n in (1, 2, 3)]
    assert explain(Case(steps, "max_steps", "failure", instruction="Change my name")).category == D


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["1", "2", "scroll"]), st.sampled_from("ab")), max_size=12))
def test_every_failed_trace_gets_a_category_and_a_step_of_its_own(pairs: list[tuple[str, str]]):
    steps = [step(n, action, page) for n, (action, page) in enumerate(pairs, 1)]
    for ended_by in ("stop", "environment", "max_steps", "declined", "interrupted", "error"):
        failure = analyze(steps, ended_by=ended_by, outcome="failure")
        assert failure.key_step in ([i.step for i, _ in steps] or [None])
