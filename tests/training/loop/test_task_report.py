"""The report of a phase by task."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.core.errors import BadInput
from tests.training.trajectories import acted
from training.data.cache import write_rows, write_trajectories
from training.data.columns import Column
from training.data.rows import Row
from training.loop.task_report import ALL, by_task


def test_each_task_has_values_and_advantages(tmp_path: Path) -> None:
    new = [acted("a", [(1,), (2,)], success=True), acted("a", [(3,)], success=False, seed=1)]
    replayed = [acted("b", [(4,)], success=True)]
    (tmp_path / "data").mkdir()
    (tmp_path / "actor" / "model").mkdir(parents=True)
    write_trajectories(tmp_path / "data" / "new.parquet", new)
    write_trajectories(tmp_path / "data" / "replayed.parquet", replayed)
    rows = [Row((9,), (1,), 0, 0), Row((9,), (2,), 0, 1), Row((9,), (3,), 1, 0), Row((9,), (4,), 2, 0)]
    columns = {
        Column.VALUE: [0.2, 0.4, 0.5, 0.9],
        Column.ADVANTAGE: [1.0, 0.5, -0.5, 0.1],
        Column.REFERENCE: [-1.0] * 4,
    }
    write_rows(tmp_path / "actor" / "rows.parquet", rows, columns)
    item, other, total = by_task(tmp_path)
    assert (item.task, item.episodes, item.solved) == ("miniwob/a", 2, 1)
    assert item.on_successes is not None and item.on_failures is not None
    assert (item.on_successes.rows, item.on_successes.gain) == (2, None)
    assert item.on_successes.value == pytest.approx(0.3)
    assert item.on_successes.advantage == pytest.approx(0.75)
    assert item.on_failures.advantage == pytest.approx(-0.5)
    assert (other.task, other.solved, other.on_failures) == ("miniwob/b", 1, None)
    assert (total.task, total.episodes, total.solved) == (ALL, 3, 2)
    assert (item.auroc, other.auroc) == (0.0, None), "both states of the success are rated below that of the failure"
    assert total.auroc == pytest.approx(1 / 3), "one of three pairs"


def test_a_phase_without_a_trained_actor_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a phase with a trained actor"):
        by_task(tmp_path / "phase-3")
