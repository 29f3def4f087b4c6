"""Every architecture with every recipe, full and with adapters: a batch has the log-probabilities of its rows alone.

Prompts have different lengths, images different sizes, and a system prompt comes before the image. The rewards are the
recipes' own, of scripted answers: a model with random weights never answers correctly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForImageTextToText
from trl.trainer.grpo_trainer import GRPOTrainer

from envs.core.errors import BadInput
from tests.tiny_models.vision_language import ARCHITECTURES
from tests.training.grpo.vision_cases import COLOURS, row_alone, vision_examples, vision_settings
from training.grpo import trainer as trainer_module
from training.grpo.batch_check import batch_logprobs, padded_marks
from training.grpo.kl import KL_WEIGHTS
from training.grpo.rewards import UNSCALED, Rewarder, Scale, Score, Target
from training.grpo.rewards.registry import REWARDS
from training.grpo.run import load_start, save_start, train_grpo
from training.grpo.settings import GrpoSettings
from training.grpo.trainer import build_trainer, token_count

LORA = {"rank": 4, "alpha": 8}
FAST = {("ssl", False), ("guirlvg", True)}
"""Pairs of recipe and adapters that `make check` runs: all weights; and adapters, a frozen encoder, a weighted KL."""
SLOW = (("adagui", True), ("lpo", False))
"""What `make test` adds, one of them for each model by turns; the rest is `heavy`."""
PAIRS = {*product(REWARDS.builtin, (False, True))}
CELLS = [
    pytest.param(
        name,
        recipe,
        adapters,
        id=f"{name}-{recipe}-{'LoRA' if adapters else 'full'}",
        marks=()
        if (recipe, adapters) in FAST
        else (pytest.mark.slow if (recipe, adapters) == SLOW[number % 2] else pytest.mark.heavy),
    )
    for number, name in enumerate(ARCHITECTURES)
    for recipe, adapters in sorted(PAIRS)
]
VISION = ("vision", "visual")


class AnsweringRewarder(Rewarder):
    """Scores scripted answers, from correct to unreadable, in place of the sampled ones."""

    def of_group(
        self, target: Target, completions: Sequence[str], picture: bytes | None = None, scale: Scale = UNSCALED
    ) -> list[Score]:
        answers = ("<think>red</think><answer>(8, 16)</answer>", "3 11", "30, 60", "there")
        return super().of_group(
            target, [answers[row % len(answers)] for row in range(len(completions))], picture, scale
        )


@pytest.fixture
def scripted_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def rewarder(settings: GrpoSettings, processor: Any) -> Rewarder:
        return AnsweringRewarder(settings.reward, token_count(processor))

    monkeypatch.setattr(trainer_module, "build_rewarder", rewarder)


def recording(trainer: Any) -> list[tuple[list[Any], dict[str, Any]]]:
    """The batches that *trainer* scores from now on, with their inputs."""
    recorded: list[tuple[list[Any], dict[str, Any]]] = []
    score = trainer._generate_and_score_completions

    def scored(inputs: list[Any]) -> dict[str, Any]:
        batch = score(inputs)
        recorded.append((inputs, {key: value for key, value in batch.items() if key not in ("loss_scale", KL_WEIGHTS)}))
        return batch

    trainer._generate_and_score_completions = scored
    return recorded


def plain_model(folder: Path) -> Any:
    return AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()


def assert_close(padded: torch.Tensor, expected: torch.Tensor) -> None:
    """*padded*: with values behind those that are *expected*."""
    torch.testing.assert_close(padded[: len(expected)], expected, rtol=0, atol=1e-4)


@pytest.mark.usefixtures("scripted_answers")
@pytest.mark.parametrize(("name", "recipe", "adapters"), CELLS)
def test_a_batch_has_the_log_probabilities_of_its_rows_alone(
    *, starts: Callable[[str], Path], images: Path, tmp_path: Path, name: str, recipe: str, adapters: bool
) -> None:
    """Of the start as the reference, and of the policy after an update."""
    examples = vision_examples(images, system=True)
    compute = {"max_tokens": 256, "threads": 1, "cpu": True, "lora": LORA if adapters else None}
    optimization = {"batch_rows": 16, "learning_rate": 1e-2, "warmup": 0, "schedule": "constant"}
    config = vision_settings(recipe=recipe, steps=1, compute=compute, optimization=optimization)
    model, processor = load_start(starts(name), vision=True)
    trainer = build_trainer(model, processor, examples, config, tmp_path / "run")
    batches = recording(trainer)
    trainer.train()
    [(inputs, batch)] = batches
    asked = [examples[row["index"]] for row in inputs]
    assert (batch["prompt_mask"] == 0).any(), "prompts of different lengths are padded"
    assert bool(batch["advantages"].any()), "the recipe tells the answers apart"
    rows = [0, 5, 10, 15]  # one of each group
    reader = load_start(starts(name), vision=True)[1]

    def alone(model: Any, row: int) -> torch.Tensor:
        return row_alone(model, reader, asked[row], batch["completion_ids"][row][batch["completion_mask"][row].bool()])

    start = plain_model(starts(name))
    for row in rows:
        assert_close(batch["ref_per_token_logps"][row], alone(start, row))

    trainer.model.eval()
    with torch.no_grad():
        logprobs = batch_logprobs(trainer, trainer.model, batch)
    save_start(trainer.accelerator.unwrap_model(trainer.model), processor, tmp_path / "model")
    learned = plain_model(tmp_path / "model")
    for row in rows:
        assert_close(logprobs[row], alone(learned, row))
    changed = {key for key, value in learned.state_dict().items() if not torch.equal(value, start.state_dict()[key])}
    assert any(not any(part in key for part in VISION) for key in changed), "the language model learns"
    assert not (config.freeze_vision and any(part in key for key in changed for part in VISION))


def right_padded(scored: dict[str, Any], _: int) -> None:
    """Prompts padded on the right."""
    for row, padding in enumerate((scored["prompt_mask"] == 0).sum(1).tolist()):
        for key in ("prompt_ids", "prompt_mask"):
            scored[key][row] = scored[key][row].roll(-padding)
        for key in ("mm_token_type_ids", "token_type_ids"):
            if key in scored:
                prompts = scored[key][row, : scored["prompt_ids"].shape[1]]
                scored[key][row, : len(prompts)] = prompts.roll(-padding)


def attended_padding(scored: dict[str, Any], _: int) -> None:
    """Padding that the model reads as text."""
    scored["prompt_mask"].fill_(1)


def next_image(scored: dict[str, Any], prompts: int) -> None:
    """Each prompt with the image of the next one."""
    pixels = scored["pixel_values"]
    scored["pixel_values"] = pixels.roll(len(pixels) // prompts, 0)


FAULTS = {"right padding": right_padded, "attended padding": attended_padding, "next image": next_image}
TYPICAL = ("Qwen2.5-VL", "SmolVLM")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in TYPICAL else pytest.mark.heavy) for name in ARCHITECTURES]
)
def test_a_misaligned_batch_is_refused_before_anything_is_learned(
    *,
    starts: Callable[[str], Path],
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    fault: str,
) -> None:
    """Faults that TRL trains on without an error."""
    scored = GRPOTrainer._generate_and_score_completions

    def faulty(self: Any, inputs: Any) -> Any:
        batch = scored(self, inputs)
        FAULTS[fault](batch, 4)
        return batch

    monkeypatch.setattr(GRPOTrainer, "_generate_and_score_completions", faulty)
    examples = tuple(  # of one size, so that images of different prompts can be exchanged
        example.model_copy(update={"image": images / f"{COLOURS[number % 3]}.png", "target": target})
        for number, example in enumerate(vision_examples(images, system=True))
        for target in [vision_examples(images)[0].target]
    )
    with pytest.raises(BadInput, match=r"in a batch|marks padding") as caught:
        train_grpo(examples, str(starts(name)), tmp_path / "run", vision_settings(), log=lambda _: None)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run" / "model").exists()


def on_the_right(*options: Any) -> dict[str, torch.Tensor]:
    """The fields of a processor that pads on the right."""
    return {
        name: torch.stack([_unpadded_positions(row) for row in value]) for name, value in padded_marks(*options).items()
    }


def _unpadded_positions(row: torch.Tensor) -> torch.Tensor:
    """Image tokens where they would be without the padding of the shorter prompts, as far as this is known."""
    first = int(row.nonzero()[0])
    return row.roll(min(0, 20 - first))


def one_off(*options: Any) -> dict[str, torch.Tensor]:
    """Image tokens shifted by one."""
    return {name: value.roll(-1, 1) for name, value in padded_marks(*options).items()}


@pytest.mark.parametrize("fault", [on_the_right, one_off])
@pytest.mark.parametrize("system", [False, True])
@pytest.mark.parametrize("name", ["Qwen2.5-VL", pytest.param("Qwen3-VL", marks=pytest.mark.heavy), "Gemma 3"])
def test_a_misaligned_field_is_refused_before_anything_is_learned(
    *,
    starts: Callable[[str], Path],
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    system: bool,
    fault: Any,
) -> None:
    monkeypatch.setattr(trainer_module, "padded_marks", fault)
    examples = vision_examples(images, system=system)
    with pytest.raises(BadInput, match=r"marks padding|marks other tokens") as caught:
        train_grpo(examples, str(starts(name)), tmp_path / "run", vision_settings(), log=lambda _: None)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run" / "model").exists()
