"""What a checkpoint that was trained on examples declares in `mira.json` about its prompts and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.episode.profile_prompts import profile_of_messages
from models.local.declarations import (
    PromptStyle,
    Thoughts,
    declaration,
    declare_no_reasons,
    declare_precision,
    declare_style,
    declare_thoughts,
    declares_no_reasons,
)
from models.prompting.thought_request import asks_for_thought
from models.vision.checkpoints import declare_profile
from models.vision.coordinates import CoordinateSpace
from models.vision.grounding import GroundingPrompt, declare_form, prompt_form
from training.engine.checkpoints import base_of
from training.grpo.examples import Example
from training.grpo.frames import DECLARED_PROFILE
from training.grpo.prompts import PromptSettings
from training.grpo.rewards import PointTarget, StepTarget


@dataclass(frozen=True, slots=True)
class Training:
    """What a checkpoint was trained on, and how."""

    examples: Sequence[Example]
    start: Path
    coordinates: CoordinateSpace
    bf16: bool
    thoughts: Thoughts | None
    """How the start thinks, or the answers to imitate."""
    prompt: PromptSettings | None
    """The form in which questions are asked; None: as the examples ask them."""


def declare_training(folder: Path, training: Training) -> None:
    """Declares in `mira.json` of the checkpoint in *folder* all that play has to know of its *training*."""
    examples, starts = training.examples, (training.start, base_of(training.start))
    declare_style(folder, *prompts_of(examples, *starts))
    declare_thoughts(folder, thoughts_of(examples, training.thoughts))
    if declares_no_reasons(*starts):
        declare_no_reasons(folder)
    declare_precision(folder, bf16=training.bf16)
    if examples[0].image is not None:
        declare_profile(folder, DECLARED_PROFILE[training.coordinates])
    declare_form(folder, form_of(examples, training.prompt))


def prompts_of(examples: Sequence[Example], *starts: Path) -> tuple[PromptStyle | None, str]:
    """Returns the prompt style and the profile of the trained policy: those of its steps, otherwise those that the
    first of *starts* with a declaration declares."""
    if all(isinstance(example.target, StepTarget) for example in examples):
        full = {any(role == "system" for role, _ in example.messages) for example in examples}
        return None if len(full) > 1 else "full" if full.pop() else "compact", profile_of_examples(examples)
    return declaration(*starts)


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
