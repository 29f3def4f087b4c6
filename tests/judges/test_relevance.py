"""The cheap check of the `auto` budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from envs.core.actions import DialogReport
from envs.core.observation import Observation, Tab
from envs.core.past_actions import PastAction
from judges.base import Progress
from judges.relevance import changed_lines, may_have_progressed, terms
from tests.past_actions import WAITED, clicked

Make = Callable[..., Progress]
Look = Callable[..., Observation]
BEFORE = "\n".join(["# Sign in", '[1] textbox "Username"', '[2] button "Submit"', *(f"News {i}" for i in range(20))])
ONE_STEP = (WAITED,)


def step(progress: Make, look: Look, after: str, history: tuple[PastAction, ...] = ONE_STEP, **fields: Any) -> Progress:
    return progress(after, previous=look(BEFORE, **fields), history=history)


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
def test_change(progress: Make, look: Look, after: str, history: tuple[PastAction, ...], relevant: bool):
    assert may_have_progressed(step(progress, look, after, history), ask_every=5) is relevant


FRAMES = {
    "address": {"url": "http://shop.test/done"},
    "title": {"title": "Thanks"},
    "tab": {"tabs": (Tab(0, "Shop", "http://shop.test/", True),)},
    "dialog": {"dialog": DialogReport(type="alert", message="Saved", answer="open")},
}


@pytest.mark.parametrize("fields", FRAMES.values(), ids=FRAMES.keys())
def test_what_frames_the_page_counts_whatever_its_text_says(progress: Make, look: Look, fields: dict[str, Any]):
    assert may_have_progressed(step(progress, look, BEFORE, **fields), ask_every=5)


def test_the_first_rating_always_asks(progress: Make):
    assert may_have_progressed(progress(BEFORE, history=ONE_STEP), ask_every=5)


def test_no_silence_is_longer_than_ask_every(progress: Make, look: Look):
    asked = [may_have_progressed(step(progress, look, BEFORE, ONE_STEP * n), ask_every=4) for n in range(1, 13)]
    assert asked == [False, False, False, True] * 3


def test_a_tail_of_the_log_does_not_stop_the_count(progress: Make, look: Look):
    tail = ONE_STEP * 3
    asked = [
        may_have_progressed(progress(BEFORE, previous=look(BEFORE), history=tail, step=n), ask_every=4)
        for n in range(9)
    ]
    assert asked == [True, False, False, False] * 2 + [True]


def test_achieved_milestones_do_not_make_a_change_relevant(progress: Make, look: Look):
    after = BEFORE.replace('"Username"', '"Username" = "bob"')
    done = progress(
        after, previous=look(BEFORE), history=ONE_STEP, z=(True, False, False), texts=("Username", "Pay", "Ship")
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
