"""Checks that correct answers fit into the completion length limit."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence

from envs.core.action_languages import language
from envs.core.action_languages.ids import PHRASE
from envs.core.actions import Action
from envs.core.errors import BadInput
from models.vision.grounding import AnswerShape, shape_of
from training.grpo.examples import Example
from training.grpo.prompts import PromptSettings
from training.grpo.rewards import (
    UNSCALED,
    ChoiceTarget,
    GridTarget,
    MazeTarget,
    OptionTarget,
    PointTarget,
    RewardSettings,
    Scale,
    StepTarget,
    SudokuTarget,
    Target,
    TextTarget,
    TokenCount,
)
from training.grpo.rewards.adagui import AdaguiReward
from training.grpo.rewards.geometry import Point
from training.grpo.rewards.guirlvg import GuirlvgReward
from training.grpo.rewards.lpo import LpoReward
from training.grpo.rewards.targets import decimals_of, points_of
from training.grpo.settings import GrpoSettings

TAGS = "<think></think><answer>{}</answer>"


def asked_shape(example: Example, prompt: PromptSettings | None) -> AnswerShape:
    """What the question of *example* asks for; for a question in words of its own what *prompt* asks for, if any."""
    shape = shape_of(example.messages[-1][1])
    return shape or (AnswerShape.POINT if prompt is None else prompt.answer)


def right_answer(target: Target, scale: Scale = UNSCALED, shape: AnswerShape = AnswerShape.POINT) -> str:
    """The shortest correct answer to *target*. *scale*: pixels of the image per unit of the answer's coordinates;
    *shape*: what a question for a place asks for."""
    match target:
        case PointTarget() if shape is not AnswerShape.POINT:
            numbers = [json.loads(_in_units(edge, scale[place % 2])) for place, edge in enumerate(target.box)]
            return json.dumps([{"bbox_2d": numbers}] if shape is AnswerShape.JSON_BOX else numbers)
        case PointTarget():
            centre = target.region.centre
            return f"{_in_units(centre.x, scale[0])}, {_in_units(centre.y, scale[1])}"
        case ChoiceTarget() | OptionTarget():
            return target.letter
        case TextTarget():
            return min(target.answers, key=len)
        case StepTarget():
            return language(target.language).show(_with_units(target, scale)).removeprefix(PHRASE).strip()
        case MazeTarget():
            return target.path
        case SudokuTarget():
            return "\n".join(target.solution)
        case GridTarget():
            return "\n".join(target.rows)


def _with_units(target: StepTarget, scale: Scale) -> Action:
    """The target's action in units of *scale*. A point that is rounded out of its box becomes the centre of the box."""
    if scale == UNSCALED:
        return target.action
    points = [_rounded(point, scale) for point in points_of(target.action)]
    for number, place in enumerate(target.places):
        x, y = points[number]
        if not place.region.holds(Point(x * scale[0], y * scale[1])):
            points[number] = _rounded(place.region.centre, scale)
    numbers = itertools.chain.from_iterable(points)
    return target.action.model_copy(update=dict(zip(("x", "y", "to_x", "to_y"), numbers, strict=False)))


def _rounded(point: Point, scale: Scale) -> Point:
    return Point(*(float(_in_units(value, unit)) for value, unit in zip(point, scale, strict=True)))


def _in_units(pixels: float, unit: float) -> str:
    """*pixels* in units of *unit* pixels."""
    return f"{pixels / unit:.{decimals_of(unit)}f}"


def check_completion_lengths(
    examples: Sequence[Example],
    held_out: Sequence[Example],
    settings: GrpoSettings,
    count: TokenCount,
    scale: Callable[[Example], Scale] = lambda _: UNSCALED,
) -> tuple[str, ...]:
    """Returns a warning line for each set of examples with correct answers longer than `answer_tokens`.
    *count* counts a text's tokens; *scale*: pixels of the image per unit of an answer's coordinates. Raises BadInput if
    no correct answer to *examples* fits."""

    def answer(example: Example) -> str:
        return right_answer(example.target, scale(example), _shape(example, settings))

    answers = [answer(example) for example in examples]
    lengths = [count(text) for text in answers]
    if min(lengths) > settings.answer_tokens:
        raise BadInput(
            f"answer_tokens {settings.answer_tokens} is too short for the right answer to any of the {len(lengths)} "
            f"examples: they have {span(lengths)} tokens"
        )
    measured = [count(answer(example)) for example in held_out]
    lines = (
        _line(lengths, len(examples), "examples: they cannot be solved", settings),
        _line(measured, len(held_out), "held-out examples: they count as unsolved", settings),
        *_full_rewards(answers, settings, count),
    )
    return tuple(filter(None, lines))


def _shape(example: Example, settings: GrpoSettings) -> AnswerShape:
    """The shape of the answer to a question for a place; an accuracy that is an overlap needs a box."""
    shape = asked_shape(example, settings.prompt)
    overlaps = isinstance(settings.reward, GuirlvgReward) and settings.reward.accuracy.startswith("iou")
    return AnswerShape.BOX if overlaps and shape is AnswerShape.POINT else shape


def _full_rewards(answers: Sequence[str], settings: GrpoSettings, count: TokenCount) -> Iterator[str]:
    """Yields warnings for rewards that require more text than the answer."""
    reward = settings.reward
    tagged = [count(TAGS.format(answer)) for answer in answers]
    if _rewards_tags(reward):
        yield _line(tagged, len(answers), "examples in their tags: they never get the full reward", settings)
    elif isinstance(reward, AdaguiReward) and reward.thought != "none":
        lengths = [reward.thought_tokens + length for length in tagged]
        subject = f"examples after a thought of reward.thought_tokens {reward.thought_tokens}, for hard steps"
        yield _line(lengths, len(answers), subject, settings)


def _rewards_tags(reward: RewardSettings) -> bool:
    """Whether a part of *reward* is for a thought and an answer in tags."""
    match reward:
        case GuirlvgReward():
            return reward.format != "none"
        case LpoReward():
            return reward.format_weight > 0
        case _:
            return False


def _line(lengths: Sequence[int], examples: int, subject: str, settings: GrpoSettings) -> str:
    over = [length for length in lengths if length > settings.answer_tokens]
    if not over:
        return ""
    return (
        f"warning: answer_tokens {settings.answer_tokens} is too short for the right answer to {len(over)} of "
        f"{examples} {subject} ({span(over)} tokens)"
    )


def span(lengths: Sequence[int]) -> str:
    """The least and the greatest of *lengths*, one number if they are equal."""
    low, high = min(lengths), max(lengths)
    return str(low) if low == high else f"{low} to {high}"
