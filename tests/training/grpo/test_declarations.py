"""What a checkpoint that was trained on examples declares in `mira.json`, after GRPO and after fine-tuning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks.toy_models.puzzles import fresh_model
from envs.core.actions import Click
from models.local.declarations import declarations, declare_no_reasons, declare_style
from tests.training.grpo.vision_cases import vision_examples
from training.engine.settings import Compute, Optimization
from training.grpo.examples import Example
from training.grpo.imitation import imitate
from training.grpo.imitation_settings import ImitationSettings
from training.grpo.puzzles import make_puzzles
from training.grpo.rewards import StepTarget
from training.grpo.run import train_grpo
from training.grpo.settings import parse_settings

COMPUTE: Final = {"max_tokens": 256, "threads": 1, "cpu": True, "bf16": True}


def by_grpo(examples: Sequence[Example], start: Path, out: Path) -> Path:
    options: dict[str, Any] = {"group": 2, "answer_tokens": 32, "steps": 1, "optimization": {"batch_rows": 4}}
    settings = parse_settings({**options, "compute": COMPUTE, "coordinates": "thousand"}, "here")
    return train_grpo(examples, str(start), out, settings, log=lambda _: None).model


def by_fine_tuning(examples: Sequence[Example], start: Path, out: Path) -> Path:
    settings = ImitationSettings.model_validate(
        {
            "coordinates": "thousand",
            "steps": 1,
            "optimization": Optimization(learning_rate=1e-4, batch_rows=2),
            "compute": Compute.model_validate(COMPUTE),
        }
    )
    return imitate(examples, str(start), out, settings, log=lambda _: None).model


TRAINED = pytest.mark.parametrize("train", [by_grpo, by_fine_tuning])
Train = Callable[[Sequence[Example], Path, Path], Path]


@TRAINED
def test_a_text_model(tmp_path: Path, train: Train) -> None:
    start = fresh_model(tmp_path / "start", width=32, layers=1)
    declare_style(start, "compact", "small")
    declare_no_reasons(start)
    puzzles = make_puzzles("maze", 4, seed=0, size=3)
    expected = {"prompt_style": "compact", "profile": "small", "reasons": "none", "precision": "bfloat16"}
    assert declarations(train(puzzles, start, tmp_path / "run")) == expected


@TRAINED
def test_a_model_that_sees(starts: Callable[[str], Path], images: Path, tmp_path: Path, train: Train) -> None:
    """It learns steps with a system message, the sign of full prompts."""
    steps = [
        one.model_copy(update={"target": StepTarget(action=Click(ref=7))})
        for one in vision_examples(images, system=True)[:2]
    ]
    declared = declarations(train(steps, starts("Qwen2.5-VL"), tmp_path / "run"))
    assert declared == {"prompt_style": "full", "precision": "bfloat16", "vision_profile": "thousand"}
