"""Callbacks of a GRPO run: evaluations, and a log of excluded rows."""

from __future__ import annotations

from collections.abc import Callable

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


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
