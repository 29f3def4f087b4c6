"""Supervised fine-tuning on packed rows: which tokens count, equal training, no loss of rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from models.embedded import embedded_dir
from models.local.loading import read_checkpoint
from tests.training.engine.test_padded_sft import assert_loss_is_the_token_mean, job, passes, refuse_packed
from tests.training.engine.token_rows import rows_of
from training.data.rows import Row
from training.engine import sft
from training.engine.annotate import score_completions
from training.engine.checkpoints import base_of, load_policy
from training.engine.settings import Lora, Optimization
from training.engine.sft import supervised

torch.set_num_threads(1)


def test_the_loss_is_the_mean_over_completion_tokens(tmp_path: Path) -> None:
    assert_loss_is_the_token_mean(tmp_path / "sft")


@pytest.mark.parametrize("lora", [None, Lora(rank=4)])
def test_packed_rows_train_as_trl_trains_padded_rows(
    tmp_path: Path, lora: Lora | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of all rows, because the orders of the rows differ."""
    how, rows = Optimization(learning_rate=1e-3, batch_rows=7, epochs=3), rows_of(7)

    def learned(name: str) -> tuple[dict[str, torch.Tensor], list[float]]:
        out = supervised(job(how, lora=lora), rows, tmp_path / name)
        log = json.loads((tmp_path / name / "log.json").read_text())
        return load_policy(out)[0].state_dict(), [row["loss"] for row in log if "loss" in row]

    ours, losses = learned("packed")
    monkeypatch.setattr(sft, "accept_packed", refuse_packed)
    theirs, expected = learned("padded")
    assert losses == pytest.approx(expected, rel=1e-4) and len(losses) == 3
    start = load_policy(embedded_dir())[0].state_dict()
    apart = sum(float((ours[name] - weight).square().sum()) for name, weight in theirs.items())
    moved = sum(float((start[name] - weight).square().sum()) for name, weight in theirs.items())
    assert moved > 0 and apart < 1e-3 * moved


@pytest.mark.parametrize("pack_tokens", [16, 40, 4_000])
def test_a_shared_prefix_is_computed_once_in_a_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack_tokens: int
) -> None:
    """Every row begins with the same twenty tokens. A pass of one row may be longer than `pack_tokens`."""
    rows = [Row((*range(10, 30), 40 + number), (60, 61, 62), number, 0) for number in range(6)]
    how = Optimization(learning_rate=1e-3, batch_rows=6, epochs=2)
    seen = passes(monkeypatch)
    result = load_policy(supervised(job(how, pack_tokens=pack_tokens), rows, tmp_path / "packed"))[0].state_dict()
    assert all(count == 1 and (length <= pack_tokens or length == 24) for count, length in seen), seen
    assert len(seen) == 2 * {16: 6, 40: 2, 4_000: 1}[pack_tokens]
    assert sum(length for _, length in seen) == len(seen) * 20 + 2 * 6 * 4, "the prefix once a pass"
    monkeypatch.setattr(sft, "accept_packed", refuse_packed)
    expected = load_policy(supervised(job(how), rows, tmp_path / "padded"))[0].state_dict()
    assert max((result[name] - expected[name]).abs().max().item() for name in expected) < 2e-4


def test_steps_bound_the_epochs(tmp_path: Path) -> None:
    how = Optimization(learning_rate=1e-3, batch_rows=3)
    bounded = job(how).model_copy(update={"steps": 5})
    supervised(bounded, rows_of(7), tmp_path)
    assert json.loads((tmp_path / "log.json").read_text())[-1]["step"] == 5


@pytest.mark.parametrize("lora", [None, Lora(rank=8)])
def test_training_writes_a_plain_checkpoint(tmp_path: Path, lora: Lora | None) -> None:
    rows = rows_of(8)
    how = Optimization(learning_rate=3e-3, batch_rows=4, epochs=6)
    out = supervised(job(how, lora=lora), rows, tmp_path)
    before, after = (score_completions(load_policy(at)[0].eval(), rows, 100) for at in (embedded_dir(), out))
    assert sum(after) > sum(before) * 0.8
    assert not (out / "adapter_config.json").exists()


@pytest.mark.parametrize("bf16", [False, True])
def test_the_adapter_is_kept_beside_the_merged_model(tmp_path: Path, *, bf16: bool) -> None:
    """Also when an earlier process was killed between the two."""
    how = job(Optimization(learning_rate=3e-3, batch_rows=4), lora=Lora(rank=4))
    how = how.model_copy(update={"compute": how.compute.model_copy(update={"bf16": bf16})})
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "of-a-killed-process").touch()
    model = supervised(how, rows_of(8), tmp_path)
    assert sorted(path.name for path in (tmp_path / "adapter").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    read = read_checkpoint(embedded_dir(), tmp_path / "adapter", on_cpu=True).model.state_dict()
    merged, start = (load_policy(at)[0].state_dict() for at in (model, embedded_dir()))
    assert all(torch.allclose(read[name], weight, atol=1e-6) for name, weight in merged.items())
    assert any(not torch.equal(start[name], weight) for name, weight in merged.items())
    assert base_of(tmp_path / "adapter") == embedded_dir().resolve()


def test_training_every_weight_leaves_no_adapter(tmp_path: Path) -> None:
    supervised(job(Optimization(learning_rate=1e-3, batch_rows=4)), rows_of(4), tmp_path)
    assert not (tmp_path / "adapter").exists()


def test_a_row_that_would_be_cut_is_refused(tmp_path: Path) -> None:
    rows = [Row((5,) * 55, (6,) * 10, 0, 0)]
    with pytest.raises(ValueError, match="1 rows are longer than 60 tokens"):
        supervised(job(Optimization(learning_rate=1e-3)), rows, tmp_path)
    assert list(tmp_path.iterdir()) == []
