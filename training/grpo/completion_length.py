"""Checks that correct answers fit into the completion length limit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from envs.core.action_languages import language
from envs.core.action_languages.ids import PHRASE
from envs.core.actions import Action
from envs.core.errors import BadInput
from training.grpo.examples import Example
from training.grpo.rewards import (
    UNSCALED,
    GridTarget,
    MazeTarget,
    PointTarget,
    Scale,
    StepTarget,
    SudokuTarget,
    Target,
    TokenCount,
)
from training.grpo.rewards.adagui import AdaguiReward
from training.grpo.rewards.guirlvg import GuirlvgReward
from training.grpo.rewards.targets import AIMS
from training.grpo.settings import GrpoSettings

TAGS = "<think></think><answer>{}</answer>"


def right_answer(target: Target, scale: Scale = UNSCALED) -> str:
    """The shortest correct answer to *target*. *scale*: pixels of the image per unit of the answer's coordinates."""
    match target:
        case PointTarget():
            centre = target.region.centre
            return f"{_in_units(centre.x, scale[0])}, {_in_units(centre.y, scale[1])}"
        case StepTarget():
            return language(target.language).show(_with_units(target.action, scale)).removeprefix(PHRASE).strip()
        case MazeTarget():
            return target.path
        case SudokuTarget():
            return "\n".join(target.solution)
        case GridTarget():
            return "\n".join(target.rows)


def _with_units(action: Action, scale: Scale) -> Action:
    if scale == UNSCALED:
        return action
    axis = {"x": scale[0], "to_x": scale[0], "y": scale[1], "to_y": scale[1]}
    points = {name: float(_in_units(getattr(action, name), axis[name])) for name in AIMS if hasattr(action, name)}
    return action.model_copy(update=points)


def _in_units(pixels: float, scale: float) -> str:
    """*pixels* in units of *scale* pixels: whole ones, but where a unit is many pixels, as of 0 to 1."""
    return f"{pixels / scale:.{0 if scale <= 10 else math.ceil(math.log10(2 * scale))}f}"


def check_completion_lengths(
    examples: Sequence[Example], held_out: Sequence[Example], settings: GrpoSettings, count: TokenCount
) -> tuple[str, ...]:
    """Returns a warning line for each set of examples with correct answers longer than `answer_tokens`. *count* counts
    a text's tokens. Raises BadInput if no correct answer to *examples* fits."""
    lengths = [count(right_answer(example.target)) for example in examples]
    if min(lengths) > settings.answer_tokens:
        raise BadInput(
            f"answer_tokens {settings.answer_tokens} is too short for the right answer to any of the {len(lengths)} "
            f"examples: they have {_span(lengths)} tokens"
        )
    measured = [count(right_answer(example.target)) for example in held_out]
    lines = (
        _line(lengths, len(examples), "examples: they cannot be solved", settings),
        _line(measured, len(held_out), "held-out examples: they count as unsolved", settings),
        *_full_rewards(examples, settings, count),
    )
    return tuple(filter(None, lines))


def _full_rewards(examples: Sequence[Example], settings: GrpoSettings, count: TokenCount) -> Iterator[str]:
    """Yields warnings for rewards that require more text than the answer."""
    reward = settings.reward
    if isinstance(reward, GuirlvgReward) and reward.format != "none":
        lengths = [count(TAGS.format(right_answer(example.target))) for example in examples]
        yield _line(lengths, len(examples), "examples in their tags: they never get the full reward", settings)
    elif isinstance(reward, AdaguiReward) and reward.thought != "none":
        lengths = [reward.thought_tokens + count(TAGS.format(right_answer(example.target))) for example in examples]
        subject = f"examples after a thought of reward.thought_tokens {reward.thought_tokens}: hard steps want one"
        yield _line(lengths, len(examples), subject, settings)


def _line(lengths: Sequence[int], examples: int, subject: str, settings: GrpoSettings) -> str:
    over = [length for length in lengths if length > settings.answer_tokens]
    if not over:
        return ""
    return (
        f"warning: answer_tokens {settings.answer_tokens} is too short for the right answer to {len(over)} of "
        f"{examples} {subject} ({_span(over)} tokens)"
    )


def _span(lengths: Sequence[int]) -> str:
    low, high = min(lengths), max(lengths)
    return str(low) if low == high else f"{low} to {high}"
