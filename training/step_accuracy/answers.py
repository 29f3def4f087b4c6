"""Answers to steps: of a model that is asked, or of a file. Each is asked for once, at temperature 0."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import Field

from envs.core.action_languages import ParseError, language
from envs.core.actions import Action
from envs.core.errors import BadInput
from envs.core.record import storable
from models.asking import answer_each, complete
from models.base import ChatModel, ChatRequest, ModelError, Usage
from models.vision.answers import UNSCALED, Scale, read_completion
from models.vision.coordinates import CoordinateSpace, ImageFrame
from models.vision.coordinates import Size as ViewSize
from models.vision.grounding import UNITS
from models.vision.pictures import picture_for
from models.vision.places import plain_ascii
from models.vision.profiles import GENERAL, VisionProfile
from training.data_sets.items import Size
from training.grpo.examples import Example, image_size, messages_of, picture_as_png
from training.grpo.predictions import Answer, count_thought_tokens
from training.grpo.rewards import StepTarget
from training.grpo.rewards.geometry import Box, Point
from training.grpo.rewards.targets import parse_action, parse_point, points_of, scaled_action

_PLACE_LINE: Final = re.compile(r"^[ \t]*#[ \t]*Element[ \t]*:[^\n]*$", re.MULTILINE | re.IGNORECASE)
"""The line that names the place of a step without a point; where a prompt asks for it, it is no thought."""
DEADLINE_S: Final = 300.0
"""Of one answer."""


class StepAnswer(Answer):
    """One line of a file of predictions."""

    answer: str
    """The whole text, thought included. Empty: the model gave none."""
    tokens: int | None = Field(default=None, ge=0)
    """Of the text and of hidden thoughts; None: not known."""
    thought_tokens: int | None = Field(default=None, ge=0)
    """Of hidden thoughts and of the text around the action; None: not known."""


@dataclass(frozen=True, slots=True)
class AskedStep:
    """A step example with what an answer to it is read by."""

    example: Example
    target: StepTarget
    size: Size
    """Of the screenshot in pixels; 1 x 1 without one, where no action has a point."""

    @property
    def episode(self) -> str:
        """The episode of the step, or its own name if its episode is not known."""
        facts = self.example.facts
        return (facts.template if facts is not None else "") or self.example.name

    @property
    def has_episode(self) -> bool:
        """Whether its episode is known."""
        return self.example.facts is not None and bool(self.example.facts.template)

    @property
    def platform(self) -> str:
        return self.example.facts.platform if self.example.facts is not None else ""

    @property
    def group(self) -> str:
        """The part of the data set, such as Mind2Web's test_task; empty if it is not known."""
        return self.example.facts.group if self.example.facts is not None else ""

    @property
    def elements(self) -> tuple[Box, ...]:
        """Boxes of the element that is acted on, of data sets that score it for every step; else empty."""
        return () if self.example.facts is None else tuple(Box(*box) for box in self.example.facts.elements)


def asked_steps(examples: Iterable[Example]) -> tuple[AskedStep, ...]:
    """Raises BadInput if an example asks for no action."""
    asked: list[AskedStep] = []
    for example in examples:
        if not isinstance(example.target, StepTarget):
            raise BadInput(
                f"example {example.name!r} asks for no action: make the file with --ask step, "
                "or use mira eval grounding"
            )
        size = (1, 1) if example.image is None else image_size(example.picture or b"")
        asked.append(AskedStep(example, example.target, size))
    return tuple(asked)


def check_units(steps: Iterable[AskedStep], space: CoordinateSpace) -> None:
    """Raises BadInput if the prompt of a step with a place does not ask for coordinates of *space*."""
    asked = UNITS[space]
    forms = (asked, asked.replace("in pixels", "in its pixels"))
    for step in steps:
        prompt = step.example.messages[-1][1]
        if step.target.places and not any(form in prompt for form in forms):
            raise BadInput(
                f"example {step.example.name!r}: its prompt does not ask for coordinates {asked}: make the file with "
                f"--coordinates {space}, or name with --coordinates what it asks for"
            )


def scale_of(frame: ImageFrame, space: CoordinateSpace) -> Scale:
    """Pixels of the image file per unit of *space*; the view of *frame* is the file."""
    extent = frame.extent(space)
    return frame.view.width / extent.width, frame.view.height / extent.height


def scale_in(step: AskedStep, space: CoordinateSpace, profile: VisionProfile = GENERAL) -> Scale:
    """Pixels of the screenshot per unit of an answer in *space* of a model of *profile*."""
    if step.example.image is None:
        return UNSCALED
    view = ViewSize(*step.size)
    sent = profile.sent_size(view)
    return scale_of(ImageFrame(view, sent, sent if profile.resize is not None else None), space)


def action_in(step: AskedStep, answer: str, scale: Scale) -> Action | None:
    """The action of *answer*, with points in pixels of the screenshot; None without one."""
    return parse_action(step.target, read_completion(answer, scale))


def place_in(step: AskedStep, answer: str, scale: Scale) -> Point | None:
    """The place of *answer* in pixels of the screenshot: the first point of its action, else the only point, or the
    centre of the only box, of the last `# Element:` line before it; None without an action or a place."""
    completion = read_completion(answer, scale)
    for text in dict.fromkeys((completion.answer, plain_ascii(completion.answer))):
        try:
            parsed = language(step.target.language).parse(text)
        except ParseError:
            continue
        if points := points_of(scaled_action(parsed.action, scale)):
            return points[0]
        lines = [note for note in parsed.notes if note.lower().startswith("element")]
        return parse_point(replace(completion, answer=lines[-1])) if lines else None
    return None


async def answer_all(
    model: ChatModel,
    steps: Sequence[AskedStep],
    profile: VisionProfile,
    store: Callable[[StepAnswer], None],
    *,
    max_tokens: int,
    workers: int = 1,
) -> None:
    """Asks for each of *steps*, and gives each answer to *store*. Raises :class:`models.base.ModelError` if the model
    cannot be reached; an answer that cannot be used, such as one that was cut off, is empty, all of it thought."""

    async def answer(step: AskedStep) -> StepAnswer:
        return await _answer(model, step, profile, max_tokens)

    await answer_each(steps, answer, store, workers=workers)


async def _answer(model: ChatModel, step: AskedStep, profile: VisionProfile, max_tokens: int) -> StepAnswer:
    messages = messages_of(step.example)
    if step.example.image is not None:
        png = await asyncio.to_thread(picture_as_png, step.example)
        image, frame = await asyncio.to_thread(picture_for, profile, png, step.size)
        messages = messages_of(step.example, (image,), frame.image)
    try:
        reply = await complete(model, ChatRequest(messages, max_tokens=max_tokens, deadline_s=DEADLINE_S))
    except ModelError as error:
        if not error.answered:
            raise
        spent = None if error.usage is None else error.usage.tokens_out + error.usage.tokens_thinking
        return StepAnswer(name=step.example.name, answer="", tokens=spent, thought_tokens=spent)
    answer, usage = storable(reply.text), reply.usage
    return StepAnswer(
        name=step.example.name,
        answer=answer,
        tokens=usage.tokens_out + usage.tokens_thinking,
        thought_tokens=_thought_tokens(step, answer, usage),
    )


def _thought_tokens(step: AskedStep, answer: str, usage: Usage) -> int:
    return count_thought_tokens(step.target, _PLACE_LINE.sub("", answer) if step.elements else answer, usage)
