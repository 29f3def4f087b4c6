"""Chat models over OpenAI's chat-completions protocol: OpenAI, vLLM, llama.cpp, Ollama.

Answers are not streamed: a truncated body is detected by its length or its JSON, and `finish_reason` says whether the
answer is complete. If a server refuses a parameter, later requests use another form
(:class:`models.providers.openai_dialect.Dialect`).
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import openai

from models.base import (
    Budget,
    ChatReply,
    ChatRequest,
    Effort,
    Message,
    ModelInvalidAnswer,
    ModelRejected,
    ModelTruncated,
    SampledTokens,
    Usage,
)
from models.prices import own_prices, price_table
from models.prompting.fence import defuse
from models.providers.failures import connection_failure, cut_at, status_failure, unreadable_answer
from models.providers.hosts import OPENAI_HOST, is_vendors
from models.providers.openai_dialect import Dialect, names_schema
from models.providers.openai_wire import WireChoice, WireUsage, wire_error, wire_reply
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

if TYPE_CHECKING:
    from httpx2 import Response

NO_KEY = "none"
"""Sent to servers without keys, because the client requires one."""

_WHOLE = frozenset({None, "stop", "eos", "eos_token", "stop_sequence"})
"""Finish reasons of complete answers. Others (`abort`, `error`) mark partial ones."""
_SPENT_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Codes of 429 errors for which a retry is useless."""


class OpenAIChat:
    """A :class:`models.base.ChatModel` over one server. Serves all workers of one event loop from one pool."""

    def __init__(
        self,
        model: str,
        *,
        spec: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        dialect: Dialect | None = None,
        policy: RetryPolicy | None = None,
        max_concurrent: int | None = None,
    ) -> None:
        self.spec = spec or f"openai:{model}"
        self._model = model
        self._key = usable_key(api_key or NO_KEY)
        self._prices = price_table()
        self._policy = policy or RetryPolicy()
        self._slots = asyncio.Semaphore(max_concurrent) if max_concurrent else None
        self._client = openai.AsyncOpenAI(
            api_key=self._key, base_url=base_url, max_retries=0, timeout=None, http_client=http_client()
        )
        # From the client, because the address may also come from the environment.
        hosted = is_vendors(str(self._client.base_url), OPENAI_HOST)
        self._dialect = dialect or Dialect.of_model(model, hosted=hosted)

    async def complete(self, request: ChatRequest) -> ChatReply:
        async with open_call(request.deadline_s, self._policy, self._slots) as call:
            return await checked_reply(request, lambda sent: self._ask(sent, call), call, self._model)

    @property
    def dynamic_thinking(self) -> bool:
        return self._dialect.reasoning

    def thinks_at(self, budget: Budget | None) -> bool:
        """On vLLM it is known only where a budget switches it on."""
        if self._dialect.reasoning:
            return budget != 0
        return self._dialect.token_ids and budget not in (None, 0)

    async def aclose(self) -> None:
        await self._client.close()

    async def _ask(self, request: ChatRequest, call: Call) -> Draft:
        while True:
            dialect = self._dialect
            outcome = await call.send(lambda current=dialect: self._attempt(request, current, call))
            if isinstance(outcome, Draft):
                return outcome
            # Another worker may have changed it meanwhile: keep the refusals of both.
            self._dialect = self._dialect.merged(outcome)

    async def _attempt(self, request: ChatRequest, dialect: Dialect, call: Call) -> Draft | Dialect | Failure:
        """One request. Returns a Dialect if the server refused a parameter and the request has another form."""
        try:
            raw = await self._client.chat.completions.with_raw_response.create(
                model=self._model,
                messages=wire_messages(request, dialect),  # type: ignore[arg-type]
                extra_body=dialect.parameters(request),
            )
        except openai.APIStatusError as error:
            return self._refused(error.response, dialect, request.effort)
        except openai.APIConnectionError as error:
            return connection_failure(error.__cause__ or error, str(self._client.base_url), self._key)
        return self._draft(raw.text, request, call)

    def _refused(self, response: Response, dialect: Dialect, effort: Effort | None) -> Dialect | Failure:
        problem = wire_error(response.text)
        reason = quoted(problem.message or response.reason_phrase, self._key)
        status = response.status_code
        # llama-cpp-python answers a request that it cannot read with 500
        if status in (400, 422) or (status == 500 and names_schema(problem.param, problem.message)):
            simpler = dialect.without(problem.param, problem.message, effort)
            if simpler is not None:
                return simpler
        if status == 429 and problem.code in _SPENT_CODES:
            return Failure(ModelRejected, f"HTTP 429: {reason}")
        return status_failure(status, reason, response.headers, self._model, str(self._client.base_url))

    def _draft(self, body: str, request: ChatRequest, call: Call) -> Draft | Failure:
        try:
            reply = wire_reply(body)
        except (ValueError, RecursionError) as error:
            return unreadable_answer(error, "chat completion")
        call.charge(self._usage(reply.usage or WireUsage()))
        choice = reply.choices[0]
        tokens = choice.logprobs.content if choice.logprobs else None
        logprobs = None if tokens is None else tuple(token.logprob for token in tokens)
        failure = unusable(choice, request)
        if failure is not None:
            return replace(failure, sampled=SampledTokens(reply.prompt_token_ids, choice.token_ids, logprobs))
        return Draft(
            text=cut_at(well_formed(choice.message.content or ""), request.stop),
            prompt_token_ids=reply.prompt_token_ids,
            completion_token_ids=choice.token_ids,
            logprobs=logprobs,
        )

    def _usage(self, wire: WireUsage) -> Usage:
        thinking = wire.completion_tokens_details.reasoning_tokens if wire.completion_tokens_details else 0
        usage = Usage(
            tokens_in=wire.prompt_tokens,
            tokens_cached=wire.prompt_tokens_details.cached_tokens if wire.prompt_tokens_details else 0,
            tokens_thinking=thinking,
            tokens_out=max(0, wire.completion_tokens - thinking),
        )
        cost_usd = self._prices.cost_usd(self._model, usage) if self._dialect.priced or own_prices() else None
        return Usage(usage.tokens_in, usage.tokens_cached, usage.tokens_thinking, usage.tokens_out, cost_usd)


