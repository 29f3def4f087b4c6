"""The heat map of a few synthetic episodes and its three metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from scipy.stats import spearmanr

from judges.trace_ratings import Observed
from training.loop.evaluation.milestones import in_order, milestone_progress


def episode(*reached: int | None, steps: int = 3) -> Observed:
    names = tuple(f"m{k}" for k in range(len(reached)))
    z = tuple(step is not None for step in reached)
    return Observed(
        task="s/t", milestones=names, texts=names, z=z, reached=reached, steps=steps, success=all(z)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("reached", "expected"),
    [
        ((1, 2, 3), 3),
        ((2, 2, 5), 3),  # two in one step are in order
        ((0, 1, None), 2),  # 0: done from the start
        ((None, 1, 2), 0),  # the first was never done
        ((1, None, 2), 1),  # a gap ends it
        ((2, 1, 3), 1),  # the second came before the first
        ((3, 3, 1), 2),
        ((None,), 0),
        ((7,), 1),
    ],
)
def test_milestones_done_in_order_from_the_first(reached: Sequence[int | None], expected: int) -> None:
    assert in_order(reached) == expected


def test_a_heat_map_computed_by_hand() -> None:
    progress = milestone_progress([episode(1, 2, 3), episode(1, None, 2), episode(2, 1, None)], ["a", "b", "c"])
    third = 1 / 3
    expected = [(0, 2 * third, 1, 1), (0, third, 2 * third, 2 * third), (0, 0, third, 2 * third)]
    assert [tuple(row) for row in progress.heat.rows] == [pytest.approx(row) for row in expected]
    assert [item.mean_step for item in progress.milestones] == pytest.approx([4 / 3, 1.5, 2.5])
    assert [item.done.value for item in progress.milestones] == pytest.approx([1, 2 / 3, 2 / 3])
    assert progress.diagonal.value == pytest.approx((1 + third + third) / 3)
    assert progress.order == 1.0
    assert progress.all_done.value == pytest.approx(third)


def test_a_diagonal_map_scores_one_and_a_band_scores_low() -> None:
    diagonal = milestone_progress([episode(1, 2, 3, 4)] * 3, ["a", "b", "c"])
    band = milestone_progress([episode(1, None, None, None)] * 3, ["a", "b", "c"])
    assert (diagonal.diagonal.value, diagonal.order, diagonal.all_done.value) == (1.0, 1.0, 1.0)
    assert (band.diagonal.value, band.order, band.all_done.value) == (0.25, None, 0.0)


def test_tasks_with_fewer_milestones_are_not_in_the_later_rows() -> None:
    progress = milestone_progress([episode(1), episode(1, 2)], ["a", "b"])
    assert [item.traces for item in progress.milestones] == [2, 1]
    assert progress.milestones[1].done.value == 1.0


@pytest.mark.parametrize("steps", [(1, 2, 3, 4), (4, 3, 2, 1), (1, 3, 2, 4), (2, 2, 5, 1)])
def test_order_is_spearmans(steps: tuple[int, ...]) -> None:
    progress = milestone_progress([episode(*steps, steps=6)], ["a"])
    expected: Any = spearmanr(range(4), steps)
    assert progress.order == pytest.approx(expected.statistic)


def test_no_episode_has_no_numbers() -> None:
    progress = milestone_progress([], [])
    assert (progress.traces, progress.diagonal.value, progress.order, progress.all_done.value) == (0, None, None, None)
    assert progress.heat.rows == ()
