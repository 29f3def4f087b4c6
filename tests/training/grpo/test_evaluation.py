"""Held-out answers are those of the policy itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.toy_models.puzzles import fresh_model
from training.engine.checkpoints import load_policy
from training.grpo.evaluation import _answers
from training.grpo.puzzles import make_puzzles
from training.grpo.settings import parse_settings


def test_a_repetition_penalty_of_the_start_does_not_change_held_out_answers(tmp_path: Path) -> None:
    """Qwen2.5-VL is published with one. Training samples without it, so the measured policy was another one."""
    model, tokenizer = load_policy(fresh_model(tmp_path / "model", width=32, layers=1), padded=True)
    compute: dict[str, Any] = {"max_tokens": 64, "threads": 1, "cpu": True}
    settings = parse_settings({"answer_tokens": 8, "compute": compute}, "here")
    mazes = make_puzzles("maze", 4, seed=0, size=3)
    plain = list(_answers(model, tokenizer, mazes, settings))
    model.generation_config.repetition_penalty = 5.0
    assert list(_answers(model, tokenizer, mazes, settings)) == plain
