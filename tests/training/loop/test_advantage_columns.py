"""The rows that an arm selects, and diverged advantages."""

from __future__ import annotations

import math

import pytest

from tests.training.trajectories import acted, rows_of
from training.engine.trainer import TrainingDiverged
from training.loop.advantage_columns import RowSelection, check_advantages, select_rows

EPISODES = (
    acted("won", ((1,), (2,)), success=True),
    acted("lost", ((3,), (4,)), success=False),
    acted("lucky", ((5,), (6,)), success=True),
    acted("close", ((7,), (8,)), success=False),
)
ROWS = rows_of(EPISODES)
ADVANTAGES = (0.2, -0.1, 0.3, -0.4, 0.5, 0.0, -0.2, 0.1)
VALUES = (0.9, 0.9, 0.6, 0.6, 0.1, 0.1, 0.05, 0.05)


def test_the_rows_that_each_arm_selects() -> None:
    def kept(how: str) -> list[int]:
        return select_rows(how, ROWS, EPISODES, ADVANTAGES, VALUES)  # type: ignore[arg-type]

    assert kept("all") == list(range(8))
    assert kept("successes") == [0, 1, 4, 5]
    assert kept("positive") == [0, 2, 4, 7]
    # outcome - V(s_0): won 0.1, lost -0.6, lucky 0.9, close -0.05; the better half are lucky and won
    assert kept("digirl") == [0, 4]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -21.0])
def test_a_diverged_advantage_is_named(bad: float) -> None:
    check_advantages(ADVANTAGES, ROWS, EPISODES, 20.0)
    wrong = (*ADVANTAGES[:5], bad, *ADVANTAGES[6:])
    with pytest.raises(
        TrainingDiverged, match=r"step 2 of episode lucky-0 \(run r\) is .*beyond 20.*lower their learning rates"
    ):
        check_advantages(wrong, ROWS, EPISODES, 20.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("keep", ["all", "successes", "positive", "digirl"])
def test_a_row_without_a_finite_advantage_is_counted_and_left_out(bad: float, keep: RowSelection) -> None:
    """One of 16 rows: less than a tenth."""
    rows, episodes = rows_of((*EPISODES, *EPISODES)), (*EPISODES, *EPISODES)
    advantages = (bad, *ADVANTAGES[1:], *ADVANTAGES)
    assert check_advantages(advantages, rows, episodes, 20.0) == 1
    finite = (1.0, *ADVANTAGES[1:], *ADVANTAGES)
    before = select_rows(keep, rows, episodes, finite, (*VALUES, *VALUES))
    after = select_rows(keep, rows, episodes, advantages, (*VALUES, *VALUES))
    assert 0 in before and after == [place for place in before if place != 0]


def test_failures_from_the_key_step_leave_out_the_steps_before_it() -> None:
    """`close` and `lost` gain their first milestone with their first action; a success keeps every step."""
    analysed = tuple(
        one if one.success else one.model_copy(update={"key_step": 2 if one.episode_id == "lost-0" else 1})
        for one in EPISODES
    )
    by_key = select_rows("all", ROWS, analysed, ADVANTAGES, VALUES, failures_from="key_step")
    assert by_key == [0, 1, 3, 4, 5, 6, 7], "of lost, whose key step is its second, the first is left out"
    by_milestone = select_rows("positive", ROWS, analysed, ADVANTAGES, VALUES, failures_from="last_milestone")
    assert by_milestone == [0, 4, 7]
