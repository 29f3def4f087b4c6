"""GuirlVG: formats (Alg. 1 and 3) and accuracies (App. A.3.3), by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.core.errors import BadInput
from tests.training.grpo.rewards.examples import CLICK, MAZE, POINT, SOLVED
from training.grpo.rewards import PointTarget, Score, Target, read_completion
from training.grpo.rewards.guirlvg import Accuracy, GuirlvgReward, soft_format, strict_format


def score(target: Target, text: str, reward: GuirlvgReward) -> Score:
    return reward.of_group(target, [read_completion(text)])[0]


@pytest.mark.parametrize(
    ("text", "total"),
    [
        # Twice the reward: ½ for each tag of a thought; 2/3 for a block and 1/3 for its two numbers, or 1/3 for one tag
        pytest.param("t 10 20", 0, id="no tag"),
        pytest.param("t<answer>10 20", 1 / 6, id="<answer>"),
        pytest.param("t 10 20</answer>", 1 / 6, id="</answer>"),
        pytest.param("t<answer>10 20</answer>", 1 / 2, id="<answer> </answer>"),
        pytest.param("<think>t 10 20", 1 / 4, id="<think>"),
        pytest.param("<think>t<answer>10 20", 1 / 4 + 1 / 6, id="<think> <answer>"),
        pytest.param("<think>t 10 20</answer>", 1 / 4 + 1 / 6, id="<think> </answer>"),
        pytest.param("<think>t<answer>10 20</answer>", 3 / 4, id="<think> <answer> </answer>"),
        pytest.param("t</think> 10 20", 1 / 4, id="</think>"),
        pytest.param("t</think><answer>10 20", 1 / 4 + 1 / 6, id="</think> <answer>"),
        pytest.param("t</think> 10 20</answer>", 1 / 4 + 1 / 6, id="</think> </answer>"),
        pytest.param("t</think><answer>10 20</answer>", 3 / 4, id="</think> <answer> </answer>"),
        pytest.param("<think>t</think> 10 20", 1 / 2, id="<think> </think>"),
        pytest.param("<think>t</think><answer>10 20", 1 / 2 + 1 / 6, id="<think> </think> <answer>"),
        pytest.param("<think>t</think> 10 20</answer>", 1 / 2 + 1 / 6, id="<think> </think> </answer>"),
        pytest.param("<think>t</think><answer>10 20</answer>", 1, id="all"),
        pytest.param("", 0, id="nothing"),
        pytest.param("</answer>10 20<answer>", 1 / 6, id="no block"),
        pytest.param("</think>t<think><answer>10 20</answer>", 1, id="only the presence of the thought's tags counts"),
    ],
)
def test_soft_format(text: str, total: float) -> None:
    assert soft_format(read_completion(text)) == pytest.approx(total)


@pytest.mark.parametrize(
    ("inside", "two", "four"),
    [
        ("", 2 / 3, 2 / 3),
        ("there", 2 / 3, 2 / 3),
        ("10", 2 / 3, 2 / 3),
        ("10, 20", 1, 2 / 3),
        ("(10.5, -20)", 1, 2 / 3),
        ("10 20 30", 2 / 3, 2 / 3),
        ("[10, 20, 30, 40]", 2 / 3, 1),
    ],
    ids=repr,
)
def test_an_answer_needs_as_many_numbers_as_the_prediction_has(inside: str, two: float, four: float) -> None:
    """No thought: half of what the answer is worth."""
    completion = read_completion(f"at 7: <answer>{inside}</answer> or 8")
    assert soft_format(completion) == pytest.approx(two / 2)
    assert soft_format(completion, numbers=4) == pytest.approx(four / 2)


def test_numbers_count_only_inside_the_block() -> None:
    """Alg. 3, line 11: "exactly two numbers found inside the block"; (½ + ½ + 2/3)/2."""
    assert soft_format(read_completion("<think><answer>x</answer></think> 10 20")) == pytest.approx(5 / 6)


@given(st.text() | st.lists(st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "1 "])).map("".join))
def test_a_soft_format_is_a_share(text: str) -> None:
    assert 0 <= soft_format(read_completion(text)) <= 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("<think>t</think><answer>10 20</answer>", 1, id="paper format"),
        pytest.param("<think>t\nu</think>\n \n<answer>10\n20</answer>", 1, id="on many lines"),
        pytest.param("<think></think><answer></answer>", 1, id="empty"),
        pytest.param("<think>t</think> so <answer>10 20</answer>", 0, id="words between"),
        pytest.param("<answer>10 20</answer><think>t</think>", 0, id="the wrong way round"),
        pytest.param("<answer>10 20</answer>", 0, id="no thought"),
        pytest.param("<think>t</think>", 0, id="no answer"),
        pytest.param("<think>t</think><answer>10 20", 0, id="an open answer"),
        pytest.param("<think>t<answer>10 20</answer>", 0, id="an open thought"),
        pytest.param("", 0, id="nothing"),
    ],
)
def test_strict_format(text: str, expected: float) -> None:
    assert strict_format(read_completion(text)) == expected


@pytest.mark.parametrize(
    ("accuracy", "answer", "expected"),
    [
        pytest.param("in_box", "160 230", 1, id="in the box"),
        pytest.param("in_box", "161 230", 0, id="not in the box"),
        pytest.param("in_box", "there", 0, id="in the box: no point"),
        pytest.param("distance", "130 215", 1, id="at the centre"),
        pytest.param("distance", "210 215", 1, id="80 pixels across"),
        pytest.param("distance", "178 279", 1, id="80 pixels aslant"),  # 48² + 64² = 80²
        pytest.param("distance", "210.1 215", 0, id="more than 80 pixels"),
        pytest.param("distance", "there", 0, id="distance: no point"),
        # 60 x 30 is right. Its left half: 900 of 1800; a column more: 930 of 1800
        pytest.param("iou", "100 200 160 230", 1, id="the same box"),
        pytest.param("iou", "100 200 130 230", 0.5, id="half of it"),
        pytest.param("iou", "100 200 131 230", 31 / 60, id="more than half of it"),
        pytest.param("iou", "130 200 190 230", 900 / 2700, id="half beside it"),
        pytest.param("iou", "0 0 10 10", 0, id="another box"),
        pytest.param("iou", "160 230 100 200", 0, id="its corners the wrong way round"),
        pytest.param("iou", "130 215", 0, id="a point is no box"),
        pytest.param("iou_half", "100 200 160 230", 1, id="half: the same box"),
        pytest.param("iou_half", "100 200 130 230", 0, id="half: not more than half"),
        pytest.param("iou_half", "100 200 131 230", 1, id="half: more than half"),
    ],
)
def test_accuracy(accuracy: Accuracy, answer: str, expected: float) -> None:
    result = score(POINT, f"<answer>{answer}</answer>", GuirlvgReward(format="none", accuracy=accuracy))
    assert result.total == result.parts["accuracy"] == pytest.approx(expected)


TRIVIAL = GuirlvgReward(format="strict", accuracy="iou_half")
"""The paper's first row (§3.1, App. A.1). The right box is (100, 200, 160, 230), 60 x 30 = 1800 pixels."""


