"""The contract with TRL's SFTTrainer, for models that take padded rows: which tokens count, no loss of rows, bounds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from trl.trainer.sft_trainer import SFTTrainer

from models.embedded import embedded_dir
from tests.training.engine.test_tree_attention import doge, gpt_oss, nemotron, recurrent
from tests.training.engine.token_rows import rows_of
from training.engine import padded_sft, sft
from training.engine.annotate import score_completions
from training.engine.checkpoints import load_policy, load_tokenizer, save_policy
from training.engine.settings import Compute, Lora, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.engine.trainer import TrainingDiverged
from training.engine.tree_attention import UnpackableLayers

torch.set_num_threads(1)
COMPUTE = Compute(cpu=True, threads=1, max_tokens=60)


def job(how: Optimization, **compute: Any) -> SupervisedJob:
    return SupervisedJob(start=embedded_dir(), optimization=how, compute=COMPUTE.model_copy(update=compute))


def refuse_packed(_: Any) -> NoReturn:
    """In place of `accept_packed`: trains a model on padded rows that could take packed ones."""
    raise UnpackableLayers("this test trains on padded rows")


@pytest.fixture
def padded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sft, "accept_packed", refuse_packed)


def test_a_recurrent_model_is_trained_on_padded_rows(tmp_path: Path) -> None:
    """Its layers carry what they read into the next text of a packed sequence."""
    torch.manual_seed(0)
    save_policy(recurrent(), load_tokenizer(embedded_dir()), tmp_path / "start")
    how = Optimization(learning_rate=1e-3, batch_rows=7)
    start = SupervisedJob(start=tmp_path / "start", optimization=how, compute=COMPUTE)
    out = supervised(start, rows_of(7), tmp_path / "sft")
    before, after = (load_policy(at, padded=True)[0].state_dict() for at in (tmp_path / "start", out))
    assert any(not torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("family", [nemotron, doge, gpt_oss])
def test_a_model_with_an_attention_of_its_own_is_trained_on_padded_rows(
    tmp_path: Path, family: Callable[[], Any]
) -> None:
    """It used to fail in the first step: its attention got no branches, or a mask."""
    torch.manual_seed(0)
    save_policy(family(), load_tokenizer(embedded_dir()), tmp_path / "start")
    start = SupervisedJob(
        start=tmp_path / "start", optimization=Optimization(learning_rate=1e-3, batch_rows=7), compute=COMPUTE
    )
    assert (supervised(start, rows_of(7), tmp_path / "sft") / "model.safetensors").is_file()


def assert_loss_is_the_token_mean(folder: Path) -> None:
    """One step over all rows at rate 0: any masking, truncation or padding of a library would change its loss."""
    rows = rows_of(7)
    out = supervised(job(Optimization(learning_rate=1e-12, batch_rows=7)), rows, folder)
    model, _ = load_policy(embedded_dir())
    sums = score_completions(model.eval(), rows, 100)
    expected = -sum(sums) / sum(len(row.completion) for row in rows)
    log = json.loads((folder / "log.json").read_text())
    assert log[0]["loss"] == pytest.approx(expected, rel=1e-4)
    assert (out / "tokenizer.json").is_file() and not (folder / "checkpoints").exists()


@pytest.mark.usefixtures("padded")
def test_the_loss_is_the_mean_over_completion_tokens(tmp_path: Path) -> None:
    assert_loss_is_the_token_mean(tmp_path / "sft")


@pytest.mark.usefixtures("padded")
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

    monkeypatch.setattr(padded_sft, "bounded_trainer", lambda: plain)
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

    def record(module: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
        if module.training:  # the pass of `accept_packed` is none of the training
            seen.append(tuple(inputs[0].shape))

    def load(*values: Any, **options: Any) -> Any:
        model, tokenizer = loaded(*values, **options)
        embeddings = model.get_input_embeddings()
        embeddings.register_forward_pre_hook(record)
        return model, tokenizer

    monkeypatch.setattr(sft, "load_policy", load)
    return seen


@pytest.mark.usefixtures("padded")
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
    assert max((start[name] - expected[name]).abs().max().item() for name in expected) > 1e-3
    # Summed, because Adam turns rounding errors of a gradient near 0 into whole steps of single weights.
    apart = sum(float((result[name] - expected[name]).square().sum()) for name in expected)
    moved = sum(float((start[name] - expected[name]).square().sum()) for name in expected)
    assert apart < 1e-6 * moved, (moved, apart)


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
    assert padded_sft.bounded_parts(lengths, most, at_least) == parts


@pytest.mark.usefixtures("padded")
def test_a_training_that_diverged_writes_no_model(tmp_path: Path) -> None:
    how = Optimization(learning_rate=1e20, batch_rows=7, epochs=3)
    with pytest.raises(TrainingDiverged, match="lower the learning rate"):
        supervised(job(how), rows_of(7), tmp_path / "sft")
    assert not (tmp_path / "sft" / "model").exists()
