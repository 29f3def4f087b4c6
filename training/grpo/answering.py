"""Asks a chat model examples, once each, at temperature 0: puzzles, and questions whose answer is a text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from envs.core.record import storable
from models.asking import answer_each, complete
from models.base import ChatModel, ChatRequest, Image, ModelError
from models.vision.pictures import picture_for, picture_size
from models.vision.profiles import VisionProfile
from training.grpo.examples import Example, messages_of, picture_as_png
from training.grpo.predictions import Prediction, count_thought_tokens, unusable


async def answer_examples(
    model: ChatModel,
    profile: VisionProfile | None,
    examples: Sequence[Example],
    store: Callable[[Prediction], None],
    *,
    max_tokens: int,
    workers: int = 1,
    deadline_s: float = 600.0,
) -> None:
    """Asks each of *examples* once and gives each answer to *store*. *profile*: how the model sees; needed for examples
    with an image.

    Raises :class:`models.base.ModelError` if the model cannot be reached; an answer that cannot be used counts."""

    async def answer(example: Example) -> Prediction:
        images = await asyncio.to_thread(_images, example, profile)
        request = ChatRequest(messages=messages_of(example, images), max_tokens=max_tokens, deadline_s=deadline_s)
        return await predict(model, example, request)

    await answer_each(examples, answer, store, workers=workers)


async def predict(model: ChatModel, example: Example, request: ChatRequest) -> Prediction:
    """The answer of *model* to *request*, which asks *example*. Raises :class:`models.base.ModelError` if the model
    cannot be reached."""
    try:
        reply = await complete(model, request)
    except ModelError as error:
        if not error.answered:
            raise
        return unusable(example, error)
    answer, usage = storable(reply.text), reply.usage
    tokens = usage.tokens_out + usage.tokens_thinking
    thought = count_thought_tokens(example.target, answer, usage)
    return Prediction(name=example.name, answer=answer, tokens=tokens, thought_tokens=thought)


def _images(example: Example, profile: VisionProfile | None) -> tuple[Image, ...]:
    if example.image is None:
        return ()
    assert profile is not None, "only a model that sees is asked about images"
    png = picture_as_png(example)
    size = picture_size(png)
    return (picture_for(profile, png, (int(size.width), int(size.height)))[0],)
