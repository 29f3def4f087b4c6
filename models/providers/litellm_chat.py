"""Chat models over LiteLLM's `acompletion`, which speaks to some hundred providers.

Errors are classified by what was received (:class:`models.providers.litellm_setup.Exchange`). For a provider that does
not use LiteLLM's HTTP client, there is no such record: then the exception's status counts.

A parameter is sent if LiteLLM says that the model takes it. Thinking budgets become `reasoning_effort`, as for OpenAI
(:mod:`models.providers.openai_dialect`), and 0 is `none` for models of others; LiteLLM maps it to the provider's own
parameter. A model that LiteLLM does not know as a reasoning model gets none, unless the request names an effort.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from models.base import (
    Budget,
    ChatReply,
    ChatRequest,
    ModelInvalidAnswer,
    ModelRejected,
    ModelTruncated,
    ModelUnavailable,
    Usage,
)
from models.prices import own_prices, price_table
from models.providers.failures import connection_failure, cut_at, status_failure, unreadable_answer
from models.providers.gemini_finishes import FINISHES, unusable_finish
from models.providers.litellm_setup import Completed, Exchange, loaded, recording
from models.providers.openai_chat import unusable, wire_messages
from models.providers.openai_dialect import Dialect, effort_for
from models.providers.openai_wire import WireReply, WireUsage
from models.schema_export import exported
from models.structured import Draft, checked_reply
from models.thinking import EFFORT_TOKENS
from models.transport import Call, Failure, RetryPolicy, open_call, quoted, well_formed

CLIENT_TIMEOUT_S: Final = 86_400.0
"""LiteLLM's own timeout, which must not end a call: calls have a deadline. One value, because each has a connection
pool of its own."""
EFFORT: Final = frozenset({"reasoning_effort"})
OPTIONAL: Final = ("reasoning_effort", "logprobs", "seed", "stop", "temperature", "response_format")
"""Parameters that are left out once LiteLLM has refused a request with them, in this order; an effort that the request
names is not."""
WHOLE: Final = frozenset(
    {
        *("stop", "eos", "eos_token", "stop_sequence", "stop_token", "end_turn", "complete", "completed", "done"),
        *("finish", "finished", "STOP", "STOP_SEQUENCE", "COMPLETE", "COMPLETED", "FINISH_REASON_UNSPECIFIED"),
    }
)
"""Finish reasons of providers for complete answers. LiteLLM turns others, such as `error`, into `stop` as well."""
_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL")
"""Names of environment variables whose values are masked in errors."""


class LiteLLMChat:
    """A :class:`models.base.ChatModel`. Serves all workers of one event loop."""

    def __init__(
        self,
        provider: str,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        policy: RetryPolicy | None = None,
        max_concurrent: int | None = None,
    ) -> None:
        """*api_key*: in place of the provider's environment variable. Raises :class:`ModelUnavailable` if LiteLLM has
        no such provider."""
        self.spec = f"litellm:{provider}/{model}"
        self._litellm = loaded()
        self._litellm.quiet()
        self._model = model
        self._provider = provider
        self._key = api_key
        self._base_url = base_url
        self._policy = policy or RetryPolicy()
        self._slots = asyncio.Semaphore(max_concurrent) if max_concurrent else None
        self._prices = price_table()
        try:
            known = self._litellm.provider_of(provider, model) == provider
        except Exception:  # noqa: BLE001 - LiteLLM raises exceptions of many kinds
            known = False
        if not known:
            raise ModelUnavailable(f"{self.spec}: LiteLLM has no provider {provider!r}")
        self._taken = self._litellm.parameters(provider, model)
        self._reasoning = "reasoning_effort" in self._taken and self._litellm.reasons(provider, model)
        own = Dialect.of_model(model, hosted=False)
        self._own_temperature = provider in ("gemini", "vertex_ai") and _has_own_temperature(model)
        self._dialect = replace(own, schema_in_prompt=not self._takes_schema())
        self._litellm.opened()

    async def complete(self, request: ChatRequest) -> ChatReply:
        async with open_call(request.deadline_s, self._policy, self._slots) as call:
            return await checked_reply(request, lambda sent: self._ask(sent, call), call, self._model)

    @property
    def dynamic_thinking(self) -> bool:
        return self._reasoning

    def thinks_at(self, budget: Budget | None) -> bool:
        """Without a budget it depends on the provider."""
        return self._reasoning and budget not in (None, 0)

    async def aclose(self) -> None:
        await self._litellm.closed()

    def _takes_schema(self) -> bool:
        return "response_format" in self._taken and self._litellm.takes_schema(self._provider, self._model)

    async def _ask(self, request: ChatRequest, call: Call) -> Draft:
        taken = self._taken
        while True:
            outcome = await call.send(lambda current=taken: self._attempt(request, current, call))
            if isinstance(outcome, Draft):
                return outcome
            taken = outcome
            if request.effort is None:  # what is refused beside a named effort may be taken without it, by other roles
                # Another worker may have changed it meanwhile: keep the refusals of both.
                self._taken &= outcome

    async def _attempt(
        self, request: ChatRequest, taken: frozenset[str], call: Call
    ) -> Draft | frozenset[str] | Failure:
        """One request. Returns the parameters of a next one if LiteLLM refused one of this."""
        optional = self._optional(request, taken)
        with recording() as exchange:
            try:
                completed = await self._litellm.complete(**self._required(request), **optional)
            except Exception as error:  # noqa: BLE001 - LiteLLM raises exceptions of many kinds
                refused = self._refused(request, optional, taken) if self._litellm.unsupported(error) else None
                if refused is not None:
                    return taken - {refused}
                return self._failed(error, exchange)
        return self._draft(completed, request, call)

    def _refused(self, request: ChatRequest, optional: Mapping[str, Any], taken: frozenset[str]) -> str | None:
        """The parameter to leave out next. None: there is none, or the effort that the request names is refused."""
        kept = EFFORT if request.effort is not None else frozenset[str]()  # a named effort is sent whatever is taken
        if not taken >= kept:
            return None
        return next((name for name in OPTIONAL if name in optional and name in taken - kept), None)

    def _required(self, request: ChatRequest) -> dict[str, Any]:
        fixed: dict[str, Any] = {
            "model": f"{self._provider}/{self._model}",
            "messages": wire_messages(request, self._dialect),
            "max_tokens": request.max_tokens + self._room(request),
            "timeout": CLIENT_TIMEOUT_S,
        }
        if self._key is not None:
            fixed["api_key"] = self._key
        if self._base_url is not None:
            fixed["base_url"] = self._base_url
        return fixed

    def _optional(self, request: ChatRequest, taken: frozenset[str]) -> dict[str, Any]:
        wanted: dict[str, Any] = {} if self._own_temperature else {"temperature": request.temperature}
        if request.seed is not None:
            wanted["seed"] = request.seed
        if request.stop:
            wanted["stop"] = list(request.stop)
        if request.logprobs:
            wanted["logprobs"] = True
        if request.schema is not None and not self._dialect.schema_in_prompt:
            schema = exported(request.schema)
            named = {"name": schema.name, "schema": schema.json_schema, "strict": schema.strict}
            wanted["response_format"] = {"type": "json_schema", "json_schema": named}
        word = self._word(request)
        if word is not None:
            wanted["reasoning_effort"] = word
            if word != "none":  # providers refuse another than their default together with thinking
                wanted.pop("temperature", None)
        named = EFFORT if request.effort is not None else frozenset[str]()
        return {name: value for name, value in wanted.items() if name in taken | named}

    def _word(self, request: ChatRequest) -> str | None:
        """An effort that the request names is sent to every model."""
        if request.effort is not None:
            return request.effort
        if self._reasoning and request.thinking_tokens == 0 and not self._dialect.reasoning:
            return "none"
        return effort_for(self._model, request.thinking_tokens).word if self._reasoning else None

    def _room(self, request: ChatRequest) -> int:
        if request.effort is not None:
            return effort_for(self._model, EFFORT_TOKENS[request.effort]).room
        return effort_for(self._model, request.thinking_tokens).room if self._reasoning else 0

    def _failed(self, error: Exception, exchange: Exchange) -> Failure:
        reason = quoted(str(error) or type(error).__name__, self._key or "", *_secrets())
        if exchange.error is not None:
            return connection_failure(exchange.error, f"the server of {self.spec}", self._key or "", *_secrets())
        if exchange.status is None:
            return self._not_sent(error, reason)
        if exchange.status >= 300:
            return self._of_status(exchange.status, reason, exchange.headers)
        if not _is_json(exchange.body):
            return Failure(ModelTruncated, "the answer is not whole JSON", retry=True)
        return Failure(ModelInvalidAnswer, f"no chat completion: {reason}", retry=True, answered=True)

    def _of_status(self, status: int, reason: str, headers: Mapping[str, str]) -> Failure:
        return status_failure(status, reason, headers, self._model, f"the server of {self.spec}")

    def _not_sent(self, error: Exception, reason: str) -> Failure:
        """Nothing was received through LiteLLM's client: it refused the call, or another client sent it."""
        status = getattr(error, "status_code", None)
        if self._litellm.unsupported(error):
            return Failure(ModelRejected, f"{self.spec}: {reason}")
        if (refusal := self._litellm.refused_token(error)) is not None:
            reason = quoted(str(refusal), self._key or "", *_secrets())
            return Failure(ModelUnavailable, f"{self.spec}: no token for the credentials: {reason}")
        if isinstance(error, ImportError) or status in (401, 403):
            return Failure(ModelUnavailable, f"{self.spec}: {reason}")
        if isinstance(status, int):
            return self._of_status(status, reason, {})
        return Failure(ModelRejected, f"{self.spec}: {reason}")

    def _draft(self, completed: Completed, request: ChatRequest, call: Call) -> Draft | Failure:
        try:
            reply = WireReply.model_validate(completed.body)
        except ValidationError as error:
            return unreadable_answer(error, "chat completion")
        call.charge(self._usage(reply.usage or WireUsage(), completed.cost_usd))
        choice, native = reply.choices[0], completed.native_finish
        if native and choice.finish_reason == "stop" and native not in WHOLE:
            choice = choice.model_copy(update={"finish_reason": native})
        failure = unusable_finish(native) if native in FINISHES else None
        failure = failure or unusable(choice, request)
        if failure is not None:
            return failure
        tokens = choice.logprobs.content if choice.logprobs else None
        return Draft(
            text=cut_at(well_formed(choice.message.content or ""), request.stop),
            logprobs=None if tokens is None else tuple(token.logprob for token in tokens),
        )

    def _usage(self, wire: WireUsage, listed_usd: float | None) -> Usage:
        thinking = wire.completion_tokens_details.reasoning_tokens if wire.completion_tokens_details else 0
        usage = Usage(
            tokens_in=wire.prompt_tokens,
            tokens_cached=wire.prompt_tokens_details.cached_tokens if wire.prompt_tokens_details else 0,
            tokens_thinking=thinking,
            tokens_out=max(0, wire.completion_tokens - thinking),
        )
        return Usage(
            usage.tokens_in, usage.tokens_cached, usage.tokens_thinking, usage.tokens_out, self._cost(usage, listed_usd)
        )

    def _cost(self, usage: Usage, listed_usd: float | None) -> float | None:
        if own_prices() and self._prices.knows(self._model):
            return self._prices.cost_usd(self._model, usage)
        return listed_usd if self._base_url is None and self._litellm.prices(self._provider, self._model) else None


def _secrets() -> list[str]:
    """The values of environment variables that LiteLLM may send as keys."""
    return [value for name, value in os.environ.items() if len(value) >= 8 and _SECRET.search(name.upper())]


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _has_own_temperature(gemini: str) -> bool:
    """Google advises the default temperature from Gemini 3 on."""
    from models.providers.gemini_families import family_of

    return family_of(gemini).own_temperature
