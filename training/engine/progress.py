"""How far a stage is, told while it learns or scores: with a model of a hundred million parameters it takes hours."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

EVERY_S = 60.0
"""Between two lines."""


class Watcher(Protocol):
    """Is told when training begins, after every step of the optimizer, and after every pack of rows that is scored."""

    def __call__(self, stage: str, step: int, steps: int, note: str | None, /) -> None:
        """*step* of *steps* is done, or row of rows; *note* is what was last reported, such as `loss 0.125`: None
        before the first report and where nothing is learned."""
        ...


def unwatched(_stage: str, _step: int, _steps: int, _note: str | None, /) -> None:
    """Tells nobody."""


class ReportSteps(TrainerCallback):
    """Tells *watch* of the first process's steps, with the number that the trainer reports as *shown*."""

    def __init__(self, stage: str, watch: Watcher, shown: str = "loss") -> None:
        self._stage = stage
        self._watch = watch
        self._shown = shown
        self._note: str | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """The time that is left is known from the first step on, however long one takes."""
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
        told: float | None = (logs or {}).get(self._shown)
        if told is not None:  # TRL reports None where no reward was finite
            value = round(float(told), 3) + 0.0  # -0.0 is 0.0
            self._note = f"{self._shown} {value:.3f}"

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        if state.is_world_process_zero:
            self._watch(self._stage, state.global_step, state.max_steps, self._note)


class Lines:
    """A watcher for logs: a line every `EVERY_S` seconds, with the time that is left at the pace so far."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell
        self._stage = ""
        self._begun = (0, 0.0)
        """Step and time of the first step that was told of *stage*: one that goes on does not begin at 0."""
        self._told_at = 0.0

    def __call__(self, stage: str, step: int, steps: int, note: str | None, /) -> None:
        now = time.monotonic()
        if stage != self._stage or step <= self._begun[0]:
            self._stage, self._begun, self._told_at = stage, (step, now), now
        elif now - self._told_at >= EVERY_S and step < steps:
            self._told_at = now
            first, begun = self._begun
            left_s = (now - begun) / (step - first) * (steps - step)
            said = "" if note is None else f", {note}"
            self._tell(f"  {stage}: {step} of {steps}{said}, about {duration(left_s)} left")


def duration(seconds: float) -> str:
    """`40 s`, `12 min` or `3 h 05 min`."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