@pytest.mark.parametrize(
    ("text", "shape", "accuracy"),
    [
        # Format, Alg. 1: `<think>.*?</think>\s*<answer>.*?</answer>`, and "exactly matches the pattern" (§3.1).
        # Accuracy, Alg. 2: `<answer>(.*)</answer>`, in it `\[(\d+),\s*(\d+),\s*(\d+),\s*(\d+)\]`, IoU above ½.
        pytest.param("<think>t</think><answer>[100, 200, 160, 230]</answer>", 1, 1, id="paper format"),
        pytest.param("<think>t</think>\n<answer>[100,200,160,230]</answer>", 1, 1, id="no white space, a line break"),
        pytest.param(
            '<think>t</think><answer>{"bbox_2d": [100, 200, 160, 230], "label": "x"}</answer>', 1, 1, id="bbox_2d"
        ),
        pytest.param(
            '<think>t</think><answer>```json\n[{"bbox_2d": [100, 200, 160, 230]}]\n```</answer>', 1, 1, id="a fence"
        ),
        pytest.param("[100, 200, 160, 230]", 0, 0, id="no tags"),
        pytest.param("<think>t</think>[100, 200, 160, 230]", 0, 0, id="no answer tags"),
        pytest.param("<think>t</think><answer>[100, 200, 160, 230]", 0, 0, id="an answer that is not closed"),
        pytest.param("<answer>[100, 200, 160, 230]</answer>", 0, 1, id="no thought"),
        pytest.param("Sure! <think>t</think><answer>1 2</answer> bye", 0, 0, id="words around, no box"),
        pytest.param("Sure! <think>t</think><answer>[100, 200, 160, 230]</answer>", 0, 1, id="words before"),
        pytest.param("<think>t</think><answer>[100, 200, 160, 230]</answer> bye", 0, 1, id="words behind"),
        pytest.param("<think>t</think><answer>(100, 200, 160, 230)</answer>", 1, 0, id="a tuple, §3.2"),
        pytest.param("<think>t</think><answer>100 200 160 230</answer>", 1, 0, id="no brackets"),
        pytest.param("<think>t</think><answer>[100.0, 200.0, 160.0, 230.0]</answer>", 1, 0, id="no whole numbers"),
        pytest.param("<think>t</think><answer>[130, 215]</answer>", 1, 0, id="a point"),
        pytest.param("<think>t</think><answer>[100, 200, 160, 230, 1]</answer>", 1, 0, id="five numbers"),
        pytest.param("<think>t</think><answer>[100, 200, 130, 230]</answer>", 1, 0, id="half of it: 900 of 1800"),
        pytest.param("<think>t</think><answer>[100, 200, 131, 230]</answer>", 1, 1, id="more: 930 of 1800"),
        pytest.param("<think>t</think><answer>in [100, 200, 160, 230] of 2</answer>", 1, 1, id="in a sentence"),
        pytest.param("<think>[100, 200, 160, 230]</think><answer>there</answer>", 1, 0, id="only thought of"),
        pytest.param("<think>t</think><answer>there</answer><answer>[100, 200, 160, 230]</answer>", 1, 1, id="greedy"),
        pytest.param("", 0, 0, id="nothing"),
    ],
)
def test_the_trivial_row_is_that_of_algorithms_1_and_2(text: str, shape: float, accuracy: float) -> None:
    result = score(POINT, text, TRIVIAL)
    assert (result.parts["format"], result.parts["accuracy"], result.total) == (shape, accuracy, shape + accuracy)


