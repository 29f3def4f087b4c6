"""Targets of trajectories, against values computed by hand."""

from __future__ import annotations

import pytest

from tests.training.trajectories import trajectory, worded
from training.data.rows import Row
from training.data.trajectories import Trajectory
from training.mira.targets import TargetSettings, row_advantages, row_progress, row_values


def played(*done: int, success: bool = True, milestones: int = 2, completion: str = "") -> Trajectory:
    """An episode with the milestones done at times 0 … T."""
    decisions = worded(*(completion or f"act {step}" for step in range(1, len(done))))
    return trajectory(decisions, success=success, milestones=milestones, done=done)


WON, LOST = played(0, 1, 2), played(0, 1, 1, success=False)
ROWS = [Row((1,), (2,), 1, 1), Row((1,), (2,), 0, 0), Row((1,), (2,), 1, 0), Row((1,), (2,), 0, 1)]
"""Rows of both trajectories, unordered."""


def test_advantages_are_assigned_to_their_rows() -> None:
    """α=.5, γ=.5, λ=0, V=0, P of the success: .2, .6, then 1; the failure is not shaped.

    r' = .5·.4, 1 + .5·.4 = .2, 1.2; G = .2 + .5·1.2 = .8, 1.2
    """
    settings = TargetSettings(alpha=0.5, gamma=0.5, mix=0)
    result = row_advantages([WON, LOST], ROWS, [0.9, 0.2, 0.1, 0.6], [0.0] * 4, settings)
    assert result == pytest.approx((0.0, 0.8, 0.0, 1.2))


def test_failures_are_shaped_only_on_request() -> None:
    """P of the failure: .1, .9, and .9 at its end. r' = .5·.8 = .4, then 0."""
    settings = TargetSettings(alpha=0.5, gamma=0.5, mix=0, shape_failures=True)
    result = row_advantages([WON, LOST], ROWS, [0.9, 0.2, 0.1, 0.6], [0.0] * 4, settings)
    assert result[2] == pytest.approx(0.4) and result[0] == pytest.approx(0.0)


def test_value_targets_are_true_outcomes() -> None:
    assert row_values([WON, LOST], ROWS, TargetSettings()) == pytest.approx((0.0, 0.9, 0.0, 1.0))
    assert row_values([WON, LOST], ROWS, TargetSettings(value_target="outcome")) == (0.0, 1.0, 0.0, 1.0)


def test_progress_is_learned_from_successes_with_milestones() -> None:
    assert row_progress([WON, LOST], ROWS) == {1: 0.0, 3: 0.5}
    rows = [Row((1,), (2,), 0, 0), Row((1,), (2,), 0, 1)]
    assert row_progress([played(0, 0, 0, milestones=0)], rows) == {}


def test_a_trace_that_repeats_one_action_gives_no_progress_labels() -> None:
    rows = [Row((1,), (2,), 0, time) for time in range(6)]
    assert row_progress([played(0, 0, 0, 0, 0, 0, 2, completion="again")], rows) == {}


CLICKS = tuple(f'# Element: the button, look {n}\ndo(action="Click", element="7")' for n in range(6))
OTHERS = tuple(f'# Element: the button\ndo(action="Click", element="{n}")' for n in range(6))
IDS = tuple(f"Look {n}. In summary, the next action I will perform is ```click [7]```" for n in range(6))


@pytest.mark.parametrize(("completions", "kept"), [(CLICKS, False), (IDS, False), (OTHERS, True)])
def test_equal_actions_with_different_notes_are_equal(completions: tuple[str, ...], kept: bool) -> None:
    rows = [Row((1,), (2,), 0, time) for time in range(6)]
    episode = trajectory(worded(*completions), milestones=2, done=(0, 0, 0, 0, 0, 0, 2))
    assert bool(row_progress([episode], rows)) is kept


def test_a_trajectory_without_all_of_its_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="trajectory 0 has 2 decisions"):
        row_values([WON], [Row((1,), (2,), 0, 1)], TargetSettings())
