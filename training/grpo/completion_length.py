"""Checks that correct answers fit into the completion length limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envs.core.action_languages import language
from envs.core.action_languages.ids import PHRASE
from envs.core.errors import BadInput
from training.grpo.examples import Example
from training.grpo.rewards import GridTarget, MazeTarget, PointTarget, StepTarget, SudokuTarget, Target, TokenCount
from training.grpo.rewards.adagui import AdaguiReward
from training.grpo.rewards.guirlvg import GuirlvgReward
from training.grpo.settings import GrpoSettings

TAGS = "<think></think><answer>{}</answer>"


def right_answer(target: Target) -> str:
    """The shortest correct answer to *target*."""
    match target:
        case PointTarget():
            centre = target.region.centre
            return f"{centre.x:.0f}, {centre.y:.0f}"
        case StepTarget():
            return language(target.language).show(target.action).removeprefix(PHRASE).strip()
        case MazeTarget():
            return target.path
        case SudokuTarget():
            return "\n".join(target.solution)
        case GridTarget():
            return "\n".join(target.rows)


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
