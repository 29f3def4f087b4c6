"""SSL: `R = C + α·Ŝ`, by hand. A standard deviation of POINT is 10 pixels across and 5 down from (130, 215)."""

from __future__ import annotations

import math
from typing import Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.training.grpo.rewards.examples import CLICK, DRAG, MAZE, POINT, SCROLL, SOLVED, SUDOKU_4, SUDOKU_9, TYPE
from training.grpo.rewards import GridTarget, MazeTarget, Score, StepTarget, Target, read_completion
from training.grpo.rewards.geometry import Box, Point
from training.grpo.rewards.ssl import SslReward, zone_value
from training.tiers import tier_value

BOX = Box(100, 200, 160, 230)
WIDE = Box(100, 200, 170, 230)
"""Centre (135, 215), half sizes 35 and 15: a seventh of the way to the edge is 5 pixels."""


def score(target: Target, text: str, reward: SslReward | None = None) -> Score:
    return (reward or SslReward()).of_group(target, [read_completion(text)])[0]


@pytest.mark.parametrize(
    ("point", "value"),
    [
        pytest.param(Point(130, 215), 1.0, id="centre"),
        pytest.param(Point(139.9, 215), 1.0, id="within one deviation"),
        pytest.param(Point(140, 215), 1.0, id="on one"),  # φ = τ₁ belongs to Z₁
        pytest.param(Point(136, 219), 1.0, id="on one, aslant"),  # (6/30)² + (4/15)² = 1/9
        pytest.param(Point(140.1, 215), 0.75, id="beyond one"),
        pytest.param(Point(130, 225), 0.75, id="on two"),
        pytest.param(Point(118, 207), 0.75, id="on two, aslant"),
        pytest.param(Point(130, 225.1), 0.5, id="beyond two"),
        pytest.param(Point(100, 215), 0.5, id="on three, which is the edge"),
        pytest.param(Point(148, 227), 0.5, id="on three, aslant"),
        pytest.param(Point(148.1, 227.1), 0.25, id="beyond three"),
        pytest.param(Point(160, 230), 0.25, id="corner"),
        pytest.param(Point(160.1, 215), 0.0, id="outside"),
    ],
)
def test_four_zones(point: Point, value: float) -> None:
    assert zone_value(point, BOX) == value


@pytest.mark.parametrize(
    ("point", "value"),
    [
        pytest.param(Point(130, 215), 1.0, id="centre"),
        pytest.param(Point(160, 215), 1.0, id="on three deviations"),
        pytest.param(Point(149, 228), 0.5, id="beyond"),  # (19/30)² + (13/15)² = 1.15
        pytest.param(Point(100, 200), 0.5, id="corner"),
        pytest.param(Point(99, 200), 0.0, id="outside"),
    ],
)
def test_two_zones(point: Point, value: float) -> None:
    """K − 1 = 1 inner bound, at three standard deviations; values 1 and ½."""
    assert zone_value(point, BOX, zones=2) == value


@pytest.mark.parametrize("bound", range(1, 8))
def test_eight_zones(bound: int) -> None:
    """Seven inner bounds, at 3k/7 standard deviations: 5k pixels. Values 1, 7/8 … 1/8."""
    assert zone_value(Point(135 + 5 * bound, 215), WIDE, zones=8) == (9 - bound) / 8
    if bound < 7:
        assert zone_value(Point(135.1 + 5 * bound, 215), WIDE, zones=8) == (8 - bound) / 8
    assert zone_value(Point(100, 230), WIDE, zones=8) == 1 / 8


@given(st.floats(95, 165), st.floats(195, 235))
def test_four_zones_are_those_of_the_levels_of_the_field(x: float, y: float) -> None:
    """App. B.1: 1 less a quarter for every τ_k = exp(−k²/2), k = 1, 2, 3, that φ = exp(−9d²/2) falls below."""
    squared = ((x - 130) / 30) ** 2 + ((y - 215) / 15) ** 2
    assume(all(abs(squared - (k / 3) ** 2) > 1e-6 for k in (1, 2, 3)))
    below = sum(math.exp(-4.5 * squared) < math.exp(-(k**2) / 2) for k in (1, 2, 3))
    inside = 100 <= x <= 160 and 200 <= y <= 230
    assert zone_value(Point(x, y), BOX) == (1 - below / 4 if inside else 0)


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 1), st.integers(2, 16))
def test_zones_are_nested(across: float, down: float, share: float, zones: int) -> None:
    inner = zone_value(Point(130 + 30 * across * share, 215 + 15 * down * share), BOX, zones)
    outer = zone_value(Point(130 + 30 * across, 215 + 15 * down), BOX, zones)
    assert outer <= inner <= 1
    assert (inner * zones) == pytest.approx(round(inner * zones))


TIERED, CONTINUOUS, BINARY = (SslReward(proximity=kind) for kind in ("tiered", "continuous", "none"))
HALF = SslReward(alpha=0.5)


