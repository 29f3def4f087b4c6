"""Reports the progress of a stage while it trains or scores, which can take hours."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

EVERY_S = 60.0
"""Seconds between two lines."""


class Watcher(Protocol):
    """A callback for progress: called when training begins, after every optimizer step, and after every packed sequence
    that was scored."""

    def __call__(self, stage: str, step: int, steps: int, note: str | None, /) -> None:
        """*step* of *steps* (or row of rows) is done. *note* is the last reported number, such as `loss 0.125`; None
        before the first report and while scoring."""
        ...


def unwatched(_stage: str, _step: int, _steps: int, _note: str | None, /) -> None:
    """A watcher that does nothing."""


class ReportSteps(TrainerCallback):
    """Reports the first process's steps to *watch*, with the number that the trainer logs as *shown*."""

    def __init__(self, stage: str, watch: Watcher, shown: str = "loss") -> None:
        self._stage = stage
        self._watch = watch
        self._shown = shown
        self._note: str | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Reports step 0, so that the remaining time is known after the first step."""
        if state.is_world_process_zero:
            self._watch(self._stage, state.global_step, state.max_steps, None)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: object,
    ) -> None:
        number: float | None = (logs or {}).get(self._shown)
        if number is not None:  # TRL reports None where no reward was finite
            value = round(float(number), 3) + 0.0  # -0.0 is 0.0
            self._note = f"{self._shown} {value:.3f}"

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        if state.is_world_process_zero:
            self._watch(self._stage, state.global_step, state.max_steps, self._note)


class Lines:
    """A watcher for logs: a line every `EVERY_S` seconds, with the estimated remaining time."""

    def __init__(self, log: Callable[[str], object]) -> None:
        self._log = log
        self._stage = ""
        self._begun = (0, 0.0)
        """Step and time of the first report of *stage*; a resumed stage does not begin at 0."""
        self._logged_at = 0.0

    def __call__(self, stage: str, step: int, steps: int, note: str | None, /) -> None:
        now = time.monotonic()
        if stage != self._stage or step <= self._begun[0]:
            self._stage, self._begun, self._logged_at = stage, (step, now), now
        elif now - self._logged_at >= EVERY_S and step < steps:
            self._logged_at = now
            first, begun = self._begun
            left_s = (now - begun) / (step - first) * (steps - step)
            suffix = "" if note is None else f", {note}"
            self._log(f"  {stage}: {step} of {steps}{suffix}, about {duration(left_s)} left")


def duration(seconds: float) -> str:
    """Formats a duration as `40 s`, `12 min` or `3 h 05 min`."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
