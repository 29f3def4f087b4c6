"""GRPO with adapters in bfloat16: frozen weights take half the memory, and the run learns the same to the bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from benchmarks.toy_models.puzzles import fresh_model
from tests.tiny_models.vision_language import ARCHITECTURES
from tests.training.grpo.place_rewards import reward_by_place
from tests.training.grpo.vision_cases import vision_examples, vision_settings
from training.engine.settings import Compute
from training.grpo import trainer as trainer_module
from training.grpo.examples import Example
from training.grpo.puzzles import make_puzzles
from training.grpo.results import read_log
from training.grpo.run import load_start, train_grpo
from training.grpo.trainer import build_trainer

MAZES = make_puzzles("maze", 12, seed=0, size=3)


SETTINGS = vision_settings(
    kl=0.01,
    optimization={"batch_rows": 8, "learning_rate": 1e-2, "warmup": 0},
    compute={"max_tokens": 256, "threads": 1, "cpu": True, "bf16": True, "lora": {"rank": 4}},
)


def _float32(model: nn.Module, compute: Compute, *, frozen: bool = False) -> nn.Module:
    del compute, frozen
    return model


@pytest.fixture(autouse=True)
def rewards_by_place(monkeypatch: pytest.MonkeyPatch) -> None:
    reward_by_place(monkeypatch)


def silent(_: str) -> None:
    pass


Case = tuple[Path, Sequence[Example]]


OTHERS = [name for name in ARCHITECTURES if name not in ("Qwen2.5-VL", "Gemma 3")]


@pytest.fixture(
    params=["text", "Qwen2.5-VL", "Gemma 3", *(pytest.param(name, marks=pytest.mark.heavy) for name in OTHERS)]
)
def case(request: pytest.FixtureRequest, starts: Callable[[str], Path], images: Path, tmp_path: Path) -> Case:
    if request.param == "text":
        return fresh_model(tmp_path / "start", width=32, layers=2), MAZES
    return starts(request.param), vision_examples(images)


def test_frozen_linear_layers_are_held_in_bfloat16(case: Case, tmp_path: Path) -> None:
    start, examples = case
    model, processor = load_start(start, vision=examples[0].image is not None)
    trainer = build_trainer(model, processor, examples, SETTINGS, tmp_path)
    linear = [part for part in trainer.model.modules() if isinstance(part, nn.Linear)]
    head = trainer.model.get_output_embeddings()
    held = {part.weight.dtype for part in linear if not part.weight.requires_grad and part is not head}
    assert held == {torch.bfloat16}
    assert {part.weight.dtype for part in linear if part.weight.requires_grad} == {torch.float32}, "adapters"


def test_a_run_learns_the_same_and_saves_float32_weights(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference, which is the model without its adapters, and evaluations on held-out examples included."""
    start, examples = case
    half = train_grpo(examples[:6], str(start), tmp_path / "half", SETTINGS, held_out=examples[6:8], log=silent)
    monkeypatch.setattr(trainer_module, "hold_frozen_in_bfloat16", _float32)
    whole = train_grpo(examples[:6], str(start), tmp_path / "whole", SETTINGS, held_out=examples[6:8], log=silent)
    one, other, before = (load_file(folder / "model.safetensors") for folder in (half.model, whole.model, start))
    assert {weight.dtype for weight in one.values()} == {torch.float32}
    assert all(torch.equal(one[name], other[name]) for name in other)
    assert any(not torch.equal(one[name], before[name]) for name in before), "it has learned"
    assert [h.measured.correct for h in half.held_out] == [h.measured.correct for h in whole.held_out]


@pytest.mark.parametrize("case", ["text", "Qwen2.5-VL", "Gemma 3"], indirect=True)
def test_every_weight_is_trained_against_a_reference_in_bfloat16(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, examples = case
    full = SETTINGS.model_copy(update={"compute": SETTINGS.compute.model_copy(update={"lora": None}), "kl": 0.1})
    model, processor = load_start(start, vision=examples[0].image is not None)
    trainer = build_trainer(model, processor, examples, full, tmp_path / "built")
    assert {weight.dtype for weight in trainer.model.parameters()} == {torch.float32}
    embeddings = {id(part.weight) for part in trainer.ref_model.modules() if isinstance(part, nn.Embedding)}
    linear = [part.weight for part in trainer.ref_model.modules() if isinstance(part, nn.Linear)]
    assert {weight.dtype for weight in linear if id(weight) not in embeddings} == {torch.bfloat16}
    half = train_grpo(examples[:6], str(start), tmp_path / "half", full, log=silent)
    monkeypatch.setattr(trainer_module, "hold_frozen_in_bfloat16", _float32)
    whole = train_grpo(examples[:6], str(start), tmp_path / "whole", full, log=silent)
    one, other, before = (load_file(folder / "model.safetensors") for folder in (half.model, whole.model, start))
    assert all(torch.equal(one[name], other[name]) for name in other)
    assert any(not torch.equal(one[name], before[name]) for name in before), "it has learned"
    kls = [[row["kl"] for row in read_log(tmp_path / name) if "kl" in row] for name in ("half", "whole")]
    assert kls[0] == kls[1] and kls[0][-1] > 0