@pytest.mark.parametrize(
    ("text", "reward", "total"),
    [
        pytest.param("130 215", TIERED, 1.2, id="tiered, centre"),
        pytest.param("150 215", TIERED, 1.15, id="tiered, two deviations"),  # 1 + .2·.75
        pytest.param("100 200", TIERED, 1.05, id="tiered, corner"),  # 1 + .2·.25
        pytest.param("161 215", TIERED, 0.0, id="tiered, outside"),
        pytest.param("none", TIERED, 0.0, id="tiered, no point"),
        pytest.param("150 215", HALF, 1.375, id="half, two deviations"),
        pytest.param("150 215", SslReward(zones=2), 1.2, id="two zones, two deviations"),
        pytest.param("130 215", CONTINUOUS, 1.2, id="continuous, centre"),
        pytest.param("150 215", CONTINUOUS, 1 + 0.2 * math.exp(-2), id="continuous, two deviations"),
        pytest.param("161 215", CONTINUOUS, 0.0, id="continuous, outside"),
        pytest.param("150 215", BINARY, 1.0, id="binary, inside"),
        pytest.param("161 215", BINARY, 0.0, id="binary, outside"),
    ],
)
def test_points(text: str, reward: SslReward, total: float) -> None:
    assert score(POINT, text, reward).total == pytest.approx(total)


@pytest.mark.parametrize(
    ("target", "text", "total"),
    [
        pytest.param(CLICK, 'do(action="Click At", x=150, y=215)', 1.15, id="click"),
        pytest.param(CLICK, 'do(action="Right Click At", x=150, y=215)', 0.0, id="click with the wrong button"),
        pytest.param(CLICK, 'do(action="Scroll At", x=130, y=215, dy=1)', 0.0, id="another kind of action"),
        # a drag's proximity is the mean of its two ends: (1 + 0.75) / 2
        pytest.param(DRAG, 'do(action="Drag At", x=10, y=20, to_x=150, to_y=215)', 1.175, id="drag"),
        pytest.param(SCROLL, "scroll_at [150] [215] [0] [100]", 1.15, id="scroll"),
        # Table 5: where nothing is pointed at, the proximity is the correctness
        pytest.param(TYPE, 'do(action="Type", argument="Ada L.", element="7")', 1.2, id="type"),
        pytest.param(TYPE, 'do(action="Type", argument="Ada", element="7")', 0.0, id="type something else"),
        pytest.param(
            StepTarget(action=CLICK.action), 'do(action="Click At", x=130, y=215)', 1.2, id="click without a place"
        ),
        pytest.param(
            StepTarget(action=CLICK.action), 'do(action="Click At", x=131, y=215)', 0.0, id="click beside the point"
        ),
    ],
)
def test_steps(target: StepTarget, text: str, total: float) -> None:
    assert score(target, text).total == pytest.approx(total)


@pytest.mark.parametrize(
    ("path", "correct", "tiered", "continuous"),
    [
        pytest.param("RRRRRDDDDD", 1, 1, 1, id="the reference"),
        # Two by two cells a block. Top row of blocks: 2, 2 and 1 of 4 match; middle: 2, 4, 2; bottom: 1, 2, 2.
        # Tiers: six times 2/3, twice 1/3, once 1; shares: six times ½, twice ¼, once 1.
        pytest.param("DDDDDRRRRR", 1, (4 + 2 / 3 + 1) / 9, 4.5 / 9, id="the other way"),
        # As the reference up to (3, 5): in the last block 2 of 4 match. Five letters of ten in the right corner.
        pytest.param("RRRRRDDD", 0, (8 + 2 / 3) / 9, 8.5 / 9, id="short of the goal"),
        pytest.param("no way", 0, 0, 0, id="no path"),
    ],
)
def test_mazes(path: str, correct: float, tiered: float, continuous: float) -> None:
    assert score(MAZE, path).total == pytest.approx(correct + 0.2 * tiered)
    assert score(MAZE, path, CONTINUOUS).total == pytest.approx(correct + 0.2 * continuous)
    assert score(MAZE, path, BINARY).total == correct
    assert score(MAZE, path).parts == pytest.approx({"correct": correct, "proximity": continuous, "worth": tiered})


def test_a_right_path_beats_a_wrong_one_that_is_nearer_to_the_reference() -> None:
    assert score(MAZE, "DDDDDRRRRR").total > score(MAZE, "RRRRRDDDD").total


