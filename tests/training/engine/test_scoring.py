"""Scoring in this process, in several processes, and in the precision of a stage gives equal numbers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from tests.training.engine.token_rows import rows_of
from training.engine.actor import ActorTrainer
from training.engine.annotate import score_completions, score_states
from training.engine.checkpoints import load_policy
from training.engine.launcher import run_launched
from training.engine.scoring import (
    JOB,
    ScoreKind,
    run_scoring,
    score,
    score_launched,
    token_scores,
    token_scores_launched,
)
from training.engine.settings import Compute, Lora, Objective, Optimization
from training.engine.shared_base_lora import SharedBaseModels
from training.engine.step_plan import Plan
from training.engine.trainer import train, training_arguments

COMPUTE = Compute(cpu=True, threads=1, pack_tokens=100)


def test_token_scores_sum_to_those_of_actions(tmp_path: Path) -> None:
    rows = rows_of(5, longest=40)
    tokens = token_scores(embedded_dir(), rows, COMPUTE)
    assert [len(own) for own in tokens] == [len(row.completion) for row in rows]
    assert [sum(own) for own in tokens] == pytest.approx(score("actions", embedded_dir(), rows, COMPUTE), abs=1e-4)
    launched = token_scores_launched(embedded_dir(), rows, COMPUTE, run=run_scoring, folder=tmp_path / "scoring")
    assert launched == tokens and not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["actions", "states"])
def test_a_shared_base_adapter_is_scored_unmerged(tmp_path: Path, kind: ScoreKind) -> None:
    """Merging would round every weight differently in bfloat16."""
    lora, rows = Lora(rank=4, alpha=8), rows_of(8, longest=40)
    compute = COMPUTE.model_copy(update={"shared_base": True, "lora": lora, "bf16": True})
    models, part = SharedBaseModels(embedded_dir(), lora), "actor" if kind == "actions" else "value"
    learned = models.use(part, embedded_dir())
    torch.manual_seed(0)
    for weight in learned.parameters():
        if weight.requires_grad:
            torch.nn.init.normal_(weight, std=0.02)
    models.save(part, tmp_path / "adapter")
    scored = score_completions if kind == "actions" else score_states
    expected = scored(learned, rows, compute.pack_tokens, bf16=True)  # type: ignore[arg-type]
    scores = score(kind, tmp_path / "adapter", rows, compute)
    assert scores == pytest.approx(expected, abs=1e-5)
    merged = score(kind, tmp_path / "adapter", rows, COMPUTE)
    assert scores != pytest.approx(merged, abs=1e-5)


def test_a_launcher_that_does_nothing_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "scoring").mkdir()
    (tmp_path / "scoring" / "scores.json").write_text("[0.5]")
    folder, run = tmp_path / "scoring", partial(run_launched, ("true",))
    with pytest.raises(BadInput, match="the launched processes succeeded but wrote no scores"):
        score_launched("states", embedded_dir(), rows_of(1), COMPUTE, folder=folder, run=run)


def test_a_folder_without_a_job_is_one_line(tmp_path: Path) -> None:
    (tmp_path / JOB).write_text('{"kind": "rewards"}')
    with pytest.raises(BadInput, match="cannot be read") as error:
        run_scoring(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("scored_in_bf16", [True, False])
def test_a_stage_in_bfloat16_starts_with_zero_log_ratios(tmp_path: Path, scored_in_bf16: bool) -> None:
    """Float32 references would differ by the rounding of every layer."""
    rows, compute = rows_of(8, longest=40), COMPUTE.model_copy(update={"bf16": True})
    how = Optimization(learning_rate=1e-9, batch_rows=8)
    logprobs = score("actions", embedded_dir(), rows, compute if scored_in_bf16 else COMPUTE)
    plan = Plan(rows, batch_rows=8, pack_tokens=compute.pack_tokens, epochs=1, seed=0)
    columns = {"advantages": torch.zeros(8), "references": torch.tensor(logprobs)}
    arguments = training_arguments(tmp_path, how, compute, seed=0, steps=1)
    trainer = ActorTrainer(Objective(), load_policy(embedded_dir())[0], plan, **columns, arguments=arguments)
    (log,) = [row for row in train(trainer, compute) if "log_ratio_spread" in row]
    if scored_in_bf16:
        assert abs(log["log_ratio"]) < 1e-4 and log["log_ratio_spread"] < 1e-4
    else:
        assert log["log_ratio_spread"] > 1e-2
