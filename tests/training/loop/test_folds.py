"""Cross-fitting of the value critic: who is told by whom."""

from __future__ import annotations

from collections import Counter

from tests.training.trajectories import acted
from training.loop.critics import folds


def test_parts_are_even_and_all_episodes_of_a_task_lie_in_one() -> None:
    episodes = [acted(f"t{n}", [(1,)], success=True, seed=seed) for n in range(5) for seed in (0, 1)] * 3
    parts = folds(episodes, 2, seed=1)
    assert Counter(parts) == {0: 15, 1: 15}
    assert len({(one.task.name, one.task.seed, part) for one, part in zip(episodes, parts, strict=True)}) == 10
    assert folds(episodes, 2, seed=1) == parts
    assert folds(episodes, 2, seed=2) != parts
