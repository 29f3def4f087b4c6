"""Parsing of any completion into thought and answer."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.vision.places import numbers_in
from training.grpo.rewards import read_completion


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        pytest.param("", "", "", id="nothing"),
        pytest.param(" 10, 20\n", "", "10, 20", id="no tags"),
        pytest.param("<think> top left </think><answer> 10 20 </answer>", "top left", "10 20", id="both"),
        pytest.param("<think></think><answer>10 20</answer>", "", "10 20", id="an empty thought"),
        pytest.param("<think>\na\nb\n</think>\n<answer>\n10\n20\n</answer>", "a\nb", "10\n20", id="many lines"),
        pytest.param("<think>a</think> So: 10 20.", "a", "So: 10 20.", id="no answer tags"),
        pytest.param("<answer>10 20</answer> and 30", "", "10 20", id="words after the answer"),
        pytest.param("<answer>1 2</answer><answer>3 4</answer>", "", "1 2", id="the first of two answers"),
        pytest.param("<think>a <answer>1 2</answer></think>", "a <answer>1 2</answer>", "", id="only thought of"),
        pytest.param("<think><answer>1 2</answer></think>3 4", "<answer>1 2</answer>", "3 4", id="thought better of"),
        pytest.param("<THINK>a</THINK>", "", "<THINK>a</THINK>", id="tags are written small"),
    ],
)
def test_a_completion_is_taken_apart(text: str, thought: str, answer: str) -> None:
    completion = read_completion(text)
    assert (completion.text, completion.thought, completion.answer) == (text, thought, answer)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<think>10 20</think>", id="closed"),
        pytest.param("<think>it must be 10 20", id="cut off"),
        pytest.param("<think>a</think><think>10 20</think>", id="in a second thought"),
        pytest.param("<think></think><think>10 20", id="in a second thought, cut off"),
    ],
)
def test_an_answer_that_was_only_thought_of_is_none(text: str) -> None:
    assert read_completion(text).numbers == ()


def test_the_answer_is_that_after_the_thought() -> None:
    """So the field's docstring."""
    assert read_completion("<answer>1 2</answer><think>no</think><answer>3 4</answer>").numbers == (3, 4)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", ()),
        ("none", ()),
        ("10 20", (10, 20)),
        ("(10,20)", (10, 20)),
        ("[10, 20, 30.5, 40.25]", (10, 20, 30.5, 40.25)),
        ('{"x": 10, "y": 20}', (10, 20)),
        ("x=-10.5;y=+20", (-10.5, 20)),
        ("10. 20.", (10, 20)),
        ("007", (7,)),
        ("nan inf -Infinity", ()),
    ],
    ids=repr,
)
def test_numbers(text: str, numbers: tuple[float, ...]) -> None:
    assert numbers_in(text) == numbers


@given(st.lists(st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9).map(lambda value: round(value, 3))))
def test_numbers_are_read_as_they_are_written(values: list[float]) -> None:
    assert numbers_in(
        ", ".join(format(value, "f") if isinstance(value, float) else str(value) for value in values)
    ) == (tuple(values))


@given(st.text() | st.text(alphabet="0123456789.-e ٣५"))
def test_any_text_has_finite_numbers(text: str) -> None:
    assert all(math.isfinite(number) for number in numbers_in(text))


pieces = st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "10 20", "\n", "a"])


@given(st.lists(pieces).map("".join))
def test_any_nesting_of_tags_can_be_read(text: str) -> None:
    completion = read_completion(text)
    assert completion.text == text
    assert all(line in text for line in completion.thought.split("\n"))
    assert completion.answer in text and completion.answer == completion.answer.strip()
