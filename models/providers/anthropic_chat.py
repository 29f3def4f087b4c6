"""Claude over Anthropic's Messages API, spoken over HTTP: the same protocol is offered by proxies and other servers.

Answers are not streamed: a truncated body is detected by its length or its JSON, and `stop_reason` says whether the
answer is complete. The end of the system prompt, which is static, is marked for the server's prompt cache. If a server
refuses a parameter, later requests use another form (:class:`models.providers.anthropic_dialect.AnthropicDialect`).
Log-probabilities, token ids and seeds are not available.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import httpx2

from models.base import (
    Budget,
    ChatReply,
    ChatRequest,
    Image,
    Message,
    ModelInvalidAnswer,
    ModelRejected,
    ModelTruncated,
    Usage,
)
from models.prices import own_prices, price_table
from models.prompting.fence import defuse
from models.providers.anthropic_dialect import ANSWER_TOOL, AnthropicDialect
from models.providers.anthropic_wire import WholeReply, WireReply, WireUsage, whole_reply, wire_error
from models.providers.failures import connection_failure, cut_at, status_failure, unreadable_answer
from models.providers.hosts import ANTHROPIC_HOST, is_vendors
from models.schema_export import exported
from models.structured import Draft, checked_reply
from models.transport import (
    Call,
    Failure,
    RetryPolicy,
    http_client,
    open_call,
    quoted,
    usable_key,
    well_formed,
)

API_VERSION: Final = "2023-06-01"
CACHE_MARK: Final[Mapping[str, str]] = {"type": "ephemeral"}
"""Ends a part of the prompt that the server shall cache."""

_WHOLE = frozenset({"end_turn", "stop_sequence", "tool_use"})
_TOO_LONG = frozenset({"max_tokens", "model_context_window_exceeded"})
_ACCOUNT_ERRORS = frozenset({"billing_error", "authentication_error", "permission_error"})
"""Types of errors about the account: no other request succeeds."""


class AnthropicChat:
    """A :class:`models.base.ChatModel` over one server. Serves all workers of one event loop from one pool."""

    def __init__(
        self,
        model: str,
        *,
        spec: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        policy: RetryPolicy | None = None,
        max_concurrent: int | None = None,
    ) -> None:
        self.spec = spec or f"anthropic:{model}"
        self._model = model
        self._key = usable_key(api_key) if api_key else ""
        self._hosted = is_vendors(base_url, ANTHROPIC_HOST)
        server = base_url or f"https://{ANTHROPIC_HOST}"
        self._url = f"{server.rstrip('/').removesuffix('/v1')}/v1/messages"
        self._prices = price_table()
        self._policy = policy or RetryPolicy()
        self._slots = asyncio.Semaphore(max_concurrent) if max_concurrent else None
        self._http = http_client()
        self._dialect = AnthropicDialect.of_model(model)

    async def complete(self, request: ChatRequest) -> ChatReply:
        async with open_call(request.deadline_s, self._policy, self._slots) as call:
            return await checked_reply(request, lambda sent: self._ask(sent, call), call, self._model)

    @property
    def dynamic_thinking(self) -> bool:
        return self._dialect.adaptive

    def thinks_at(self, budget: Budget | None) -> bool:
        dialect = self._dialect
        if dialect.always_thinks:
            return True
        return dialect.default_thinks if budget is None else dialect.can_think and budget != 0

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _ask(self, request: ChatRequest, call: Call) -> Draft:
        while True:
            dialect = self._dialect
            outcome = await call.send(lambda current=dialect: self._attempt(request, current, call))
            if isinstance(outcome, Draft):
                return outcome
            self._dialect = outcome

    async def _attempt(
        self, request: ChatRequest, dialect: AnthropicDialect, call: Call
    ) -> Draft | AnthropicDialect | Failure:
        """One request. Returns a dialect if the server refused a parameter and the request has another form."""
        body = {"model": self._model, **dialect.parameters(request), **wire_prompt(request, dialect)}
        outcome = await self._post(body, dialect, call)
        if not isinstance(outcome, WholeReply):
            return outcome
        failure = unusable(outcome.reply, request.max_tokens) or _no_answer(outcome.reply)
        return failure or Draft(cut_at(well_formed(answer_text(outcome.reply)), request.stop))

    async def _post(
        self, body: dict[str, Any], dialect: AnthropicDialect, call: Call, betas: tuple[str, ...] = ()
    ) -> WholeReply | AnthropicDialect | Failure:
        """Sends *body* once. The reply's usage is charged, whatever it holds."""
        headers = {"anthropic-version": API_VERSION, "content-type": "application/json"}
        if self._key:
            headers["x-api-key"] = self._key
        if betas:
            headers["anthropic-beta"] = ",".join(betas)
        try:
            response = await self._http.post(
                self._url, content=json.dumps(body, ensure_ascii=False).encode(), headers=headers
            )
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            return connection_failure(error, self._url, self._key)
        if response.status_code != 200:
            return self._refused(response, dialect)
        try:
            whole = whole_reply(response.text)
        except (ValueError, RecursionError) as error:
            return unreadable_answer(error, "message of the Messages API")
        call.charge(self._usage(whole.reply.usage))
        return whole

    def _refused(self, response: httpx2.Response, dialect: AnthropicDialect) -> AnthropicDialect | Failure:
        problem, status = wire_error(response.text), response.status_code
        if status == 400 and (simpler := dialect.without(problem.message)) is not None:
            return simpler
        reason = quoted(problem.message or response.reason_phrase, self._key)
        about_account = problem.type in _ACCOUNT_ERRORS or status in (401, 402, 403)
        failure = status_failure(status, reason, response.headers, self._model, self._url)
        return replace(failure, answered=failure.answered and not about_account)

    def _usage(self, wire: WireUsage) -> Usage:
        thinking = wire.output_tokens_details.thinking_tokens if wire.output_tokens_details else 0
        written = wire.cache_creation_input_tokens
        usage = Usage(
            tokens_in=wire.input_tokens + wire.cache_read_input_tokens + written,
            tokens_cached=wire.cache_read_input_tokens,
            tokens_thinking=thinking,
            tokens_out=max(0, wire.output_tokens - thinking),
        )
        priced = self._hosted or own_prices()
        return replace(usage, cost_usd=self._prices.cost_usd(self._model, usage, written=written) if priced else None)


