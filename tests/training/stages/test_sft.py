"""The contract with TRL's SFTTrainer: which tokens count, that none is lost, that a killed one goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from trl.trainer.sft_trainer import SFTTrainer

from models.embedded import embedded_dir
from tests.training.stages.token_rows import rows_of
from training.data.rows import Row
from training.stages import sft
from training.stages.annotate import score_actions
from training.stages.checkpoints import load_policy
from training.stages.settings import Compute, Lora, Optimization
from training.stages.sft import supervised

torch.set_num_threads(1)
COMPUTE = Compute(cpu=True, threads=1, max_tokens=60)


def test_the_loss_is_the_mean_over_all_action_tokens_and_no_other(tmp_path: Path) -> None:
    """One step over all rows at rate 0: whatever TRL masks, cuts or pads would show in its first number."""
    rows = rows_of(7)
    out = supervised(embedded_dir(), rows, Optimization(learning_rate=1e-12, batch_rows=7), COMPUTE, tmp_path / "sft")
    model, _ = load_policy(embedded_dir())
    sums = score_actions(model.eval(), rows, 100)
    expected = -sum(sums) / sum(len(row.action) for row in rows)
    told = json.loads((tmp_path / "sft" / "log.json").read_text())
    assert told[0]["loss"] == pytest.approx(expected, rel=1e-4)
    assert (out / "tokenizer.json").is_file() and not (tmp_path / "sft" / "checkpoints").exists()


@pytest.mark.parametrize("lora", [None, Lora(rank=4)])
def test_logits_at_the_action_tokens_alone_teach_what_all_of_them_teach(
    tmp_path: Path, lora: Lora | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute = COMPUTE.model_copy(update={"lora": lora})
    how = Optimization(learning_rate=1e-3, batch_rows=3, epochs=2)

    def learned(name: str) -> tuple[dict[str, torch.Tensor], float]:
        out = supervised(embedded_dir(), rows_of(7), how, compute, tmp_path / name)
        return load_policy(out)[0].state_dict(), json.loads((tmp_path / name / "log.json").read_text())[-2]["loss"]

    ours, loss = learned("ours")
    monkeypatch.setattr(sft, "at_actions", lambda: SFTTrainer)
    theirs, expected = learned("theirs")
    assert loss == pytest.approx(expected, rel=1e-4)
    start = load_policy(embedded_dir())[0].state_dict()
    apart = sum(float((ours[name] - weight).square().sum()) for name, weight in theirs.items())
    moved = sum(float((start[name] - weight).square().sum()) for name, weight in theirs.items())
    assert moved > 0 and apart < 1e-3 * moved


@pytest.mark.parametrize("lora", [None, Lora(rank=8)])
def test_it_learns_and_what_it_wrote_is_a_plain_checkpoint(tmp_path: Path, lora: Lora | None) -> None:
    rows = rows_of(8)
    how = Optimization(learning_rate=3e-3, batch_rows=4, epochs=6)
    out = supervised(embedded_dir(), rows, how, COMPUTE.model_copy(update={"lora": lora}), tmp_path)
    before, after = (score_actions(load_policy(at)[0].eval(), rows, 100) for at in (embedded_dir(), out))
    assert sum(after) > sum(before) * 0.8
    assert not (out / "adapter_config.json").exists()


def test_a_row_that_would_be_cut_is_refused(tmp_path: Path) -> None:
    rows = [Row((5,) * 55, (6,) * 10, 0, 0)]
    with pytest.raises(ValueError, match="1 rows are longer than 60 tokens"):
        supervised(embedded_dir(), rows, Optimization(learning_rate=1e-3), COMPUTE, tmp_path)
    assert list(tmp_path.iterdir()) == []
