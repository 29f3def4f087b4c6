"""Callbacks of a GRPO run: evaluations, a stop at values that are not finite, and a log of excluded rows."""

from __future__ import annotations

import math
from collections.abc import Callable

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from training.engine.trainer import TrainingDiverged


class PeriodicEvaluation(TrainerCallback):
    """Evaluates on held-out examples at the start and every *every* updates."""

    def __init__(self, evaluate: Callable[[int], None], every: int) -> None:
        self._evaluate = evaluate
        self._every = every

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        if state.global_step == 0:
            self._evaluate(0)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        last = state.global_step >= state.max_steps
        if self._every and state.global_step % self._every == 0 and not last:
            self._evaluate(state.global_step)


class StopOnNonfinite(TrainerCallback):
    """Stops a run if loss or gradient norm is not finite."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: object,
    ) -> None:
        logs = logs or {}
        bad = [name for name in ("loss", "grad_norm") if not math.isfinite(logs.get(name, 0.0))]
        if bad:
            raise TrainingDiverged(f"step {state.global_step}: the {bad[0]} is {logs[bad[0]]}")


class LogExcludedRows(TrainerCallback):
    """Logs the number of rows with a NaN or infinite reward."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: object,
    ) -> None:
        if (rows := int((logs or {}).get("nonfinite_rows", 0))) and state.is_world_process_zero:
            self._log(f"update {state.global_step}: {rows} rows are left out, their rewards are NaN or infinite")
