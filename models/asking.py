"""One typed question: a request in, an answer of the type asked for out, or a ModelError."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from pydantic import BaseModel

from models.base import ChatModel, ChatReply, ChatRequest, ModelInvalidAnswer, ModelTruncated
from models.structured import parse_answer
from models.transport import added

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

TEXT_TRIES: Final = 3
"""Answers that a small model may give before one that cannot be read is an error."""
LATER_TEMPERATURE: Final = 0.7
"""Of all but the first."""


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

    Where it raises :class:`models.base.ModelInvalidAnswer`, or the answer did not end, the model draws another,
    `TEXT_TRIES` in all and within the deadline of all, and the last one decides: a small model would not understand a
    complaint. Usage, time and attempts are those of all. Raises :class:`models.base.ModelError`.
    """
    spent: list[ChatReply] = []
    while True:
        last = len(spent) == TEXT_TRIES - 1
        try:
            reply = await model.complete(_drawn(request, spent) if spent else request)
            spent.append(reply)
            return Asked(read(reply.text), _all_of(spent))
        except ModelTruncated as error:
            if last or error.usage is None:  # nothing came: the connection broke
                raise
            spent.append(ChatReply("", error.usage, model.spec, error.seconds, error.attempts))
        except ModelInvalidAnswer:
            if last:
                raise


def _drawn(request: ChatRequest, spent: Sequence[ChatReply]) -> ChatRequest:
    """*request* after *spent*, sampled: asked in the same words, a model without temperature would say the same."""
    left = max(1.0, request.deadline_s - sum(reply.seconds for reply in spent))
    seed = (request.seed or 0) + len(spent) - 1
    return replace(request, temperature=LATER_TEMPERATURE, seed=seed, deadline_s=left)


def _all_of(spent: Sequence[ChatReply]) -> ChatReply:
    """The last reply, at the price of all."""
    usage = spent[0].usage
    for reply in spent[1:]:
        usage = added(usage, reply.usage)
    return replace(
        spent[-1],
        usage=usage,
        seconds=sum(reply.seconds for reply in spent),
        attempts=sum(reply.attempts for reply in spent),
    )
