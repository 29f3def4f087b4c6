"""Google Gemini through `google-genai`.

Thinking budgets are sent as they are (`ThinkingConfig.thinking_budget`), clamped to what the model takes; from Gemini 3
on there are levels instead, and a budget becomes the matching level:

| model                  | range, tokens          | 0 means                          |
|------------------------|------------------------|----------------------------------|
| gemini-2.5-pro         | 128 … 32,768           | 128: thinking cannot be turned off     |
| gemini-2.5-flash       | 0 … 24,576             | no thinking                      |
| gemini-2.5-flash-lite  | 512 … 24,576, or 0     | no thinking                      |
| gemini-3 and later     | level `low` to 1,024, `medium` to 8,192, above `high`; 0 is `minimal` |
| the same, Pro          | level `low` to 8,192, above `high`: no other levels    ||
| before gemini-2.5      | never sent             | (no thinking)                |

`auto` is the dynamic mode: budget -1, and from Gemini 3 on no level, whose default is dynamic.

The server counts thinking against `max_output_tokens`, so the budget, or room for the level, is added to
`ChatRequest.max_tokens`. Log-probabilities and token ids are not available. Vertex AI is never used,
regardless of the environment.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import httpx2
from google import genai
from google.genai import errors, types
from pydantic import ValidationError

from models.base import (
    Budget,
    ChatReply,
    ChatRequest,
    Message,
    ModelBusy,
    ModelInvalidAnswer,
    ModelRejected,
    ModelTruncated,
    ModelUnavailable,
    Usage,
)
from models.prices import price_table
from models.prompting.fence import defuse
from models.schema_export import exported
from models.structured import Draft, checked_reply
from models.transport import (
    Call,
    Failure,
    RetryPolicy,
    failure_of_status,
    http_client,
    open_call,
    quoted,
    usable_key,
    well_formed,
)

DYNAMIC = -1
"""The budget with which the model chooses how long it thinks."""
DEFAULT_ROOM = 16_384
"""Tokens added to the limit for thinking if the model chooses its own budget."""

API_VERSION = "v1beta"
"""Has all models; `v1`, the package's default, lacks preview models and `-latest` names."""

_RETRY_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_TRUNCATED = frozenset({"MAX_TOKENS", "CONTINUATION"})
_WHOLE = frozenset({"STOP", "FINISH_REASON_UNSPECIFIED", ""})
_MALFORMED = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "OTHER"})
"""Finish reasons after which a retry may help. All reasons not listed are refusals."""