def unusable(reply: WireReply, max_tokens: int) -> Failure | None:
    """Why *reply* is no complete answer, by its stop reason."""
    reason = reply.stop_reason
    if reason in _TOO_LONG:
        limit = (
            f"its limit of {max_tokens} tokens: raise max_tokens" if reason == "max_tokens" else "the model's window"
        )
        return Failure(ModelTruncated, f"the answer hit {limit}", answered=True)
    if reason == "refusal":
        details = reply.stop_details
        why = (details.explanation or details.category) if details else None
        return Failure(ModelRejected, f"the model refused: {quoted(why or 'no reason given')}", answered=True)
    if reason is not None and reason not in _WHOLE:
        return Failure(ModelTruncated, f"the answer broke off (stop_reason {reason!r})", retry=True, answered=True)
    return None


def _no_answer(reply: WireReply) -> Failure | None:
    if answer_text(reply).strip():
        return None
    return Failure(ModelInvalidAnswer, f"the answer is empty (stop_reason {reply.stop_reason!r})", answered=True)


def answer_text(reply: WireReply) -> str:
    """The answer: the input of the tool for structured answers, if it was called, else the visible text."""
    for block in reply.content:
        if block.type == "tool_use" and block.name == ANSWER_TOOL and block.input is not None:
            return json.dumps(block.input, ensure_ascii=False)
    return reply.text


def wire_prompt(request: ChatRequest, dialect: AnthropicDialect) -> dict[str, Any]:
    """System prompt and messages. The system prompt is static, so its end is marked for the prompt cache."""
    system = [message.text for message in request.messages if message.role == "system"]
    if request.schema is not None and dialect.schema_form(schema := exported(request.schema)) == "prompt":
        system.append(schema.described())
    prompt: dict[str, Any] = {
        "messages": [wire_message(message) for message in request.messages if message.role != "system"]
    }
    return prompt | ({"system": wire_system("\n\n".join(system))} if system else {})


def wire_system(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": defuse(well_formed(text)), "cache_control": dict(CACHE_MARK)}]


def wire_message(message: Message) -> dict[str, Any]:
    """A turn, each picture after its text."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": defuse(well_formed(message.text))}]
    return {"role": message.role, "content": parts + [wire_image(image) for image in message.images]}


def wire_image(image: Image) -> dict[str, Any]:
    data = base64.b64encode(image.data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}
