"""One typed question: a request in, an answer of the type asked for out, or a ModelError.

Whoever has only so much time for several questions says so with :func:`calls_end_at`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from pydantic import BaseModel

from models.base import (
    ChatModel,
    ChatReply,
    ChatRequest,
    Message,
    ModelError,
    ModelInvalidAnswer,
    ModelOutOfTime,
    ModelTimeout,
    ModelTruncated,
)
from models.structured import parse_answer
from models.transport import added

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

TEXT_TRIES: Final = 3
"""Answers that a model may give in words before one that cannot be read is an error."""
LATER_TEMPERATURE: Final = 0.7
"""Of all but the first."""


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    answer: T
    reply: ChatReply


_END: ContextVar[float | None] = ContextVar("end", default=None)
"""When every call made here must have ended, on the monotonic clock; None: only by its own deadline."""


@contextmanager
def calls_end_at(moment: float | None) -> Generator[None]:
    """Bounds the calls made within, beside each one's own deadline, by *moment* on the monotonic clock."""
    before = _END.set(moment)
    try:
        yield
    finally:
        _END.reset(before)


async def complete(model: ChatModel, request: ChatRequest) -> ChatReply:
    """The model's answer within what is left. Raises :class:`models.base.ModelError`, and of these
    :class:`models.base.ModelOutOfTime` where it was not the call's own deadline that passed."""
    end = _END.get()
    left = request.deadline_s if end is None else end - time.monotonic()
    if left >= request.deadline_s:
        return await model.complete(request)
    if left <= 0:
        late = ModelOutOfTime("no time is left to ask the model")
        late.attempts = 0
        raise late
    try:
        return await model.complete(replace(request, deadline_s=left))
    except ModelTimeout as error:
        late = ModelOutOfTime(f"the time was up: {error}")
        late.attempts, late.seconds, late.usage = error.attempts, error.seconds, error.usage
        raise late from error


async def ask(model: ChatModel, request: ChatRequest, schema: type[M]) -> Asked[M]:
    """The answer to *request* as *schema*.

    A model that does not parse by itself (a scripted one) is parsed here, so that its text meets the same rules.
    Raises :class:`models.base.ModelError`; :class:`models.base.ModelInvalidAnswer` where the text is not a *schema*.
    """
    reply = await complete(model, replace(request, schema=schema))
    try:
        answer = reply.parsed if isinstance(reply.parsed, schema) else parse_answer(reply.text, schema)
    except ModelInvalidAnswer as error:
        error.attempts = 0  # of its own: it was raised here
        charge(error, [reply])
        raise
    return Asked(answer, reply)


async def ask_text(
    model: ChatModel,
    request: ChatRequest,
    read: Callable[[str], T],
    complaint: Callable[[ModelInvalidAnswer], str] | None = None,
) -> Asked[T]:
    """What *read* makes of the answer's text.

    Where it raises :class:`models.base.ModelInvalidAnswer`, or the answer did not end, the model gives another,
    `TEXT_TRIES` in all and within the deadline of all, and the last one decides. It is shown its answer and the
    *complaint* about it; without one, or where there was no whole answer, it is asked in the same words and draws
    anew, for a small model would not understand a complaint. Usage, time and attempts are those of all, of an error's
    too. Raises :class:`models.base.ModelError`.
    """
    spent: list[ChatReply] = []
    repair: tuple[Message, ...] = ()
    while True:
        last = len(spent) == TEXT_TRIES - 1
        try:
            reply = await complete(model, _again(request, spent, repair) if spent else request)
        except ModelTruncated as error:
            if last or error.usage is None:  # nothing came: the connection broke
                charge(error, spent)
                raise
            spent.append(ChatReply("", error.usage, model.spec, error.seconds, error.attempts))
            continue
        except ModelError as error:
            charge(error, spent)
            raise
        spent.append(reply)
        try:
            return Asked(read(reply.text), _all_of(spent))
        except ModelInvalidAnswer as error:
            if last:
                error.attempts = 0
                charge(error, spent)
                raise
            if complaint is not None:
                repair = (Message("assistant", reply.text), Message("user", complaint(error)))


def charge(error: ModelError, spent: Sequence[ChatReply]) -> None:
    """Adds what was *spent* on answers before it to *error*."""
    for reply in spent:
        error.usage = reply.usage if error.usage is None else added(error.usage, reply.usage)
        error.seconds += reply.seconds
        error.attempts += reply.attempts


def _again(request: ChatRequest, spent: Sequence[ChatReply], repair: tuple[Message, ...]) -> ChatRequest:
    """*request* after *spent*, with the *repair* of the last answer if there is one; else sampled: asked in the same
    words, a model without temperature would say the same."""
    left = max(1.0, request.deadline_s - sum(reply.seconds for reply in spent))
    if repair:
        return replace(request, messages=(*request.messages, *repair), deadline_s=left)
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
