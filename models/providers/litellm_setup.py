"""Imports LiteLLM with its global state pinned down. Everything of it that is not its public API is used here alone.

* No network but model calls: the tables of prices and headers are those of the installed package.
* No `.env` file is read into the environment of the process, which LiteLLM otherwise does when it is imported.
* Nothing is printed, and no callback is registered: no call is reported to anyone.
* Each HTTP exchange of a call of ours is recorded (:class:`Exchange`), because LiteLLM classifies errors by searching
  their text, which may quote a page. Redirects are not followed, so that no key is carried to another host. Calls that
  other code of the process makes through LiteLLM are left alone.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Final

import httpx

ENVIRONMENT: Final[Mapping[str, str]] = {
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",
}
"""Set before LiteLLM is imported, and kept, because it reads some of them at each call. The last one: no `.env`."""
LOGGERS: Final = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
NOISE: Final = (".*`ReadOnly` qualifier", ".*conflict with protected namespace", "Pydantic serializer warnings")
"""Beginnings of warnings about types of LiteLLM."""


@dataclass(slots=True)
class Exchange:
    """What was last received for a call."""

    status: int | None = None
    """HTTP status; None if there was no answer."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    error: httpx.TransportError | httpx.DecodingError | None = None
    """Why there is no whole answer."""


_EXCHANGE: Final[ContextVar[Exchange | None]] = ContextVar("litellm_exchange", default=None)


@contextmanager
def recording() -> Generator[Exchange]:
    """Records the HTTP exchanges of calls inside the block."""
    exchange = Exchange()
    before = _EXCHANGE.set(exchange)
    try:
        yield exchange
    finally:
        _EXCHANGE.reset(before)


class RecordingTransport(httpx.AsyncBaseTransport):
    """Receives whole answers through *inner*, and records them in the current :class:`Exchange`."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner
        self.ours = _EXCHANGE.get() is not None
        """Made for a call that is recorded."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = _EXCHANGE.get()
        if exchange is None:
            return await self._inner.handle_async_request(request)
        exchange.status, exchange.headers, exchange.body, exchange.error = None, {}, b"", None
        try:
            response = await self._inner.handle_async_request(request)
            response.request = request
            exchange.body = await response.aread()
        except (httpx.TransportError, httpx.DecodingError) as error:
            exchange.error = error
            raise
        exchange.status, exchange.headers = response.status_code, response.headers
        if response.is_redirect:
            raise httpx.RemoteProtocolError("redirects are not followed", request=request)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass(frozen=True, slots=True)
class Completed:
    body: Mapping[str, Any]
    """A chat completion in OpenAI's form."""
    cost_usd: float | None
    """By LiteLLM's table, for the provider's own server."""

    @property
    def native_finish(self) -> str:
        """The provider's finish reason; empty if it is that of the body."""
        choices = self.body.get("choices") or [{}]
        return (choices[0].get("provider_specific_fields") or {}).get("native_finish_reason") or ""


class LiteLLM:
    """The parts of LiteLLM that are used."""

    def __init__(self) -> None:
        os.environ.update(ENVIRONMENT)
        self._package: Any = import_module("litellm")
        self._models = 0
        self._package.suppress_debug_info = True
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        handler = import_module("litellm.llms.custom_httpx.http_handler").AsyncHTTPHandler
        make = handler.create_async_transport

        def recorded(*args: Any, **settings: Any) -> httpx.AsyncBaseTransport:
            return RecordingTransport(make(*args, **settings) or httpx.AsyncHTTPTransport())

        handler.create_async_transport = staticmethod(recorded)

    async def complete(self, **arguments: Any) -> Completed:
        """One request, without retries, fallbacks or caches of LiteLLM."""
        reply = await self._package.acompletion(
            **arguments, num_retries=0, max_retries=0, drop_params=False, caching=False, stream=False
        )
        cost_usd = reply._hidden_params.get("response_cost")
        return Completed(reply.model_dump(), None if cost_usd is None else float(cost_usd))

    def provider_of(self, provider: str, model: str) -> str:
        """LiteLLM's name of *provider*. Raises an exception of LiteLLM if it knows none."""
        return self._package.get_llm_provider(model=f"{provider}/{model}")[1]

    def parameters(self, provider: str, model: str) -> frozenset[str]:
        """The names of the parameters, in OpenAI's terms, that the model takes."""
        named = self._package.get_supported_openai_params(model=model, custom_llm_provider=provider)
        return frozenset(named or ())

    def takes_schema(self, provider: str, model: str) -> bool:
        return bool(self._package.supports_response_schema(model=model, custom_llm_provider=provider))

    def reasons(self, provider: str, model: str) -> bool:
        return bool(self._package.supports_reasoning(model=model, custom_llm_provider=provider))

    def unsupported(self, error: Exception) -> bool:
        """Whether LiteLLM refused a parameter, before anything was sent."""
        return isinstance(error, self._package.UnsupportedParamsError)

    def refused_token(self, error: Exception) -> Exception | None:
        """Why Google gave no token for the credentials of Vertex AI; None if this is not why the call failed, or if
        another attempt may succeed. LiteLLM reports it as a connection error with a status that no server sent."""
        from google.auth.exceptions import RefreshError

        cause = error.__cause__ or error.__context__
        return cause if isinstance(cause, RefreshError) and not cause.retryable else None

    def prices(self, provider: str, model: str) -> bool:
        """Whether LiteLLM's table has a price of the model."""
        rows = (self._package.model_cost.get(name) for name in (f"{provider}/{model}", model))
        return any(row and row.get("input_cost_per_token") is not None for row in rows)

    def quiet(self) -> None:
        """Hides warnings about the inside of LiteLLM, which it imports in parts as it needs them."""
        for text in NOISE:
            warnings.filterwarnings("ignore", text)

    def opened(self) -> None:
        """Counts a model that uses the connections."""
        self._models += 1

    async def closed(self) -> None:
        """Closes all connections of calls of ours with the last model.

        The clients also leave LiteLLM's cache, which would give them out again."""
        self._models -= 1
        if self._models > 0:
            return
        clients = self._package.in_memory_llm_clients_cache
        for key, holder in list(clients.cache_dict.items()):
            client = getattr(holder, "_client", None)
            transport = getattr(client, "_transport", None)
            if isinstance(client, httpx.AsyncClient) and isinstance(transport, RecordingTransport) and transport.ours:
                clients.cache_dict.pop(key, None)
                with suppress(RuntimeError):  # of an event loop that has ended
                    await client.aclose()


@cache
def loaded() -> LiteLLM:
    """LiteLLM, imported at the first call, which takes some seconds."""
    return LiteLLM()
