"""Cross-fitting of the value critic: the fold of each task."""

from __future__ import annotations

from tests.training.trajectories import acted
from training.loop.critics import folds


def test_all_episodes_of_a_task_are_in_one_fold() -> None:
    episodes = [acted(f"t{n}", [(1,)], success=True, seed=seed) for n in range(50) for seed in (0, 1)] * 3
    parts = folds(episodes, 2, seed=1)
    assert 250 > 3 * sum(parts[:100]) > 50
    assert parts == parts[:100] * 3
    assert folds(episodes[40:60], 2, seed=1) == parts[40:60]
    assert folds(episodes, 2, seed=2) != parts
