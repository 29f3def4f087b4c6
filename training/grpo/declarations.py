"""What a checkpoint that was trained on examples declares in `mira.json` about its prompts and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent.episode.profile_prompts import profile_of_messages
from models.local.prompt_style import PromptStyle, Thoughts, declared_style
from models.prompting.thought_request import asks_for_thought
from models.vision.grounding import GroundingPrompt, prompt_form
from training.grpo.examples import Example
from training.grpo.prompts import PromptSettings
from training.grpo.rewards import PointTarget, StepTarget


def style_of(examples: Sequence[Example], policy: Path) -> PromptStyle | None:
    """Returns the prompt style of the trained policy: that of its steps, otherwise the one that the start declares."""
    if all(isinstance(example.target, StepTarget) for example in examples):
        full = {any(role == "system" for role, _ in example.messages) for example in examples}
        return None if len(full) > 1 else "full" if full.pop() else "compact"
    return declared_style(policy)


def form_of(examples: Sequence[Example], prompt: PromptSettings | None = None) -> GroundingPrompt | None:
    """Returns the form of the questions where every example asks for an element's point, for use as a grounder. It
    states the resolution if held-out examples do, where *prompt* is their form."""
    if not all(isinstance(example.target, PointTarget) for example in examples):
        return None
    form = prompt_form(example.messages[-1][1] for example in examples)
    return form if form is None or prompt is None else replace(form, resolution=prompt.resolution_held_out)


def profile_of_examples(examples: Sequence[Example]) -> str:
    """The profile of the examples' prompts, where their style has several; empty where profiles differ."""
    profiles = {profile_of_messages(example.messages) for example in examples}
    return profiles.pop() if len(profiles) == 1 else ""


def thoughts_of(examples: Sequence[Example], before: Thoughts | None) -> Thoughts | None:
    """Returns how the trained policy thinks: `asked` where every prompt of a step asks for a thought. *before*: how the
    start thinks, or the answers to imitate; without steps it stays."""
    asked = [
        asks_for_thought(example.messages[-1][1]) for example in examples if isinstance(example.target, StepTarget)
    ]
    if not asked:
        return before
    if all(asked):
        return "asked"
    return "tags" if any(asked) or before is not None else None