class GeminiChat:
    """A :class:`models.base.ChatModel`. Serves all workers of one event loop from one connection pool."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str | None = None,
        policy: RetryPolicy | None = None,
        max_concurrent: int | None = None,
    ) -> None:
        self.spec = f"gemini:{model}"
        self._model = model
        self._key = usable_key(api_key)
        self._policy = policy or RetryPolicy()
        self._slots = asyncio.Semaphore(max_concurrent) if max_concurrent else None
        self._prices = price_table()
        self._http = http_client()
        options = types.HttpOptions(
            base_url=base_url,
            api_version=API_VERSION,
            httpx_async_client=self._http,
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        self._client = genai.Client(vertexai=False, api_key=self._key, http_options=options)

    async def complete(self, request: ChatRequest) -> ChatReply:
        async with open_call(request.deadline_s, self._policy, self._slots) as call:
            return await checked_reply(request, lambda sent: self._ask(sent, call), call, self._model)

    @property
    def dynamic_thinking(self) -> bool:
        return thinks(self._model)

    def thinks_at(self, budget: Budget | None) -> bool:
        asked = budget != 0 if budget is not None else "2.5-flash-lite" not in self._model
        return thinks(self._model) and asked

    async def aclose(self) -> None:
        await self._client.aio.aclose()
        await self._http.aclose()

    async def _ask(self, request: ChatRequest, call: Call) -> Draft:
        return await call.send(lambda: self._attempt(request, call))

    async def _attempt(self, request: ChatRequest, call: Call) -> Draft | Failure:
        try:
            reply = await self._client.aio.models.generate_content(
                model=self._model,
                contents=cast("Any", wire_contents(request.messages)),
                config=wire_config(request, self._model),
            )
        except errors.APIError as error:
            return self._refused(error)
        except httpx2.RequestError as error:
            return self._unreachable(error)
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"])
            return Failure(ModelInvalidAnswer, f"no generate-content answer: {where}", retry=True, answered=True)
        except (ValueError, RecursionError):
            # The package's errors quote the whole body, so only the cause is reported.
            return Failure(ModelTruncated, "the answer is not whole JSON", retry=True)
        return self._draft(reply, request, call)

    def _refused(self, error: errors.APIError) -> Failure:
        response: Any = error.response
        headers: Mapping[str, str] = {} if response is None else response.headers
        reason = quoted(error.message or error.status or "no reason given", self._key)
        about_key = error.code in (401, 403) or "API key" in reason
        if about_key:
            reason += " (check the API key)"
        elif error.code == 404:
            reason += f" (requested model {self._model!r})"
        elif 300 <= error.code < 400:
            reason = f"redirects are not followed: set base_url to {headers.get('location', 'the new place')!r}"
        failure = failure_of_status(error.code, reason, headers)
        wait_s = _retry_delay_s(error.details)
        if failure.retry and failure.retry_after_s is None and wait_s is not None:
            return replace(failure, retry_after_s=wait_s)
        return replace(failure, answered=failure.answered and not about_key)

    def _unreachable(self, error: httpx2.RequestError) -> Failure:
        reason = quoted(f"{type(error).__name__}: {error}", self._key)
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            return Failure(ModelUnavailable, f"cannot reach the Gemini server: {reason}", retry=True)
        if isinstance(error, httpx2.UnsupportedProtocol):
            return Failure(ModelUnavailable, f"base URL: {reason}")
        if isinstance(error, httpx2.RemoteProtocolError | httpx2.ReadError | httpx2.DecodingError):
            return Failure(ModelTruncated, f"the answer broke off: {reason}", retry=True)
        return Failure(ModelBusy, f"the connection failed: {reason}", retry=True)

    def _draft(self, reply: types.GenerateContentResponse, request: ChatRequest, call: Call) -> Draft | Failure:
        call.charge(self._usage(reply.usage_metadata))
        blocked = reply.prompt_feedback and reply.prompt_feedback.block_reason
        if blocked:
            return Failure(ModelRejected, f"the server blocked the prompt ({blocked.value})", answered=True)
        if not reply.candidates:
            return Failure(ModelInvalidAnswer, "no candidate in the answer", retry=True, answered=True)
        candidate = reply.candidates[0]
        text = _visible_text(candidate)
        failure = _unusable(candidate.finish_reason, text, request)
        return failure or Draft(well_formed(text))

    def _usage(self, wire: types.GenerateContentResponseUsageMetadata | None) -> Usage:
        wire = wire or types.GenerateContentResponseUsageMetadata()
        counts = Usage(
            tokens_in=wire.prompt_token_count or 0,
            tokens_cached=wire.cached_content_token_count or 0,
            tokens_thinking=wire.thoughts_token_count or 0,
            tokens_out=wire.candidates_token_count or 0,
        )
        cost_usd = self._prices.cost_usd(self._model, counts)
        return Usage(counts.tokens_in, counts.tokens_cached, counts.tokens_thinking, counts.tokens_out, cost_usd)


def thinking_budget(model: str, thinking_tokens: Budget | None) -> int | None:
    """The budget to send, by the table above; None if none is sent."""
    if thinking_tokens is None or not thinks(model) or has_levels(model):
        return None
    if thinking_tokens == "auto":
        return DYNAMIC
    if "flash-lite" in model:
        return 0 if thinking_tokens <= 0 else min(max(thinking_tokens, 512), 24_576)
    if "2.5-flash" in model:
        return min(max(thinking_tokens, 0), 24_576)
    return min(max(thinking_tokens, 128), 32_768)


def thinking_level(model: str, thinking_tokens: Budget | None) -> types.ThinkingLevel | None:
    """The level to send, by the table above; None if none is sent."""
    if thinking_tokens is None or thinking_tokens == "auto" or not has_levels(model):
        return None
    if thinking_tokens > 8_192:
        return types.ThinkingLevel.HIGH
    if "pro" in model:
        return types.ThinkingLevel.LOW
    if thinking_tokens > 1_024:
        return types.ThinkingLevel.MEDIUM
    return types.ThinkingLevel.LOW if thinking_tokens > 0 else types.ThinkingLevel.MINIMAL


def has_levels(model: str) -> bool:
    """Whether thinking is set by levels: Gemini 3 and later."""
    return re.search(r"gemini-(?:[3-9]|\d\d)", model) is not None


def thinks(model: str) -> bool:
    """Whether the model thinks: Gemini 2.5 and later. Earlier ones refuse a budget."""
    return re.search(r"gemini-(?:1\.|2\.0)", model) is None and "gemini" in model


def wire_config(request: ChatRequest, model: str) -> types.GenerateContentConfig:
    """The configuration of a request: all but its turns."""
    system = "\n\n".join(defuse(well_formed(message.text)) for message in request.messages if message.role == "system")
    budget = thinking_budget(model, request.thinking_tokens)
    level = thinking_level(model, request.thinking_tokens)
    thinking = None
    if budget is not None or level is not None:
        thinking = types.ThinkingConfig(thinking_budget=budget, thinking_level=level)
    asked = request.thinking_tokens if isinstance(request.thinking_tokens, int) else 0
    room = (max(DEFAULT_ROOM, asked) if budget in (None, DYNAMIC) else budget) if thinks(model) else 0
    config = types.GenerateContentConfig(
        system_instruction=system or None,
        temperature=request.temperature,
        seed=request.seed,
        stop_sequences=list(request.stop) or None,
        max_output_tokens=request.max_tokens + room,
        thinking_config=thinking,
        automatic_continuation=False,
    )
    if request.schema is not None:
        config.response_mime_type = "application/json"
        config.response_json_schema = exported(request.schema).json_schema
    return config


def wire_contents(messages: tuple[Message, ...]) -> list[types.Content]:
    """The turns in order, each picture after its text. System messages are part of the configuration."""
    return [_content(message) for message in messages if message.role != "system"]


def _content(message: Message) -> types.Content:
    parts = [types.Part.from_text(text=defuse(well_formed(message.text)))]
    parts += [types.Part.from_bytes(data=image.data, mime_type=image.media_type) for image in message.images]
    return types.Content(role="model" if message.role == "assistant" else "user", parts=parts)


def _visible_text(candidate: types.Candidate) -> str:
    parts = (candidate.content.parts if candidate.content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def _unusable(finish: types.FinishReason | None, text: str, request: ChatRequest) -> Failure | None:
    reason = finish.value if finish else ""
    if reason in _TRUNCATED:
        limit = f"the answer hit its limit of {request.max_tokens} tokens: raise max_tokens"
        return Failure(ModelTruncated, limit, answered=True)
    if reason in _MALFORMED:
        return Failure(ModelInvalidAnswer, f"the model gave no usable answer ({reason})", retry=True, answered=True)
    if reason not in _WHOLE:
        return Failure(ModelRejected, f"the model refused ({reason})", answered=True)
    if not text.strip():
        empty = f"the answer is empty (finish reason {reason or 'missing'})"
        return Failure(ModelInvalidAnswer, empty, answered=True)
    return None


def _retry_delay_s(details: Any) -> float | None:
    """The wait in `google.rpc.RetryInfo` of an error body, which Gemini sends with 429."""
    try:
        items: list[dict[str, Any]] = details["error"]["details"]
        delays = [_RETRY_DELAY.fullmatch(item["retryDelay"]) for item in items if "retryDelay" in item]
    except (KeyError, TypeError):
        return None
    return next((float(match.group(1)) for match in delays if match), None)
