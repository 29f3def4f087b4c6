"""The contract with TRL's SFTTrainer: which tokens count, no loss of rows, resuming after a kill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from trl.trainer.sft_trainer import SFTTrainer

from models.embedded import embedded_dir
from tests.training.engine.token_rows import rows_of
from training.data.rows import Row
from training.engine import sft
from training.engine.annotate import score_completions
from training.engine.checkpoints import load_policy
from training.engine.settings import Compute, Lora, Optimization
from training.engine.sft import SupervisedJob, supervised

torch.set_num_threads(1)
COMPUTE = Compute(cpu=True, threads=1, max_tokens=60)


def job(how: Optimization, **compute: Any) -> SupervisedJob:
    return SupervisedJob(start=embedded_dir(), optimization=how, compute=COMPUTE.model_copy(update=compute))


def test_the_loss_is_the_mean_over_completion_tokens(tmp_path: Path) -> None:
    """One step over all rows at rate 0: any masking, truncation or padding by TRL would change its loss."""
    rows = rows_of(7)
    out = supervised(job(Optimization(learning_rate=1e-12, batch_rows=7)), rows, tmp_path / "sft")
    model, _ = load_policy(embedded_dir())
    sums = score_completions(model.eval(), rows, 100)
    expected = -sum(sums) / sum(len(row.completion) for row in rows)
    log = json.loads((tmp_path / "sft" / "log.json").read_text())
    assert log[0]["loss"] == pytest.approx(expected, rel=1e-4)
    assert (out / "tokenizer.json").is_file() and not (tmp_path / "sft" / "checkpoints").exists()


@pytest.mark.parametrize("lora", [None, Lora(rank=4)])
def test_logits_at_completion_tokens_only_give_the_same_training(
    tmp_path: Path, lora: Lora | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = Optimization(learning_rate=1e-3, batch_rows=3, epochs=2)

    def learned(name: str) -> tuple[dict[str, torch.Tensor], float]:
        out = supervised(job(how, lora=lora), rows_of(7), tmp_path / name)
        return load_policy(out)[0].state_dict(), json.loads((tmp_path / name / "log.json").read_text())[-2]["loss"]

    ours, loss = learned("ours")

    def plain(most_tokens: int, **options: Any) -> SFTTrainer:
        return SFTTrainer(**options)

    monkeypatch.setattr(sft, "bounded_trainer", lambda: plain)
    theirs, expected = learned("theirs")
    assert loss == pytest.approx(expected, rel=1e-4)
    start = load_policy(embedded_dir())[0].state_dict()
    apart = sum(float((ours[name] - weight).square().sum()) for name, weight in theirs.items())
    moved = sum(float((start[name] - weight).square().sum()) for name, weight in theirs.items())
    assert moved > 0 and apart < 1e-3 * moved


def passes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Records the shapes, (rows, tokens), of all further forward passes."""
    seen: list[tuple[int, int]] = []
    loaded = sft.load_policy

    def record(_module: object, inputs: tuple[Any, ...]) -> None:
        seen.append(tuple(inputs[0].shape))

    def load(*values: Any, **options: Any) -> Any:
        model, tokenizer = loaded(*values, **options)
        embeddings = model.get_input_embeddings()
        embeddings.register_forward_pre_hook(record)
        return model, tokenizer

    monkeypatch.setattr(sft, "load_policy", load)
    return seen


@pytest.mark.parametrize(
    "pack_tokens", [pytest.param(n, marks=() if n in (40, 4_000) else pytest.mark.heavy) for n in (16, 40, 90, 4_000)]
)
def test_a_pass_is_bounded_by_tokens_and_gives_the_same_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack_tokens: int
) -> None:
    """A pass used to have eight rows of any length: too much for a GPU at 12 billion parameters and 16,384 tokens."""
    how, rows = Optimization(learning_rate=1e-3, batch_rows=6, epochs=2), rows_of(13, longest=28)
    seen = passes(monkeypatch)

    def learned(name: str, **compute: Any) -> dict[str, torch.Tensor]:
        return load_policy(supervised(job(how, **compute), rows, tmp_path / name))[0].state_dict()

    result = learned("bounded", pack_tokens=pack_tokens)
    shapes = list(seen)
    assert sum(count for count, _ in shapes) == 2 * len(rows), "every row once per epoch"
    assert all(count == 1 or count * length <= pack_tokens for count, length in shapes), shapes
    if pack_tokens == 4_000:
        assert max(count for count, _ in shapes) == 6, "rows are batched up to the limit"
    expected, start = learned("rows alone", pack_tokens=16), load_policy(embedded_dir())[0].state_dict()
    apart = max((result[name] - expected[name]).abs().max().item() for name in expected)
    moved = max((start[name] - expected[name]).abs().max().item() for name in expected)
    assert moved > 1e-3 and apart < 2e-4, (moved, apart)


@pytest.mark.parametrize(
    ("lengths", "most", "at_least", "parts"),
    [
        pytest.param([5, 5, 5, 5], 10, 1, [[0, 1], [2, 3]], id="two by two"),
        pytest.param([2, 9, 3, 8], 18, 1, [[1, 3], [2, 0]], id="similar lengths together"),
        pytest.param([2, 90, 3], 18, 1, [[1], [2, 0]], id="a too long row is a part of its own"),
        pytest.param([5, 5, 5, 5], 99, 3, [[0, 1], [3], [2]], id="as many as another process needs"),
        pytest.param([5], 99, 3, [[0]], id="never more than rows"),
    ],
)
def test_parts_of_a_batch(lengths: list[int], most: int, at_least: int, parts: list[list[int]]) -> None:
    assert sft.bounded_parts(lengths, most, at_least) == parts


@pytest.mark.parametrize("lora", [None, Lora(rank=8)])
def test_training_writes_a_plain_checkpoint(tmp_path: Path, lora: Lora | None) -> None:
    rows = rows_of(8)
    how = Optimization(learning_rate=3e-3, batch_rows=4, epochs=6)
    out = supervised(job(how, lora=lora), rows, tmp_path)
    before, after = (score_completions(load_policy(at)[0].eval(), rows, 100) for at in (embedded_dir(), out))
    assert sum(after) > sum(before) * 0.8
    assert not (out / "adapter_config.json").exists()


def test_a_row_that_would_be_cut_is_refused(tmp_path: Path) -> None:
    rows = [Row((5,) * 55, (6,) * 10, 0, 0)]
    with pytest.raises(ValueError, match="1 rows are longer than 60 tokens"):
        supervised(job(Optimization(learning_rate=1e-3)), rows, tmp_path)
    assert list(tmp_path.iterdir()) == []
