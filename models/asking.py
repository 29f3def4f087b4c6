"""One typed question: a request in, an answer of the type asked for out, or a ModelError."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from pydantic import BaseModel

from models.base import ChatModel, ChatReply, ChatRequest, ModelInvalidAnswer
from models.structured import parse_answer
from models.transport import added

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

SECOND_TEMPERATURE: Final = 0.7
"""Of a second try: asked in the same words, a model without temperature would say the same."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    answer: T
    reply: ChatReply


async def ask(model: ChatModel, request: ChatRequest, schema: type[M]) -> Asked[M]:
    """The answer to *request* as *schema*.

    A model that does not parse by itself (a scripted one) is parsed here, so that its text meets the same rules.
    Raises :class:`models.base.ModelError`; :class:`models.base.ModelInvalidAnswer` where the text is not a *schema*.
    """
    reply = await model.complete(replace(request, schema=schema))
    answer = reply.parsed if isinstance(reply.parsed, schema) else parse_answer(reply.text, schema)
    return Asked(answer, reply)


async def ask_text(model: ChatModel, request: ChatRequest, read: Callable[[str], T]) -> Asked[T]:
    """What *read* makes of the answer's text.

    Where it raises :class:`models.base.ModelInvalidAnswer`, the model draws one more answer, within the deadline of
    both, and that one decides: a small model would not understand a complaint. Usage, time and attempts are those of
    both. Raises :class:`models.base.ModelError`.
    """
    first = await model.complete(request)
    try:
        return Asked(read(first.text), first)
    except ModelInvalidAnswer:
        left = max(1.0, request.deadline_s - first.seconds)
        again = replace(request, temperature=SECOND_TEMPERATURE, seed=request.seed or 0, deadline_s=left)
        second = await model.complete(again)
        both = replace(
            second,
            usage=added(first.usage, second.usage),
            seconds=first.seconds + second.seconds,
            attempts=first.attempts + second.attempts,
        )
        return Asked(read(second.text), both)