@pytest.mark.parametrize(
    "text",
    [
        "100 200 160 230",
        "<answer>(100, 200, 160, 230)</answer>",
        '<answer>{"bbox_2d": [100, 200, 160, 230]}</answer>',
        "[100.0, 200.0, 160.0, 230.0]",
    ],
)
def test_the_soft_reward_ignores_how_a_box_is_written(text: str) -> None:
    """§3.2: "SRF ignores style and simply extracts numeric values"."""
    assert score(POINT, text, GuirlvgReward(accuracy="iou_half")).parts["accuracy"] == 1


@pytest.mark.parametrize(
    ("answer", "numbers"), [('{"point_2d": [130, 215]}', 2), ('[{"bbox_2d": [100, 200, 160, 230]}]', 4)]
)
def test_the_digit_of_a_key_is_not_one_of_the_numbers(answer: str, numbers: int) -> None:
    """Alg. 3, line 11: (½ + ½ + 2/3 + 1/3)/2."""
    assert soft_format(read_completion(f"<think></think><answer>{answer}</answer>"), numbers) == pytest.approx(1)


def test_how_near_is_near_can_be_set() -> None:
    reward = GuirlvgReward(format="none", accuracy="distance", near_pixels=5)
    assert [score(POINT, text, reward).total for text in ("133 219", "133 219.1")] == [1, 0]  # 3² + 4² = 5²


@pytest.mark.parametrize(
    ("reward", "text", "total"),
    [
        pytest.param(GuirlvgReward(), "<think>t</think><answer>130 215</answer>", 2, id="soft"),
        pytest.param(GuirlvgReward(), "<think>t</think><answer>0 0</answer>", 1, id="soft, wrong"),
        pytest.param(GuirlvgReward(), "130 215", 1, id="soft, no tags"),
        pytest.param(GuirlvgReward(), "<answer>130 215</answer>", 1.5, id="soft, no thought"),
        pytest.param(GuirlvgReward(format="strict"), "<answer>130 215</answer>", 1, id="strict, no thought"),
        pytest.param(GuirlvgReward(format="none"), "<answer>130 215</answer>", 1, id="no format"),
        pytest.param(  # four numbers are what a box has
            GuirlvgReward(accuracy="iou"), "<think>t</think><answer>100 200 130 230</answer>", 1.5, id="soft, box"
        ),
        pytest.param(
            GuirlvgReward(format="strict", accuracy="iou_half"),
            "<think>t</think><answer>[100, 200, 160, 230]</answer>",
            2,
            id="the trivial reward",
        ),
    ],
)
def test_a_reward_is_format_and_accuracy(reward: GuirlvgReward, text: str, total: float) -> None:
    assert score(POINT, text, reward).total == pytest.approx(total)


def test_the_greatest_reward_is_that_of_equation_3_1() -> None:
    assert GuirlvgReward().max_reward == GuirlvgReward(format="strict").max_reward == 2
    assert GuirlvgReward(format="none").max_reward == 1


def test_a_step_may_be_judged_by_whether_it_is_right() -> None:
    text = 'do(action="Click At", x=130, y=215)'
    assert score(CLICK, f"<think>t</think><answer>{text}</answer>", GuirlvgReward()).total == pytest.approx(2)
    assert score(CLICK, text.replace("130", "300"), GuirlvgReward(format="none")).total == 0


@pytest.mark.parametrize("accuracy", ["distance", "iou", "iou_half"])
@pytest.mark.parametrize("target", [CLICK, MAZE], ids=lambda target: target.kind)
def test_a_target_without_a_box_has_no_distance(target: Target, accuracy: Accuracy) -> None:
    with pytest.raises(BadInput, match=f"'{accuracy}' needs targets that are boxes, not '{target.kind}'"):
        score(target, "130 215", GuirlvgReward(accuracy=accuracy))


@given(st.floats(0, 1000), st.floats(0, 500), st.sampled_from(sorted(SOLVED)))
def test_a_wrong_answer_never_gets_what_a_right_one_of_the_same_format_gets(x: float, y: float, name: str) -> None:
    target, right = SOLVED[name]
    reward = GuirlvgReward(format="strict")
    best, result = (
        score(target, f"<think>t</think><answer>{text}</answer>", reward) for text in (right, f"{x:.3f} {y:.3f}")
    )
    assert best.total == 2
    assert result.total == (2 if isinstance(target, PointTarget) and 100 <= x <= 160 and 200 <= y <= 230 else 1)
