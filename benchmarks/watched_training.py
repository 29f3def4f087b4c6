"""Measures a training from outside: the seconds of its steps, and access to the trainers that a stage creates."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from transformers import TrainerCallback


class StepTimes(TrainerCallback):
    """Seconds of each step, with the work of a GPU done. What follows a step, its log and the loading of rows, belongs
    to the next one."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._begun = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        if not self.seconds:
            self._begun = _now()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        now = _now()
        self.seconds.append(now - self._begun)
        self._begun = now


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


@contextmanager
def before_training(module: ModuleType, function: str, prepare: Callable[[Any], object]) -> Generator[None]:
    """Inside the block, *function* of *module*, whose first argument is a trainer, calls *prepare* with it first."""
    train = getattr(module, function)

    def prepared(trainer: Any, *arguments: Any, **named: Any) -> Any:
        prepare(trainer)
        return train(trainer, *arguments, **named)

    setattr(module, function, prepared)
    try:
        yield
    finally:
        setattr(module, function, train)
