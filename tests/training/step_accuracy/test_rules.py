"""The rules of the published evaluations, each beside its source."""

from __future__ import annotations

import pytest

from envs.core.actions import Action, Click, ClickAt, Goto, Press, Scroll, Select, Stop, Type, Wait
from training.data_sets import items
from training.grpo.rewards import PointTarget, StepTarget
from training.grpo.rewards.geometry import Box, Point
from training.step_accuracy.rules import (
    StepScore,
    StepType,
    score_element,
    score_step,
    similarity,
    step_type,
    word_f1,
)

SIZE = (1_000, 2_000)


def scored(right: Action, answer: Action | None, box: tuple[float, float, float, float] | None = None) -> StepScore:
    places = () if box is None else (PointTarget(box=box, size=SIZE),)
    return score_step(StepTarget(action=right, places=places), answer, SIZE)


@pytest.mark.parametrize(
    ("x", "y", "near"),
    [
        (500, 1_000, True),
        (639, 1_000, True),  # sqrt(dx² + dy²) <= 0.14 * 1000, "set 14 % of screen size as the ratio"
        (641, 1_000, False),
        (500, 1_279, True),  # each side of the screen is 1,000
        (500, 1_281, False),
        (598, 1_196, True),  # 0.098 * √2 = 0.1386
        (600, 1_200, False),
    ],
)
def test_a_click_may_be_fourteen_percent_of_the_screen_away(x: float, y: float, near: bool) -> None:
    """OS-Atlas, android_control/evaluation_unify.py: `if gt_action_type in ["CLICK","LONG_PRESS"]`."""
    for right, answer in (
        (items.click(500, 1_000), items.click(x, y)),
        (items.long_press(500, 1_000), items.long_press(x, y)),
    ):
        score = scored(right, answer, (400, 900, 600, 1_100))
        assert score.type_right and score.success == near
        assert score.grounded == (near if right.button == "left" else None), "GR counts clicks alone: CLICK_all_match"


def test_a_click_is_exact_in_its_element() -> None:
    """AITZ, `_check_click_`: against the elements of the screen."""
    inside = scored(items.click(500, 1_000), items.click(590, 1_090), (400, 900, 600, 1_100))
    outside = scored(items.click(500, 1_000), items.click(610, 1_000), (400, 900, 600, 1_100))
    assert (inside.exact_match, outside.exact_match, outside.success) == (True, False, True)
    assert scored(Click(ref=3), Click(ref=3)).exact_match and not scored(Click(ref=3), Click(ref=4)).exact_match


def test_a_click_on_an_element_is_grounded_by_its_number() -> None:
    assert [scored(Click(ref=3), Click(ref=ref)).grounded for ref in (3, 4)] == [True, False]
    assert scored(Click(ref=3), items.click(1, 1)).grounded is False


def test_another_type_has_no_grounding() -> None:
    """OS-Atlas: `CLICK_all_match / CLICK_type_match`."""
    score = scored(items.click(500, 1_000), items.long_press(500, 1_000), (400, 900, 600, 1_100))
    assert score == StepScore(StepType.CLICK, False, False, None, False, False)
    assert scored(items.click(500, 1_000), None, (400, 900, 600, 1_100)) == score
    assert scored(items.scroll("up"), items.click(5, 5)).grounded is None


@pytest.mark.parametrize(
    ("answer", "right", "success", "exact"),
    [
        ("Red Lamp", "red lamp", True, False),  # words in any case; AITZ compares letters
        ("red lamp", "lamp red", True, False),
        ("lamp", "red lamp", True, True),  # F1 2/3; a part
        ("red", "red lamp for the desk", False, True),  # F1 1/3 is not above 0.5; a part
        ("the lamps", "the lamp", False, True),  # F1 0.5 is not above 0.5
        ("blue chair", "red lamp", False, False),
        ("", "red lamp", False, False),
    ],
)
def test_texts(answer: str, right: str, success: bool, exact: bool) -> None:
    """OS-Atlas: `calculate_f1_score(...) > 0.5`; AITZ: `pred in gt or gt in pred or Levenshtein.ratio > 0.8`."""
    score = scored(items.typed(right), items.typed(answer))
    assert (score.type_right, score.success, score.exact_match) == (True, success, exact)
    assert scored(items.open_app(right), items.open_app(answer)).success == success
    assert scored(Select(ref=0, option=right), Select(ref=0, option=answer)).success == success


def test_f1_of_words() -> None:
    assert word_f1("a b c", "b c d e") == pytest.approx(2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4))
    assert (word_f1("", "a"), word_f1("a", "b"), word_f1("", "")) == (0, 0, 1)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("abc", "abc", 1), ("abcd", "abxd", 6 / 8), ("hotels", "hostels", 12 / 13), ("ab", "cd", 0), ("", "a", 0)],
)
def test_similarity(first: str, second: str, expected: float) -> None:
    """Levenshtein.ratio: (length of both − insertions and deletions) / length of both."""
    assert similarity(first, second) == similarity(second, first) == pytest.approx(expected)


