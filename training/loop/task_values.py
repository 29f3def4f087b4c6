"""Values of tasks before they are opened: the value critic's output for a state with the goal only."""

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
"""Value of every task before there is a critic, so that the default band keeps all tasks."""


def start_values(
    critic: Path | None, policy: Path, settings: LoopSettings
) -> Callable[[Sequence[Candidate]], Sequence[float]]:
    """A function for V of tasks from their texts. Pages are unknown before a task runs, so the prompt ends before the
    page."""

    def values(tasks: Sequence[Candidate]) -> Sequence[float]:
        if critic is None or not tasks:
            return [UNKNOWN] * len(tasks)
        prompts = PromptTokens(load_tokenizer(policy))
        texts = sorted({_prompt(task) for task in tasks})
        room = settings.compute.max_tokens
        rows = [Row(prompts.encode((Message("user", text),), room), (), n, 0) for n, text in enumerate(texts)]
        by_text = dict(zip(texts, score("states", critic, rows, settings.compute), strict=True))
        return [by_text[_prompt(task)] for task in tasks]

    return values


def _prompt(task: Candidate) -> str:
    return f"Goal: {task.instruction or task.ref.name.replace('-', ' ')}\nPage:"
