"""The thought of a completion: all text but its answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.grpo.rewards.examples import CLICK, MAZE, POINT, SCROLL, SOLVED, TYPE, words
from training.grpo.rewards import Target, extract_thought, is_right, read_completion
from training.grpo.rewards.adagui import AdaguiReward

WORDS = "so " * 150
CLICKED, TYPED = 'do(action="Click At", x=130, y=215)', 'do(action="Type", argument="Ada L.", element="7")'


def scored(target: Target, *texts: str) -> list[tuple[float, float]]:
    """(total, tokens of thought) of a group's completions."""
    scores = AdaguiReward().of_group(target, [read_completion(text) for text in texts], words)
    return [(score.total, score.parts["thought_tokens"]) for score in scores]


@pytest.mark.parametrize(
    ("target", "text"),
    [
        pytest.param(POINT, f"<think>{WORDS}</think><answer>130 215</answer>", id="in its tags"),
        pytest.param(POINT, f"{WORDS}</think>130 215", id="in a thought that the template opened"),
        pytest.param(POINT, f"{WORDS}<answer>130 215</answer>", id="before the answer"),
        pytest.param(POINT, f"<think></think>{WORDS}<answer>130 215</answer>", id="between thought and answer"),
        pytest.param(POINT, f"<answer>130 215</answer>{WORDS}", id="behind the answer"),
        pytest.param(POINT, f"<answer>{WORDS}(130, 215)</answer>", id="inside the answer"),
        pytest.param(POINT, f"{WORDS}(130, 215)", id="without any tag"),
        pytest.param(POINT, f"<thinking>{WORDS}</thinking><answer>130 215</answer>", id="in another tag"),
        pytest.param(POINT, f'{{"thought": "{WORDS}", "point_2d": [130, 215]}}', id="in JSON"),
        pytest.param(CLICK, f"# Note: {WORDS}\n{CLICKED}", id="in a comment"),
        pytest.param(CLICK, f"{CLICKED}\n{WORDS}", id="behind an action"),
        pytest.param(TYPE, f"{WORDS}\n{TYPED}\n{TYPED}", id="before an action that is said twice"),
        pytest.param(
            SCROLL,
            f"{WORDS}In summary, the next action I will perform is ```scroll_at [130] [215] [0] [100]```",
            id="in a sentence before an action in id style",
        ),
        pytest.param(MAZE, f"{WORDS}<answer>RRRRRDDDDD</answer>", id="beside a path"),
    ],
)
def test_a_thought_is_not_free_outside_its_tags(target: Target, text: str) -> None:
    """All are right, so the step is easy: 1 + 0.5·0.01 for a thought of T tokens or more."""
    [(total, tokens)] = scored(target, text)
    assert is_right(target, read_completion(text))
    assert 150 <= tokens <= 160
    assert total == pytest.approx(1.005)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        *((target, text) for target, text in SOLVED.values()),
        *((target, f"<think></think>\n<answer>\n{text}\n</answer>") for target, text in SOLVED.values()),
        (POINT, '{"point_2d": [130, 215], "label": "Save as a file"}'),
        (POINT, '```json\n[{"bbox_2d": [100, 200, 160, 230], "label": "Save"}]\n```'),
        (POINT, "x=130, y=215"),
        (POINT, "<point>130 215</point>"),
        (SCROLL, "In summary, the next action I will perform is ```scroll_at [130] [215] [0] [100]```"),
    ],
)
def test_an_answer_alone_is_no_thought(target: Target, text: str) -> None:
    assert extract_thought(target, read_completion(text)) == ""


def test_a_template_that_opens_the_thought_does_not_make_it_the_answer() -> None:
    completion = read_completion("The button spans 100 to 160.</think>\n130 215")
    assert completion.thought == "The button spans 100 to 160."
    assert completion.places == ((130, 215),)
    assert is_right(POINT, completion)


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("a</think>b", "a", "b"),
        ("a</think>b</think>c", "a\nb", "c"),
        ("<think>a</think>b</think>c", "a\nb", "c"),
        ("a</think><think>b</think>c", "a\nb", "c"),
        ("a</think><think>b", "a\nb", ""),
        ("a</think>", "a", ""),
        ("a</think><answer>b</answer>", "a", "b"),
        ("<answer>1 2</answer></think><answer>3 4</answer>", "<answer>1 2</answer>", "3 4"),
    ],
)
def test_a_thought_that_is_closed_and_not_opened_begins_at_the_start(text: str, thought: str, answer: str) -> None:
    completion = read_completion(text)
    assert (completion.thought, completion.answer) == (thought, answer)


texts = st.lists(st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "so ", "130 215", TYPED, "\n"]))


@given(texts.map("".join), st.sampled_from(sorted(SOLVED)))
def test_any_completion_has_a_thought(text: str, name: str) -> None:
    assert len(extract_thought(SOLVED[name][0], read_completion(text))) <= 2 * len(text) + 10
