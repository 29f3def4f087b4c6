"""The cheap check of the `auto` budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from envs.core.actions import ActionResult, DialogReport, Download, Status, Stop
from envs.core.observation import Observation, Tab
from envs.core.past_actions import PastAction
from judges.base import Progress
from judges.relevance import changed_lines, idle, may_have_progressed, terms
from tests.past_actions import WAITED, clicked

Make = Callable[..., Progress]
MakeObservation = Callable[..., Observation]
BEFORE = "\n".join(["# Sign in", '[1] textbox "Username"', '[2] button "Submit"', *(f"News {i}" for i in range(20))])
ONE_STEP = (WAITED,)


def step(
    progress: Make,
    make_observation: MakeObservation,
    after: str,
    history: tuple[PastAction, ...] = ONE_STEP,
    **fields: Any,
) -> Progress:
    return progress(after, previous=make_observation(BEFORE, **fields), history=history)


CASES = {
    "nothing_changed": (BEFORE, ONE_STEP, False),
    "only_numbers_of_elements_changed": (BEFORE.replace("[1]", "[7]"), ONE_STEP, False),
    "an_advert_changed": (BEFORE.replace("News 3", "Cheap flights"), ONE_STEP, False),
    "a_value_of_a_milestone_changed": (BEFORE.replace('"Username"', '"Username" = "ann"'), ONE_STEP, True),
    "a_line_of_a_milestone_vanished": (BEFORE.replace('[2] button "Submit"\n', ""), ONE_STEP, True),
    "the_action_names_a_milestone": (BEFORE, (clicked("Submit"),), True),
    "much_of_the_page_changed": (BEFORE.replace("News", "Fare"), ONE_STEP, True),
    "another_view": ("# Fares\nLisbon 40\nParis 60", ONE_STEP, True),
}


@pytest.mark.parametrize(("after", "history", "relevant"), CASES.values(), ids=CASES.keys())
def test_change(
    progress: Make, make_observation: MakeObservation, after: str, history: tuple[PastAction, ...], relevant: bool
):
    assert may_have_progressed(step(progress, make_observation, after, history), ask_every=5) is relevant


FRAMES = {
    "address": {"url": "http://shop.test/done"},
    "title": {"title": "Thanks"},
    "tab": {"tabs": (Tab(0, "Shop", "http://shop.test/", True),)},
    "dialog": {"dialog": DialogReport(type="alert", message="Saved", answer="open")},
}


@pytest.mark.parametrize("fields", FRAMES.values(), ids=FRAMES.keys())
def test_what_frames_the_page_counts_whatever_its_text_says(
    progress: Make, make_observation: MakeObservation, fields: dict[str, Any]
):
    assert may_have_progressed(step(progress, make_observation, BEFORE, **fields), ask_every=5)


def test_an_end_without_an_answer_on_the_page_rated_last_is_not_asked_about(
    progress: Make, make_observation: MakeObservation
):
    """Not even at a step at which every change counts."""

    def ended(answer: str | None, after: str = BEFORE, **fields: Any) -> bool:
        stopped = PastAction(Stop(answer=answer), None, ActionResult(status=Status.OK))
        made = progress(after, previous=make_observation(BEFORE), history=(*ONE_STEP * 4, stopped))
        return may_have_progressed(replace(made, final=True, **fields), ask_every=5)

    assert not ended(None)
    assert ended("2 lamps") and ended(None, f"{BEFORE}\nSaved") and ended(None, unrated=True)


def test_the_first_rating_always_asks(progress: Make):
    assert may_have_progressed(progress(BEFORE, history=ONE_STEP), ask_every=5)


def test_no_silence_is_longer_than_ask_every(progress: Make, make_observation: MakeObservation):
    asked = [
        may_have_progressed(step(progress, make_observation, BEFORE, ONE_STEP * n), ask_every=4) for n in range(1, 13)
    ]
    assert asked == [False, False, False, True] * 3


def test_a_tail_of_the_log_does_not_stop_the_count(progress: Make, make_observation: MakeObservation):
    tail = ONE_STEP * 3
    asked = [
        may_have_progressed(progress(BEFORE, previous=make_observation(BEFORE), history=tail, step=n), ask_every=4)
        for n in range(9)
    ]
    assert asked == [True, False, False, False] * 2 + [True]


def test_achieved_milestones_do_not_make_a_change_relevant(progress: Make, make_observation: MakeObservation):
    after = BEFORE.replace('"Username"', '"Username" = "bob"')
    done = progress(
        after,
        previous=make_observation(BEFORE),
        history=ONE_STEP,
        z=(True, False, False),
        texts=("Username", "Pay", "Ship"),
    )
    assert not may_have_progressed(done, ask_every=5)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Submitting", "submit"),
        ("注文を確定する", "注文が確定しました"),
        ("Открыть заказ", "заказы открыты"),
        ("42", "42"),
    ],
)
def test_terms_meet_across_endings_and_scripts(text: str, same: str):
    assert terms([text]) & terms([same])


def test_stop_words_are_no_terms():
    assert not terms(["Open the page with all of its links"]) & terms(["Show this page, then click the first button"])


def test_changed_lines_counts_repeats():
    assert sorted(changed_lines("a\nb\nb", "b\nc")) == ["a", "b", "c"]


FORM = '# Search\n[1] textbox "Query"\n[2] button "Search"\nServer time 10:32:05'
FOCUSED = FORM.replace('"Query"', '"Query" focused')
FOCUS_CASES: dict[str, tuple[str, str, dict[str, Any], bool]] = {
    "a field took the focus": (FORM, FOCUSED, {}, True),
    "the focus went on": (FOCUSED, FORM.replace('"Search"', '"Search" focused'), {}, True),
    "the focus was lost": (FOCUSED, FORM, {}, True),
    "a clock went on as well": (FORM, FOCUSED.replace("10:32:05", "10:32:09"), {}, True),
    "a value came with it": (FORM, FOCUSED.replace(" focused", ' = "tea" focused'), {}, False),
    "a menu opened": (FORM, FOCUSED.replace(" focused", " expanded focused"), {}, False),
    "a line came with it": (FORM, f"{FOCUSED}\nNo results", {}, False),
    "the address changed": (FORM, FOCUSED, {"url": "http://shop.test/#query"}, False),
    "nothing changed": (FORM, FORM, {}, False),
}


@pytest.mark.parametrize("name", FOCUS_CASES)
def test_only_the_focus_moved(progress: Make, make_observation: MakeObservation, name: str):
    before, after, fields, only_focus = FOCUS_CASES[name]
    step = progress(after, previous=make_observation(before, **fields), history=(clicked("Query"),), step=2)
    assert (idle(step) == "only the focus moved") is only_focus


def test_a_download_is_more_than_a_moved_focus(progress: Make, make_observation: MakeObservation):
    file = ActionResult(status=Status.OK, downloads=(Download(name="a.csv", path="a.csv", bytes=7, sha256="0"),))
    history = (replace(clicked("Export"), result=file),)
    assert idle(progress(FOCUSED, previous=make_observation(FORM), history=history, step=2)) is None


def test_nothing_is_achieved_before_the_first_action(progress: Make, make_observation: MakeObservation):
    assert idle(progress(BEFORE, step=0)) == "no action was taken yet"
    assert idle(progress(BEFORE, step=1, history=ONE_STEP)) is None


def test_the_last_page_is_rated_if_the_one_before_was_not(progress: Make, make_observation: MakeObservation):
    last = progress(FOCUSED, previous=make_observation(FORM), history=ONE_STEP, step=2, final=True)
    assert (idle(last), idle(replace(last, unrated=True))) == ("only the focus moved", None)


def test_a_page_after_one_that_was_not_rated_may_have_progressed(progress: Make, make_observation: MakeObservation):
    same = progress(BEFORE, previous=make_observation(BEFORE), history=ONE_STEP)
    assert not may_have_progressed(same, ask_every=5) and may_have_progressed(replace(same, unrated=True), ask_every=5)
