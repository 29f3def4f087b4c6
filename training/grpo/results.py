"""The results of a GRPO run, read from its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from envs.core.errors import BadInput
from envs.core.record import Record
from training.grpo.evaluation import Evaluation


class HeldOutEvaluation(Record):
    """One evaluation on the held-out examples."""

    update: int
    """Number of policy updates; 0 is the start."""
    measured: Evaluation


class GrpoResult(Record):
    """Result of a GRPO run."""

    model: Path
    updates: int
    held_out: tuple[HeldOutEvaluation, ...]
    """Evaluations, including the start and the end; empty without held-out examples."""
    first_reward: float | None
    """Mean reward of sampled completions at the beginning; None if nothing was trained."""
    last_reward: float | None
    nonfinite_rows: int = 0
    """Excluded completions with a NaN or infinite reward."""
    equal_groups: int = 0
    """Groups with equal rewards, which have no learning signal."""


def read_result(out: Path) -> GrpoResult:
    """Reads the result of a finished run. Raises BadInput."""
    log = read_log(out)
    rewards = [float(row["reward"]) for row in log if row.get("reward") is not None]
    return GrpoResult(
        model=out / "model",
        updates=max((int(row["step"]) for row in log), default=0),
        held_out=read_held_out(out),
        first_reward=rewards[0] if rewards else None,
        last_reward=rewards[-1] if rewards else None,
        nonfinite_rows=sum(int(row.get("nonfinite_rows") or 0) for row in log),
        equal_groups=sum(int(row.get("equal_groups") or 0) for row in log),
    )


def read_log(out: Path) -> list[dict[str, Any]]:
    """Reads the training log by step. Raises BadInput if *out* holds no finished run."""
    try:
        return json.loads((out / "log.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(out)!r} holds no finished GRPO run") from error


def read_held_out(out: Path) -> tuple[HeldOutEvaluation, ...]:
    """Reads the evaluations so far."""
    path = out / "held_out.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    return tuple(HeldOutEvaluation.model_validate_json(line) for line in lines if line)
