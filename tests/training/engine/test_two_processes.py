"""Two processes that each have the full model (DDP, gloo on this machine) train and score as one does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from tests.training.engine.critics import save_critic
from tests.training.engine.fsdp_on_cpu import TWO
from tests.training.engine.kept_processes import KeptProcesses
from tests.training.engine.test_fsdp import assert_fine_tuned_alike
from tests.training.engine.test_trainer import HALF, columns_of, weights_of
from tests.training.engine.test_tree_attention import recurrent
from tests.training.engine.token_rows import rows_of
from training.data.columns import Column
from training.engine import sft
from training.engine.checkpoints import load_policy, load_tokenizer, save_policy
from training.engine.scoring import ScoreKind, score, score_launched
from training.engine.settings import Compute, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.engine.stage_jobs import StageJob, launch, write_job

pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptProcesses]:
    kept = KeptProcesses(TWO, tmp_path_factory.mktemp("two") / "workers", {})
    yield kept
    kept.close()


@pytest.mark.parametrize(("kind", "count"), [("actions", 7), ("states", 1)], ids=["actions", "fewer than processes"])
def test_they_compute_the_same_scores_as_one(two: KeptProcesses, tmp_path: Path, kind: ScoreKind, count: int) -> None:
    compute = Compute(cpu=True, threads=1, pack_tokens=100)
    rows, checkpoint = rows_of(count, longest=40), embedded_dir()
    if kind == "states":
        checkpoint = save_critic(tmp_path / "critic", std=0.02)
    alone = score(kind, checkpoint, rows, compute)
    together = score_launched(kind, checkpoint, rows, compute, folder=tmp_path / "scoring", run=two.run)
    assert together == pytest.approx(alone, abs=1e-4)
    assert len(set(together)) == count
    assert not (tmp_path / "scoring").exists(), "nothing is left"


@pytest.mark.parametrize("kind", ["actor", pytest.param("value", marks=pytest.mark.heavy)])  # test_fsdp.py trains both
def test_they_train_the_same_as_one(two: KeptProcesses, tmp_path: Path, kind: Any) -> None:
    """With checkpoints at every step."""
    rows = rows_of(24, longest=60)
    columns: dict[Column, list[float]] = {Column.TARGET: torch.linspace(0, 1, len(rows)).tolist()}
    if kind == "actor":
        advantage, reference = columns_of(rows, load_policy(embedded_dir())[0])
        columns = {
            Column.ADVANTAGE: advantage.tolist(),
            Column.REFERENCE: reference.tolist(),
            Column.SUCCESS: [1.0] * len(rows),
        }
    job = StageJob(
        kind=kind,
        start=embedded_dir(),
        optimization=Optimization(learning_rate=1e-3, batch_rows=8),
        objective=HALF,
        compute=Compute(cpu=True, threads=1, pack_tokens=150, save_minutes=1e-9),
    )
    for name in ("one", "two"):
        write_job(tmp_path / name, job, rows, columns)
    launch(tmp_path / "one")
    two.run(tmp_path / "two")
    alone, together = weights_of(tmp_path / "one" / "model"), weights_of(tmp_path / "two" / "model")
    assert alone.keys() == together.keys()
    if kind == "actor":
        before = weights_of(embedded_dir())
        assert any(
            not torch.allclose(alone[name], before[name].float(), atol=1e-4) for name in before.keys() & alone.keys()
        )
    assert max((alone[name] - together[name]).abs().max().item() for name in alone) < 2e-4, "up to the order of sums"
    alone, together = (
        [row for row in json.loads((tmp_path / name / "log.json").read_text()) if "loss" in row]
        for name in ("one", "two")
    )
    assert len(alone) == len(together) == 3
    for row, same in zip(alone, together, strict=True):
        assert {name: same[name] for name in row if name not in ("epoch", "step")} == pytest.approx(
            {name: row[name] for name in row if name not in ("epoch", "step")}, rel=1e-2, abs=1e-3
        ), "logged numbers cover the rows of both"


def test_they_fine_tune_the_same_as_one(two: KeptProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_fine_tuned_alike(two, tmp_path, monkeypatch)


def test_a_step_that_cannot_be_split_evenly_is_refused(
    two: KeptProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a recurrent model, which takes padded rows. The last job of these processes: it ends them."""

    def run(launcher: tuple[str, ...], job: Path) -> None:
        two.run(job)

    monkeypatch.setattr(sft, "run_launched", run)
    save_policy(recurrent(), load_tokenizer(embedded_dir()), tmp_path / "start")
    how, compute = Optimization(learning_rate=1e-3, batch_rows=3), Compute(cpu=True, threads=1, max_tokens=60)
    job = SupervisedJob(start=tmp_path / "start", optimization=how, compute=compute)
    with pytest.raises(BadInput, match="ended with exit code"):
        supervised(job, rows_of(6), tmp_path / "sft", launcher=("kept",))
    assert "batch_rows 3 is not a multiple of the 2 processes" in two.errors()
