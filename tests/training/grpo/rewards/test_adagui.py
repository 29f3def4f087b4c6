"""AdaGUI-R1: difficulty, thought and exploration (Eq. 3 to 11), by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.grpo.rewards.examples import CLICK, DRAG, MAZE, POINT, SCROLL, TYPE, words
from training.grpo.rewards import Target, read_completion
from training.grpo.rewards.adagui import AdaguiReward, difficulty, exploration_reward, sigma, thought_reward
from training.grpo.rewards.geometry import Box, Point

BOX, SCREEN = Box(100, 200, 160, 230), (1000, 500)
"""60 x 30 around (130, 215); the threshold of 0.04 is 40 pixels across and 20 down."""


def totals(reward: AdaguiReward, target: Target, *texts: str) -> list[float]:
    return [score.total for score in reward.of_group(target, [read_completion(text) for text in texts], words)]


@pytest.mark.parametrize(
    ("solved", "five", "two"),
    [
        (0.0, 5, 2),  # max(0, −1) = 0
        (0.2, 5, 2),  # ⌈1⌉ − 1 = 0
        (0.21, 4, 2),  # ⌈1.05⌉ − 1 = 1
        (0.4, 4, 2),
        (0.41, 3, 2),
        (0.5, 3, 2),  # ⌈1⌉ − 1 = 0 of two
        (0.6, 3, 1),  # ⌈1.2⌉ − 1 = 1 of two
        (0.8, 2, 1),
        (0.81, 1, 1),
        (1.0, 1, 1),
    ],
)
def test_difficulty(solved: float, five: int, two: int) -> None:
    assert difficulty(solved) == difficulty(solved, 5) == five
    assert difficulty(solved, 2) == two == 2 - math.ceil(solved - 0.5)


groups = st.integers(1, 64).flatmap(lambda size: st.tuples(st.integers(0, size), st.just(size)))


@given(groups, st.integers(2, 20))
def test_the_difficulty_of_any_group_is_that_of_equation_4_in_whole_numbers(
    group: tuple[int, int], levels: int
) -> None:
    """No share of a group falls into the wrong level because a float is not a fraction."""
    right, size = group
    exact = Fraction(right, size)
    assert difficulty(right / size, levels) == levels - max(0, math.ceil(levels * exact) - 1)
    assert difficulty(right / size, 2) == 2 - math.ceil(exact - Fraction(1, 2))  # §4.3


@pytest.mark.parametrize(
    ("levels", "hard"), [(5, {4, 5}), (2, {2}), (10, {7, 8, 9, 10}), (3, {2, 3}), (20, set(range(13, 21)))]
)
def test_a_level_is_hard_above_three_fifths(levels: int, hard: set[int]) -> None:
    assert {level for level in range(1, levels + 1) if AdaguiReward(levels=levels).is_hard(level)} == hard


@pytest.mark.parametrize(
    ("tokens", "easy", "hard"),
    [
        (0, 1.0, 0.01),
        (25, 0.8550179, 0.1549821),  # (1 − cos 45°)/2 = .1464466; 1 − .99·.1464466
        (50, 0.505, 0.505),  # (1 − cos 90°)/2 = ½
        (75, 0.1549821, 0.8550179),
        (100, 0.01, 1.0),
        (101, 0.01, 1.0),
        (200, 0.01, 1.0),
    ],
)
def test_thought_reward(tokens: int, easy: float, hard: float) -> None:
    assert thought_reward(tokens, 100, hard=False) == pytest.approx(easy)
    assert thought_reward(tokens, 100, hard=True) == pytest.approx(hard)
    assert thought_reward(2 * tokens, 200, hard=True) == pytest.approx(hard)


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 300))
def test_thoughts_are_short_where_it_is_easy_and_long_where_it_is_hard(one: int, more: int, longest: int) -> None:
    easy, hard = (thought_reward(one, longest, hard=is_hard) for is_hard in (False, True))
    assert min(easy, hard) + 1e-12 >= 0.01 and max(easy, hard) <= 1 + 1e-12
    assert easy + hard == pytest.approx(1.01)  # max + min
    assert thought_reward(one + more, longest, hard=True) >= hard
    assert thought_reward(one + more, longest, hard=False) <= easy


@pytest.mark.parametrize(
    ("level", "levels", "expected"),
    [(1, 5, 0.32), (3, 5, 0.56), (5, 5, 0.8), (1, 2, 0.5), (2, 2, 0.8), (5, 10, 0.5), (10, 10, 0.8)],
)
def test_sigma(level: int, levels: int, expected: float) -> None:
    assert sigma(level, levels) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("point", "sigma", "scale", "expected"),
    [
        pytest.param(Point(130, 215), 0.32, "element", 1.0, id="centre"),
        # 30 of 60 across: .25/(2·.64) = .1953, .25/(2·.1024) = 1.2207
        pytest.param(Point(160, 215), 0.8, "element", math.exp(-0.1953125), id="edge, hard"),
        pytest.param(Point(160, 215), 0.32, "element", math.exp(-1.220703125), id="edge, easy"),
        # 15 of 60 and 15 of 30: 1/16 + 1/4 = .3125, and on the screen .015² + .03² = .001125, within .0016
        pytest.param(Point(145, 230), 0.8, "element", math.exp(-0.3125 / 1.28), id="aslant"),
        pytest.param(Point(145, 230), 0.8, "screen", math.exp(-0.001125 / 1.28), id="aslant, on the screen"),
        # 40 of 1000 is the threshold; of the element it is 2/3
        pytest.param(Point(170, 215), 0.8, "element", math.exp(-4 / 9 / 1.28), id="threshold, beside the box"),
        pytest.param(Point(170, 215), 0.2, "screen", math.exp(-0.02), id="threshold, on the screen"),
        pytest.param(
            Point(130, 235), 0.8, "element", math.exp(-4 / 9 / 1.28), id="threshold, down"
        ),  # 20 of 500 and 30
        pytest.param(Point(170.1, 215), 0.8, "element", 0.0, id="beyond"),
        pytest.param(Point(130, 235.1), 0.8, "screen", 0.0, id="beyond, down"),
        pytest.param(Point(160, 232), 0.8, "element", 0.0, id="beyond, aslant"),  # .03² + .034² > .04²
    ],
)
def test_exploration_reward(point: Point, sigma: float, scale: Literal["element", "screen"], expected: float) -> None:
    assert exploration_reward(point, BOX, SCREEN, sigma, scale=scale) == pytest.approx(expected)


@given(
    st.floats(0, 0.0399),
    st.floats(0, 2 * math.pi),
    st.integers(2, 20).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))),
)
def test_on_the_screens_scale_the_reward_is_flat(away: float, angle: float, level: tuple[int, int]) -> None:
    """exp(−.04²/(2·.2²)) = e^−.02 = .9802 is the least within the threshold."""
    point = Point(130 + 1000 * away * math.cos(angle), 215 + 500 * away * math.sin(angle))
    assert 0.98 <= exploration_reward(point, BOX, SCREEN, sigma(*level), scale="screen") <= 1


@given(st.floats(0, 39), st.floats(0, 39))
def test_exploration_reward_is_narrower_on_easy_steps(one: float, other: float) -> None:
    near, far = sorted((one, other))
    for level in range(1, 6):
        rewards = [exploration_reward(Point(130 + x, 215), BOX, SCREEN, sigma(level)) for x in (near, far)]
        assert rewards[0] >= rewards[1]
    easy, hard = (exploration_reward(Point(130 + far, 215), BOX, SCREEN, sigma(level)) for level in (1, 5))
    assert easy <= hard


TYPED, WRONG = 'do(action="Type", argument="Ada L.", element="7")', 'do(action="Type", argument="x", element="7")'


def thinking(tokens: int, answer: str) -> str:
    return f"<think>{'so ' * tokens}</think><answer>{answer}</answer>"


def test_an_easy_step_rewards_short_thoughts() -> None:
    """Three of five are right: level 3. Right and no thought 1 + .5·1, right and 50 tokens 1 + .5·.505, right and 150
    tokens 1 + .5·.01; wrong .5; what holds no action gets nothing."""
    texts = thinking(0, TYPED), thinking(50, TYPED), thinking(150, TYPED), thinking(0, WRONG), thinking(0, "type it")
    assert totals(AdaguiReward(), TYPE, *texts) == pytest.approx([1.5, 1.2525, 1.005, 0.5, 0])


def test_a_hard_step_rewards_long_thoughts() -> None:
    """Two of five are right: level 4."""
    texts = (
        thinking(0, TYPED),
        thinking(100, TYPED),
        thinking(50, WRONG),
        thinking(150, WRONG),
        thinking(150, "type it"),
    )
    assert totals(AdaguiReward(), TYPE, *texts) == pytest.approx([1.005, 1.5, 0.2525, 0.5, 0])


@pytest.mark.parametrize(
    "hidden",
    [
        pytest.param(f"<think>{'so ' * 150}<answer>{TYPED}</answer>", id="in a thought that is not closed"),
        pytest.param(f"<think></think><think>{'so ' * 150}</think><answer>{TYPED}</answer>", id="in a second thought"),
    ],
)
def test_on_easy_steps_a_long_thought_is_rewarded_less_than_none(hidden: str) -> None:
    assert totals(AdaguiReward(), TYPE, thinking(0, TYPED), thinking(0, TYPED), hidden)[2] < 1.5


def test_parts_of_a_score() -> None:
    scores = AdaguiReward().of_group(TYPE, [read_completion(thinking(50, text)) for text in (TYPED, WRONG)], words)
    assert scores[0].parts == pytest.approx(
        {"correct": 1, "action": 1, "thought": 0.505, "thought_tokens": 50, "level": 3}
    )
    assert scores[1].parts == pytest.approx(
        {"correct": 0, "action": 0, "thought": 0.505, "thought_tokens": 50, "level": 3}
    )


def test_delta_thoughts() -> None:
    """Eq. 9: easy if shorter than T/2 = 50, hard if longer."""
    easy = [thinking(tokens, TYPED) for tokens in (0, 49, 50, 51)]
    assert totals(AdaguiReward(thought="delta"), TYPE, *easy) == pytest.approx([1.5, 1.5, 1, 1])
    hard = [thinking(tokens, WRONG) for tokens in (0, 49, 50, 51)]
    assert totals(AdaguiReward(thought="delta"), TYPE, *hard) == pytest.approx([0, 0, 0, 0.5])


def test_thoughts_by_accuracy() -> None:
    """Eq. 10, ρ = ¼: ¾·(1 − e^(−t/T)) + ¼·e^(−t/T); ¼ without a thought, .56606 at T tokens."""
    texts = thinking(0, TYPED), thinking(0, WRONG), thinking(100, WRONG), thinking(100, WRONG)
    at_t = 0.75 * (1 - math.exp(-1)) + 0.25 * math.exp(-1)
    assert at_t == pytest.approx(0.56606, abs=1e-5)
    assert totals(AdaguiReward(thought="accuracy"), TYPE, *texts) == pytest.approx([1.125, 0.125, at_t / 2, at_t / 2])


def test_without_a_thought_reward_only_the_action_counts() -> None:
    reward = AdaguiReward(thought="none")
    assert reward.max_reward == 1
    assert totals(reward, TYPE, thinking(0, TYPED), thinking(99, TYPED), thinking(0, WRONG)) == [1, 1, 0]


def test_the_weight_and_length_of_thoughts_can_be_set() -> None:
    reward = AdaguiReward(thought_weight=0.2, thought_tokens=10)
    assert reward.max_reward == 1.2
    assert totals(reward, TYPE, thinking(5, TYPED), thinking(10, TYPED)) == pytest.approx([1.101, 1.002])


PLAIN = AdaguiReward(thought="none")


def test_a_click_is_worth_where_it_lands() -> None:
    """Of four points two are in the box: ρ = ½, level 3, σ = .56, 2σ² = .6272. Spreads: 0; 30/60; 40/60; too far."""
    expected = [1, math.exp(-0.25 / 0.6272), math.exp(-4 / 9 / 0.6272), 0]
    points = (130, 215), (160, 215), (170, 215), (171, 215)
    assert totals(PLAIN, POINT, *(f"{x} {y}" for x, y in points)) == pytest.approx(expected)
    clicks = [f'do(action="Click At", x={x}, y={y})' for x, y in points]
    assert totals(PLAIN, CLICK, *clicks) == pytest.approx(expected)


def test_a_click_in_a_hard_step_may_be_less_exact() -> None:
    """None is in the box: level 5, σ = .8; one of two is: level 3; both: level 1, σ = .32."""
    assert totals(PLAIN, POINT, "170 215") == pytest.approx([math.exp(-4 / 9 / 1.28)])
    assert totals(PLAIN, POINT, "160 215", "0 0")[0] == pytest.approx(math.exp(-0.25 / 0.6272))
    assert totals(PLAIN, POINT, "160 215", "130 215")[0] == pytest.approx(math.exp(-0.25 / 0.2048))


def test_a_click_on_the_screens_scale() -> None:
    """One of two is in the box: level 3."""
    reward = AdaguiReward(thought="none", scale="screen")
    assert totals(reward, POINT, "160 215", "170 215") == pytest.approx(
        [math.exp(-0.0009 / 0.6272), math.exp(-0.0016 / 0.6272)]
    )


def test_a_click_in_a_box() -> None:
    """Eq. 11."""
    reward = AdaguiReward(thought="none", click="box")
    assert totals(reward, POINT, "100 200", "130 215", "161 215", "nowhere") == [1, 1, 0, 0]


def test_other_actions_are_right_or_wrong() -> None:
    drag = 'do(action="Drag At", x=10, y=20, to_x={}, to_y=215)'
    assert totals(PLAIN, DRAG, drag.format(101), drag.format(161)) == [1, 0]
    assert totals(PLAIN, SCROLL, "scroll_at [101] [215] [0] [100]", "scroll_at [130] [215] [0] [-100]") == [1, 0]
    assert totals(PLAIN, MAZE, "DDDDDRRRRR", "RRRRR") == [1, 0]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param('do(action="Right Click At", x=130, y=215)', id="right button"),
        pytest.param('do(action="Double Click At", x=130, y=215)', id="two clicks"),
        pytest.param('do(action="Drag At", x=130, y=215, to_x=130, to_y=215)', id="drag"),
        pytest.param("130 215", id="no action"),
    ],
)
def test_a_wrong_action_at_the_right_point_gets_less_than_the_right_one(wrong: str) -> None:
    result = totals(PLAIN, CLICK, 'do(action="Click At", x=130, y=215)', wrong)
    assert result[0] == 1
    assert result[1] < 1


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 150)), min_size=1, max_size=10))
def test_a_wrong_action_is_rewarded_less_than_a_correct_one(group: list[tuple[bool, int]]) -> None:
    reward = AdaguiReward(thought_weight=1)
    result = totals(reward, TYPE, *(thinking(tokens, TYPED if right else WRONG) for right, tokens in group))
    for total, (right, _) in zip(result, group, strict=True):
        assert 1.01 <= total + 1e-9 <= 2 + 1e-9 if right else 0 <= total <= 1