@pytest.mark.parametrize(
    ("blanks", "shares", "counts"),
    [
        (1, 1, 1),  # 8 of 9: 1; 8
        (2, 1, 1),  # 7 of 9 = .78: 1; 7
        (3, 2 / 3, 2 / 3),  # 6 of 9 = .67: 2/3; 6
        (4, 2 / 3, 2 / 3),  # 5 of 9 = .56; 5
        (5, 1 / 3, 2 / 3),  # 4 of 9 = .44; 4
        (6, 1 / 3, 1 / 3),  # 3 of 9 = .33; 3
        (7, 0, 1 / 3),  # 2 of 9 = .22; 2
        (9, 0, 1 / 3),
    ],
)
def test_a_sudoku_with_blanks_in_one_square(blanks: int, shares: float, counts: float) -> None:
    """The other eight squares are right: S = (8 + that of the first)/9."""
    rows = [list(row) for row in SUDOKU_9.solution]
    for cell in range(blanks):
        rows[cell // 3][cell % 3] = "0"
    text = "\n".join("".join(row) for row in rows)
    assert score(SUDOKU_9, text).total == pytest.approx(0.2 * (8 + shares) / 9)
    assert score(SUDOKU_9, text, SslReward(blocks="counts")).total == pytest.approx(0.2 * (8 + counts) / 9)
    assert score(SUDOKU_9, text, CONTINUOUS).total == pytest.approx(0.2 * (8 + (9 - blanks) / 9) / 9)


def test_the_blocks_of_a_small_sudoku_are_its_squares() -> None:
    """Its first square, 12/34, is read as 11/11: one of four matches, which is 1/3; three squares are right."""
    assert score(SUDOKU_4, "1134/1112/2143/4321").total == pytest.approx(0.2 * (3 + 1 / 3) / 4)


@pytest.mark.parametrize(
    ("text", "tiered", "continuous"),
    [
        pytest.param("120/340/000", 1, 1, id="right"),
        pytest.param("120/341/000", 8 / 9, 8 / 9, id="a cell wrong"),
        pytest.param("12/34", 4 / 9, 4 / 9, id="smaller"),  # as 122/344/344 against 120/340/000
        pytest.param("0", 5 / 9, 5 / 9, id="one cell"),  # five of nine are 0
    ],
)
def test_grids(text: str, tiered: float, continuous: float) -> None:
    target = GridTarget(rows=("120", "340", "000"))
    correct = float(tiered == 1)
    assert score(target, text).total == pytest.approx(correct + 0.2 * tiered)
    assert score(target, text, CONTINUOUS).total == pytest.approx(correct + 0.2 * continuous)


@pytest.mark.parametrize("proximity", ["tiered", "continuous", "none"])
@pytest.mark.parametrize("name", SOLVED)
def test_the_reference_gets_the_most(name: str, proximity: Literal["tiered", "continuous", "none"]) -> None:
    reward = SslReward(proximity=proximity, alpha=0.3)
    assert reward.max_reward == (1.0 if proximity == "none" else 1.3)
    assert score(*SOLVED[name], reward).total == pytest.approx(reward.max_reward)


@given(st.sampled_from(sorted(SOLVED)), st.text(alphabet="0123456789RDLU /\n.", max_size=40), st.floats(0, 1))
def test_a_wrong_answer_never_gets_more_than_the_weight_of_proximity(name: str, text: str, alpha: float) -> None:
    result = score(SOLVED[name][0], text, SslReward(alpha=alpha))
    assert result.total == pytest.approx(result.parts["correct"] + alpha * result.parts["worth"])
    assert result.total <= alpha or result.parts["correct"] == 1


def test_cells_on_neither_path_are_no_match_where_paths_alone_are_compared() -> None:
    """Of a maze of 3 x 3 each cell is a block. The right path goes over the first row and the last column, 5 cells; the
    answer over two of them: two blocks of five are worth 1, the other three 0. With all cells the four on neither path
    match, too: six of nine."""
    maze = MazeTarget(rows=("S..", "##.", "##G"), path="RRDD")
    completion = read_completion("R")
    for cells, worth in (("paths", 2 / 5), ("all", 6 / 9)):
        (score,) = SslReward.model_validate({"maze_cells": cells}).of_group(maze, [completion])
        assert score.parts["worth"] == pytest.approx(worth)
        (right,) = SslReward.model_validate({"maze_cells": cells}).of_group(maze, [read_completion("RRDD")])
        assert right.total == pytest.approx(1.2)
    (nothing,) = SslReward(maze_cells="paths").of_group(maze, [read_completion("")])
    assert nothing.total == 0


@pytest.mark.parametrize(
    ("proximity", "tier"),
    [
        (1.0, 1.0),
        (0.61, 1.0),
        (0.6, 0.75),
        (0.14, 0.75),
        (0.13, 0.5),
        (0.012, 0.5),
        (0.011, 0.25),
        (1e-9, 0.25),
        (0, 0),
    ],
)
def test_tiers_of_a_proximity(proximity: float, tier: float) -> None:
    """Bounds exp(−1/2) = 0.607, exp(−2) = 0.135, exp(−9/2) = 0.0111 (App. B.1)."""
    assert tier_value(proximity) == tier


@given(st.floats(100, 160), st.floats(200, 230), st.integers(2, 8))
def test_a_trajectory_of_one_step_has_the_tier_of_its_point(x: float, y: float, zones: int) -> None:
    from training.grpo.rewards.geometry import ellipse_distance, gaussian_proximity

    point = Point(x, y)
    bound = ellipse_distance(point, BOX) * 3 * (zones - 1) / 3  # in zones
    assume(abs(bound - round(bound)) > 1e-6)
    assert tier_value(gaussian_proximity(point, BOX), zones) == zone_value(point, BOX, zones)


def test_a_reward_of_nothing_is_rejected() -> None:
    assert SslReward(verifier=False, proximity="gui_g2").max_reward == pytest.approx(0.2)
    with pytest.raises(ValueError, match="every reward would be 0"):
        SslReward(verifier=False, proximity="none")