def unusable(choice: WireChoice, request: ChatRequest) -> Failure | None:
    """Why *choice* is no answer to *request*; None if it is one."""
    if choice.finish_reason == "length":
        reason = f"the answer hit its limit of {request.max_tokens} tokens: raise max_tokens"
        return Failure(ModelTruncated, reason, answered=True)
    if choice.message.refusal:
        return Failure(ModelRejected, f"the model refused: {quoted(choice.message.refusal)}", answered=True)
    if choice.finish_reason == "content_filter":
        return Failure(ModelRejected, "the server's content filter withheld the answer", answered=True)
    if choice.finish_reason not in _WHOLE:
        reason = f"the answer broke off (finish_reason {choice.finish_reason!r})"
        return Failure(ModelTruncated, reason, retry=True, answered=True)
    if not (choice.message.content or "").strip():
        reason = f"the answer is empty (finish_reason {choice.finish_reason!r})"
        return Failure(ModelInvalidAnswer, reason, answered=True)
    return None


def wire_messages(request: ChatRequest, dialect: Dialect) -> list[dict[str, Any]]:
    """The messages in order, the pictures of each as data URLs before its text, as vision models are trained."""
    messages = request.messages
    if request.schema is not None and dialect.schema_in_prompt:
        messages = _with_instruction(messages, exported(request.schema).described())
    return [_wire_message(message, templated=dialect.templated) for message in messages]


def _with_instruction(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """Appends *text* to the first system message, because many chat templates allow no second one."""
    if messages and messages[0].role == "system":
        return (replace(messages[0], text=f"{messages[0].text}\n\n{text}"), *messages[1:])
    return (Message("system", text), *messages)


def _wire_message(message: Message, *, templated: bool) -> dict[str, Any]:
    text = well_formed(message.text)
    text = defuse(text) if templated else text
    if not message.images:
        return {"role": message.role, "content": text}
    parts: list[dict[str, Any]] = []
    for image in message.images:
        url = f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return {"role": message.role, "content": [*parts, {"type": "text", "text": text}]}
