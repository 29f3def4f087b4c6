"""Parses answers as JSON of a pydantic schema, with one repair attempt.

Thoughts (`<think>…</think>`) before the answer and one enclosing code fence are stripped. Duplicate keys, NaN and
Infinity, unknown keys, values of another type (`"1"` for 1), and text before or after make an answer invalid. An
invalid answer is sent back once with its errors; the second answer decides.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from models.base import ChatReply, ChatRequest, Message, ModelInvalidAnswer, Usage, answer_turn
from models.prompting.fence import fence
from models.thinking import without_thoughts
from models.transport import Call, quoted

M = TypeVar("M", bound=BaseModel)

_FENCE = re.compile(r"```(?:json)?[ \t]*\r?\n(.*?)\r?\n?```", re.DOTALL | re.IGNORECASE)

MAX_ERRORS = 8
"""Maximum number of validation errors in a repair request and in an error message."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One complete answer of a model, not validated; its usage is already charged to the call."""

    text: str
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    signature: bytes | None = None
    """See :attr:`models.base.ChatReply.signature`."""


async def checked_reply(
    request: ChatRequest, ask: Callable[[ChatRequest], Awaitable[Draft]], call: Call, model: str
) -> ChatReply:
    """Sends the request and validates the answer; after an invalid answer sends one repair request with the errors.

    Raises :class:`ModelInvalidAnswer` after the second invalid answer. Usage and attempts are sums over both requests.
    """
    draft = await ask(request)
    parsed: BaseModel | None = None
    if request.schema is not None:
        try:
            parsed = parse_answer(draft.text, request.schema)
        except ModelInvalidAnswer as problem:
            repair = repair_request(request, draft, str(problem))
            draft = await ask(repair)
            parsed = parse_answer(draft.text, request.schema)
    return ChatReply(
        text=draft.text,
        usage=call.spent or Usage(),
        model=model,
        seconds=call.seconds,
        attempts=call.attempts,
        parsed=parsed,
        prompt_token_ids=draft.prompt_token_ids,
        completion_token_ids=draft.completion_token_ids,
        logprobs=draft.logprobs,
        signature=draft.signature,
    )


def parse_answer(text: str, schema: type[M]) -> M:
    """Parses *text* as *schema*. Raises :class:`ModelInvalidAnswer`, in one line that names the errors."""
    body = unfenced(text)
    try:
        json.loads(body, object_pairs_hook=_no_duplicates, parse_constant=_no_constant, parse_float=_finite)
        return schema.model_validate_json(body, strict=True, extra="forbid")
    except ValidationError as error:
        raise ModelInvalidAnswer(f"not a valid {schema.__name__}: {quoted(_problems(error))}") from None
    except (ValueError, RecursionError) as error:
        raise ModelInvalidAnswer(f"not JSON for {schema.__name__}: {quoted(str(error))}") from None


def unfenced(text: str) -> str:
    """*text* without leading thoughts, surrounding white space and one enclosing code fence."""
    stripped = without_thoughts(text).strip()
    fence = _FENCE.fullmatch(stripped)
    return fence.group(1) if fence else stripped


def repair_request(request: ChatRequest, answer: Draft, problem: str) -> ChatRequest:
    """The conversation, followed by the invalid answer and its errors. The shared prefix is unchanged.

    The errors are fenced, because they quote keys that the model may have copied from a page.
    """
    complaint = (
        f"Your answer was rejected:\n{fence('problem', problem)}\n"
        "Answer again with the JSON object alone: no other text, no code fence, only keys of the schema."
    )
    turns = (answer_turn(answer.text, answer.signature), Message("user", complaint))
    return replace(request, messages=(*request.messages, *turns))


def _problems(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(str(part) for part in item['loc']) or '(top)'}: {item['msg']}" for item in errors]
    rest = f" and {len(lines) - MAX_ERRORS} more" if len(lines) > MAX_ERRORS else ""
    return "; ".join(lines[:MAX_ERRORS]) + rest


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys: dict[str, Any] = dict(pairs)
    if len(keys) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} appears twice in one object")
    return keys


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits} is too large for a number")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
