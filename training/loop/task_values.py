"""The value critic's word on a task before it is opened: the state is the goal alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from models.base import Message
from models.prompting.prompt_tokens import PromptTokens
from training.data.rows import Row
from training.engine.checkpoints import load_tokenizer
from training.engine.scoring import score
from training.loop.curriculum import Candidate

if TYPE_CHECKING:
    from training.loop.settings import LoopSettings

UNKNOWN = 0.5
"""What is said before there is a critic: no task is out of reach, none is solved."""


def start_values(
    critic: Path | None, policy: Path, settings: LoopSettings
) -> Callable[[Sequence[Candidate]], Sequence[float]]:
    """V of tasks from their words. A page is not known before a task runs, so the prompt ends where it would begin."""

    def values(tasks: Sequence[Candidate]) -> Sequence[float]:
        if critic is None or not tasks:
            return [UNKNOWN] * len(tasks)
        prompts = PromptTokens(load_tokenizer(policy))
        words = sorted({_words(task) for task in tasks})
        room = settings.compute.max_tokens
        rows = [Row(prompts.encode((Message("user", text),), room), (), n, 0) for n, text in enumerate(words)]
        said = dict(zip(words, score("states", critic, rows, settings.compute), strict=True))
        return [said[_words(task)] for task in tasks]

    return values


def _words(task: Candidate) -> str:
    return f"Goal: {task.instruction or task.ref.name.replace('-', ' ')}\nPage:"