def test_a_scroll_has_its_direction() -> None:
    """OS-Atlas: `elif gt_action==pred_action`; AITZ: `pd_action_direction == gt_action_direction`."""
    same, other = (
        scored(Scroll(direction="up"), Scroll(direction="up")),
        scored(Scroll(direction="up"), items.scroll("down")),
    )
    assert (same.success, same.exact_match, other.type_right, other.success, other.exact_match) == (
        True,
        True,
        True,
        False,
        False,
    )


def test_keys_are_types_for_os_atlas_and_one_type_for_aitz() -> None:
    """OS-Atlas: PRESS_HOME, PRESS_BACK and PRESS_RECENT are types. AITZ, `action_map`: press, with a button."""
    score = scored(items.HOME, items.BACK)
    assert (score.type_right, score.success, score.type_match, score.exact_match) == (False, False, True, False)
    assert scored(items.BACK, items.BACK) == StepScore(StepType.BACK, True, True, None, True, True)
    assert not scored(Press(keys="a"), Press(keys="b")).exact_match


def test_the_end_of_a_task() -> None:
    """OS-Atlas: COMPLETE and IMPOSSIBLE are types. AITZ: `stop`, always exact."""
    score = scored(items.COMPLETE, items.IMPOSSIBLE)
    assert (score.type_right, score.success, score.type_match, score.exact_match) == (False, False, True, True)
    assert scored(items.COMPLETE, Stop(answer="done")).success
    assert scored(Stop(answer="7"), Stop(answer="7")).success and not scored(Stop(answer="7"), Stop(answer="8")).success
    assert scored(items.IMPOSSIBLE, Stop(answer="N/A: no such app")).success


def test_types() -> None:
    actions: dict[StepType, Action] = {
        StepType.CLICK: ClickAt(x=1, y=1),
        StepType.DOUBLE_CLICK: ClickAt(x=1, y=1, count=2),
        StepType.OPEN_APP: items.open_app("Clock"),
        StepType.OPEN_ADDRESS: Goto(url="https://a.example"),
        StepType.RECENT: items.RECENT,
        StepType.ENTER: items.ENTER,
        StepType.TYPE: Type(ref=3, text=""),
        StepType.WAIT: Wait(),
    }
    assert {step_type(action): action for action in actions.values()} == actions


@pytest.mark.parametrize(
    ("right", "answer", "f1"),
    [
        (items.click(5, 5), items.click(900, 900), 1.0),  # CLICK has no value; the place is Ele.Acc's
        (items.click(5, 5), items.long_press(5, 5), 0.0),
        (items.click(5, 5), items.ENTER, 0.0),
        (items.typed("New York"), items.typed("New York"), 1.0),
        (items.typed("New York"), items.typed("York New"), 1.0),  # sets of words
        (items.typed("New York"), items.typed("new York"), 2 / 3),  # TYPE, York of 3 and 3
        (items.typed("New York"), items.typed("Boston"), 2 / 5),  # TYPE of 2 and 3
        (items.typed("New York"), Select(ref=0, option="New York"), 2 / 3),
        (Select(ref=0, option="Rome"), Select(ref=0, option="Rome"), 1.0),
        (items.typed(""), items.typed(""), 1.0),
        (items.typed("x"), Wait(), 0.0),
        (items.typed("x"), None, 0.0),
    ],
)
def test_the_operation_f1_of_mind2web(right: Action, answer: Action | None, f1: float) -> None:
    """Mind2Web, `calculate_f1`, of texts such as `TYPE New York`."""
    score = score_element(right, [Box(0, 0, 10, 10)], answer, Point(5, 5))
    assert score.operation_f1 == pytest.approx(f1)
    assert score.success == (f1 == 1)


def test_the_element_accuracy_of_mind2web() -> None:
    """SeeClick, `mind2web_test.py`: the edges of the box count; here in the box of any positive candidate."""
    boxes = [Box(0, 0, 10, 10), Box(100, 100, 120, 110)]
    right, answer = items.typed("Rome"), items.typed("Rome")
    for x, y, inside in ((10, 10, True), (11, 10, False), (110, 105, True), (110, 111, False)):
        score = score_element(right, boxes, answer, Point(x, y))
        assert (score.element, score.operation_f1, score.success) == (inside, 1, inside)
    assert not score_element(right, boxes, answer, None).element, "an action without a place"
    assert not score_element(right, boxes, None, Point(5, 5)).element, "a place without an action"
