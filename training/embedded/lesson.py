"""Training examples of the embedded model: an answer and the prompts for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from envs.core.tasks import TaskRef

Kind = Literal["act", "plan", "check"]
"""Kinds of answers: the policy's, the planner's and the AutoRater's."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """An answer with its prompts."""

    kind: Kind
    task: TaskRef
    prompts: tuple[str, ...]
    """Two prompts for an action, with and without the current milestone; otherwise one prompt."""
    answer: str


def split(lessons: Sequence[Lesson], share: float = 0.15) -> tuple[list[Lesson], list[Lesson]]:
    """Splits lessons into (training, validation with each suite's last seeds). No episode is in both."""
    learned, measured = list[Lesson](), list[Lesson]()
    for suite in sorted({lesson.task.suite for lesson in lessons}):
        own = [lesson for lesson in lessons if lesson.task.suite == suite]
        seeds = sorted({lesson.task.seed for lesson in own})
        last = set(seeds[len(seeds) - max(1, int(len(seeds) * share)) :]) if len(seeds) > 1 else set[int]()
        learned += [lesson for lesson in own if lesson.task.seed not in last]
        measured += [lesson for lesson in own if lesson.task.seed in last]
    return learned, measured
