"""Calls a model and parses its answer into a type, or raises a ModelError.

:func:`calls_end_at` sets a common deadline for several calls.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from pydantic import BaseModel

from models.base import (
    ChatModel,
    ChatReply,
    ChatRequest,
    ModelError,
    ModelInvalidAnswer,
    ModelOutOfTime,
    ModelTimeout,
    ModelTruncated,
    SampledTokens,
    Usage,
)
from models.structured import parse_answer
from models.tool_use import ToolModel, ToolReply, ToolRequest
from models.transport import added

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

TEXT_TRIES: Final = 3
"""Attempts for a text answer before an unparsable one is an error."""
LATER_TEMPERATURE: Final = 0.7
"""Temperature of all attempts but the first."""


@dataclass(frozen=True, slots=True)
class TypedReply(Generic[T]):
    answer: T
    """Parsed."""
    reply: ChatReply


async def answer_each(
    items: Sequence[T], answer: Callable[[T], Awaitable[M]], store: Callable[[M], None], *, workers: int = 1
) -> None:
    """Answers each of *items*, in their order, at most *workers* at once, and gives each answer to *store* as it comes.
    The first exception of *answer* ends the others and is raised."""
    queue = list(reversed(items))

    async def work() -> None:
        while queue:
            store(await answer(queue.pop()))

    tasks = [asyncio.create_task(work()) for _ in range(min(workers, len(items)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


_END: ContextVar[float | None] = ContextVar("end", default=None)
"""Common end of all calls, on the monotonic clock; None: each call has its own deadline only."""


@contextmanager
def calls_end_at(moment: float | None) -> Generator[None]:
    """Ends all calls inside the block at *moment* on the monotonic clock, in addition to their own deadlines."""
    before = _END.set(moment)
    try:
        yield
    finally:
        _END.reset(before)


async def complete(model: ChatModel, request: ChatRequest) -> ChatReply:
    """Calls the model within the remaining time. Raises :class:`models.base.ModelError`;
    :class:`models.base.ModelOutOfTime` if the common end passed before the call's own deadline, or left no time for the
    next attempt."""
    return await _in_time(lambda left: model.complete(replace(request, deadline_s=left)), request.deadline_s)


async def converse(model: ToolModel, request: ToolRequest) -> ToolReply:
    """As :func:`complete`, for a model that answers with tool calls."""
    return await _in_time(lambda left: model.converse(replace(request, deadline_s=left)), request.deadline_s)


async def _in_time(send: Callable[[float], Awaitable[T]], deadline_s: float) -> T:
    end = _END.get()
    left = deadline_s if end is None else end - time.monotonic()
    if left >= deadline_s:
        return await send(deadline_s)
    if left <= 0:
        late = ModelOutOfTime("no time is left for a model call")
        late.attempts = 0
        raise late
    try:
        return await send(left)
    except ModelTimeout as error:
        if error.early:  # the server hung for one attempt, and the caller still has time
            raise
        late = ModelOutOfTime(f"the time ran out: {error}")
        late.attempts, late.seconds, late.usage = error.attempts, error.seconds, error.usage
        raise late from error


async def ask(model: ChatModel, request: ChatRequest, schema: type[M]) -> TypedReply[M]:
    """Calls the model for an answer of type *schema*.

    Text of a model that does not parse by itself (a scripted one) is parsed here, with the same rules. Raises
    :class:`models.base.ModelError`; :class:`models.base.ModelInvalidAnswer` if the text is not a valid *schema*.
    """
    reply = await complete(model, replace(request, schema=schema))
    try:
        answer = reply.parsed if isinstance(reply.parsed, schema) else parse_answer(reply.text, schema)
    except ModelInvalidAnswer as error:
        error.attempts = 0  # charge() adds the attempts
        charge(error, [reply])
        raise
    return TypedReply(answer, reply)


async def ask_text(
    model: ChatModel,
    request: ChatRequest,
    read: Callable[[str], T],
) -> TypedReply[T]:
    """Calls the model and parses the answer's text with *read*.

    If *read* raises :class:`models.base.ModelInvalidAnswer` or the answer is truncated, the model is called again:
    `TEXT_TRIES` times in all, within the request's deadline. The same request is sampled again, because a small model
    does not understand a complaint about its answer. Usage, time and attempts of the result, or of the error, are sums
    over all calls. Raises :class:`models.base.ModelError`.
    """
    spent: list[ChatReply] = []
    while True:
        last = len(spent) == TEXT_TRIES - 1
        try:
            reply = await complete(model, _again(request, spent) if spent else request)
        except ModelTruncated as error:
            if last or error.usage is None:  # no answer: the connection broke
                charge(error, spent)
                raise
            spent.append(empty_reply(error, error.usage, model.spec))
            continue
        except ModelError as error:
            charge(error, spent)
            raise
        spent.append(reply)
        try:
            return TypedReply(read(reply.text), _summed(spent))
        except ModelInvalidAnswer as error:
            if last:
                error.attempts = 0
                charge(error, spent)
                raise


async def complete_or_empty(model: ChatModel, request: ChatRequest, spent: Sequence[ChatReply] = ()) -> ChatReply:
    """Sends the request. A truncated or empty answer is a reply without text, with the tokens that were sampled, not an
    error. The usage of the calls *spent* before is added to an error."""
    try:
        return await complete(model, request)
    except ModelError as error:
        if isinstance(error, ModelTruncated | ModelInvalidAnswer) and error.usage is not None:
            return empty_reply(error, error.usage, model.spec)
        charge(error, spent)
        raise


def empty_reply(error: ModelError, usage: Usage, spec: str) -> ChatReply:
    """The reply without text that stands for an unusable answer of the model *spec*, with its tokens and *usage*."""
    sampled = error.sampled or SampledTokens()
    return ChatReply(
        "",
        usage,
        spec,
        error.seconds,
        error.attempts,
        prompt_token_ids=sampled.prompt,
        completion_token_ids=sampled.completion,
        logprobs=sampled.logprobs,
    )


def charge(error: ModelError, spent: Sequence[ChatReply]) -> None:
    """Adds usage, time and attempts of the replies *spent* to *error*."""
    for reply in spent:
        error.usage = reply.usage if error.usage is None else added(error.usage, reply.usage)
        error.seconds += reply.seconds
        error.attempts += reply.attempts


def _again(request: ChatRequest, spent: Sequence[ChatReply]) -> ChatRequest:
    """The next request after *spent*: sampled, because a greedy model would repeat its answer."""
    left = max(1.0, request.deadline_s - sum(reply.seconds for reply in spent))
    seed = (request.seed or 0) + len(spent) - 1
    return replace(request, temperature=LATER_TEMPERATURE, seed=seed, deadline_s=left)


def _summed(spent: Sequence[ChatReply]) -> ChatReply:
    """The last reply, with usage, time and attempts of all."""
    usage = spent[0].usage
    for reply in spent[1:]:
        usage = added(usage, reply.usage)
    return replace(
        spent[-1],
        usage=usage,
        seconds=sum(reply.seconds for reply in spent),
        attempts=sum(reply.attempts for reply in spent),
    )
