"""Asks a model where the elements of examples are, once each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from envs.core.errors import BadInput
from envs.core.record import Record
from models.asking import answer_each
from models.base import ChatModel, ChatRequest, Image, Message
from models.prompting.prompt_text import message
from models.vision.coordinates import Size
from models.vision.grounding import THINK, GroundingPrompt, PointProblem, read_point, subject_of
from models.vision.pictures import picture_for, picture_size
from training.grpo.answering import predict
from training.grpo.examples import Example, messages_of, picture_as_png
from training.grpo.predictions import Prediction
from training.grpo.rewards import ChoiceTarget, PointTarget

ANSWER_TOKENS: Final = 128
THOUGHT_TOKENS: Final = 512
DEADLINE_S: Final = 300.0
"""Of one answer."""


class AskedPoint(Record):
    """What an example asks for, whatever the form of its prompt."""

    where_is: bool
    """An element; else a goal for which something is clicked."""
    subject: str


def asked_point(example: Example) -> AskedPoint:
    """What *example* asks for. Raises BadInput if it asks for no place, has no image, or is in no known words."""
    if not isinstance(example.target, PointTarget | ChoiceTarget) or example.image is None:
        raise BadInput(
            f"example {example.name!r} asks for no position on an image: its target must be a point or a choice"
        )
    if example.facts is not None and example.facts.subject:
        return AskedPoint(where_is=example.facts.question == "where_is", subject=example.facts.subject)
    if isinstance(example.target, ChoiceTarget):
        return AskedPoint(where_is=True, subject=example.messages[-1][1])
    known = subject_of(example.messages[-1][1])
    if known is None:
        raise BadInput(
            f"example {example.name!r}: its prompt is not one of Mira's; add what it asks for, facts.subject"
        )
    return AskedPoint(where_is=known[0] == "where_is", subject=known[1])


async def answer_all(
    model: ChatModel,
    form: GroundingPrompt,
    examples: Sequence[Example],
    store: Callable[[Prediction], None],
    *,
    max_tokens: int | None = None,
    workers: int = 1,
) -> None:
    """Asks for the place of each of *examples* once, at temperature 0, and gives each answer to *store*. *max_tokens*
    of an answer: by default `ANSWER_TOKENS`, and `THOUGHT_TOKENS` more where the question asks for a thought.

    Raises :class:`models.base.ModelError` if the model cannot be reached; an answer that cannot be used counts."""

    async def answer(example: Example) -> Prediction:
        return await _answer(model, form, example, max_tokens)

    await answer_each(examples, answer, store, workers=workers)


async def _answer(model: ChatModel, form: GroundingPrompt, example: Example, max_tokens: int | None) -> Prediction:
    png = await asyncio.to_thread(picture_as_png, example)
    size = picture_size(png)
    image, frame = await asyncio.to_thread(picture_for, form.profile, png, (int(size.width), int(size.height)))
    messages = _messages(example, form, image, Size(*frame.image))
    usual = ANSWER_TOKENS + (THOUGHT_TOKENS if messages[-1].text.endswith(THINK) else 0)
    request = ChatRequest(messages, max_tokens=max_tokens or usual, deadline_s=DEADLINE_S)
    answered = await predict(model, example, request)
    if answered.problem:
        return answered
    if isinstance(example.target, ChoiceTarget):
        return answered
    point = read_point(answered.answer, form, frame)
    if isinstance(point, PointProblem):
        return answered.model_copy(update={"problem": point.value})
    return answered.model_copy(update={"point": (point.x, point.y)})


def _messages(example: Example, form: GroundingPrompt, image: Image, size: Size) -> tuple[Message, ...]:
    """The question for a place in *form*; a choice is asked as the example asks it."""
    if isinstance(example.target, ChoiceTarget):
        return messages_of(example, (image,))
    asked = asked_point(example)
    ask = form.where_is if asked.where_is else form.where_to_click
    return (message("user", ask(asked.subject, size), images=(image,)),)
