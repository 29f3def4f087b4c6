"""Google Gemini through `google-genai`.

What a model family takes is in :mod:`models.providers.gemini_families`. Thinking budgets are sent as they are, clamped
to what the model takes; from Gemini 3 on there are levels instead, and a budget becomes a level:

| model                  | range, tokens          | 0 means                          |
|------------------------|------------------------|----------------------------------|
| gemini-2.5-pro         | 128 … 32,768           | 128: thinking cannot be turned off     |
| gemini-2.5-flash       | 0 … 24,576             | no thinking                      |
| gemini-2.5-flash-lite  | 512 … 24,576, or 0     | no thinking                      |
| gemini-3 and later     | level `low` to 1,024, `medium` to 8,192, above `high`; 0 is `minimal` |
| the same, without that level | the next higher level |                             |
| before gemini-2.5      | never sent             | (no thinking)                    |

`auto` is the dynamic mode: budget -1, and from Gemini 3 on no level, whose default is dynamic.

The server counts thinking against `max_output_tokens`, so the budget, or room for the level, is added to
`ChatRequest.max_tokens`. From Gemini 3 on no temperature is sent, and the thought signature of an answer is sent back
with it. Log-probabilities and token ids are not available. Vertex AI is never used, regardless of the environment.
"""

from __future__ import annotations

import asyncio
import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

import httpx2
from google import genai
from google.genai import errors, types

from models.base import (
    Budget,
    ChatReply,
    ChatRequest,
    Message,
    ModelInvalidAnswer,
    ModelRejected,
    ModelTruncated,
    Usage,
)
from models.prices import price_table
from models.prompting.fence import defuse
from models.providers.failures import connection_failure, status_failure, unreadable_answer
from models.providers.gemini_families import Family, family_of
from models.providers.gemini_finishes import FINISHES, Finish, unusable_finish
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

API_VERSION = "v1beta"
"""Has all models; `v1`, the package's default, lacks preview models and `-latest` names."""

_RETRY_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_ABOUT_KEY: Final = "API_KEY_"
"""What reasons (`google.rpc.ErrorInfo`) about the API key begin with. A wrong key has HTTP status 400."""


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
        self._family = family_of(model)
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
        _ignore_new_values()
        self._client = genai.Client(vertexai=False, api_key=self._key, http_options=options)

    async def complete(self, request: ChatRequest) -> ChatReply:
        async with open_call(request.deadline_s, self._policy, self._slots) as call:
            return await checked_reply(request, lambda sent: self._ask(sent, call), call, self._model)

    @property
    def dynamic_thinking(self) -> bool:
        return self._family.thinking is not None

    def thinks_at(self, budget: Budget | None) -> bool:
        return self._family.thinks_at(budget)

    async def aclose(self) -> None:
        await self._client.aio.aclose()
        await self._http.aclose()

    async def _ask(self, request: ChatRequest, call: Call) -> Draft:
        while True:
            family = self._family
            outcome = await call.send(lambda current=family: self._attempt(request, current, call))
            if isinstance(outcome, Draft):
                return outcome
            self._family = outcome

    async def _attempt(self, request: ChatRequest, family: Family, call: Call) -> Draft | Family | Failure:
        """One request. Returns a Family if the server refused what was a guess, for a request without it."""
        try:
            reply = await self._client.aio.models.generate_content(
                model=self._model,
                contents=cast("Any", wire_contents(request.messages)),
                config=wire_config(request, family),
            )
        except errors.APIError as error:
            failure = self._refused(error)
            guessed = error.code == 400 and failure.answered and not family.certain
            return family.plain() if guessed else failure
        except httpx2.RequestError as error:
            return connection_failure(error, "the Gemini server", self._key)
        except (ValueError, RecursionError) as error:
            return unreadable_answer(error, "generate-content answer")
        return self._draft(reply, request, call)

    def _refused(self, error: errors.APIError) -> Failure:
        response: Any = error.response
        headers: Mapping[str, str] = {} if response is None else response.headers
        reason = quoted(error.message or error.status or "no reason given", self._key)
        about_key = error.code in (401, 403) or _error_reason(error.details).startswith(_ABOUT_KEY)
        if about_key and error.code not in (401, 403):
            reason += " (check the API key)"
        failure = status_failure(error.code, reason, headers, self._model, "the Gemini server")
        wait_s = _retry_delay_s(error.details)
        if failure.retry and failure.retry_after_s is None and wait_s is not None:
            return replace(failure, retry_after_s=wait_s)
        return replace(failure, answered=failure.answered and not about_key)

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
        return failure or Draft(well_formed(text), signature=_signature(candidate))

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


def wire_config(request: ChatRequest, family: Family) -> types.GenerateContentConfig:
    """The configuration of a request: all but its turns."""
    system = "\n\n".join(defuse(well_formed(message.text)) for message in request.messages if message.role == "system")
    pictures = any(message.images for message in request.messages)
    config = types.GenerateContentConfig(
        system_instruction=system or None,
        temperature=None if family.own_temperature else request.temperature,
        seed=request.seed,
        stop_sequences=list(request.stop) or None,
        max_output_tokens=request.max_tokens + family.room(request),
        thinking_config=family.thinking_config(request),
        media_resolution=family.resolution if pictures else None,
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
    text = types.Part(text=defuse(well_formed(message.text)), thought_signature=message.signature)
    pictures = [types.Part.from_bytes(data=image.data, mime_type=image.media_type) for image in message.images]
    return types.Content(role="model" if message.role == "assistant" else "user", parts=[text, *pictures])


def _parts(candidate: types.Candidate) -> list[types.Part]:
    return (candidate.content.parts if candidate.content else None) or []


def _visible_text(candidate: types.Candidate) -> str:
    return "".join(part.text for part in _parts(candidate) if part.text and not part.thought)


def _signature(candidate: types.Candidate) -> bytes | None:
    """The last thought signature; that of a text may be on an empty part after it."""
    return next((part.thought_signature for part in reversed(_parts(candidate)) if part.thought_signature), None)


def _unusable(finish: types.FinishReason | None, text: str, request: ChatRequest) -> Failure | None:
    reason = finish.value if finish else ""
    if FINISHES.get(reason) is Finish.TRUNCATED:
        limit = f"the answer hit its limit of {request.max_tokens} tokens: raise max_tokens"
        return Failure(ModelTruncated, limit, answered=True)
    failure = unusable_finish(reason)
    if failure is None and not text.strip():
        empty = f"the answer is empty (finish reason {reason or 'missing'})"
        return Failure(ModelInvalidAnswer, empty, answered=True)
    return failure


def _ignore_new_values() -> None:
    """Hides the package's warning about a value of an enumeration that it does not know, such as a finish reason."""
    warnings.filterwarnings("ignore", r".* is not a valid \w+", UserWarning, r"google\.genai\._common")


def _error_reason(details: Any) -> str:
    """The reason in `google.rpc.ErrorInfo` of an error body; empty without one."""
    return next((str(item["reason"]) for item in _error_details(details) if "reason" in item), "")


def _retry_delay_s(details: Any) -> float | None:
    """The wait in `google.rpc.RetryInfo` of an error body, which Gemini sends with 429."""
    delays = [
        _RETRY_DELAY.fullmatch(str(item["retryDelay"])) for item in _error_details(details) if "retryDelay" in item
    ]
    return next((float(match.group(1)) for match in delays if match), None)


def _error_details(details: Any) -> list[dict[str, Any]]:
    """`error.details` of an error body; empty if it has another form."""
    try:
        items = details["error"]["details"]
    except (KeyError, TypeError):
        return []
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
