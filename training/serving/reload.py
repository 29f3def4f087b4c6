"""Loads a new adapter into a running vLLM server, so that the next phase's rollouts use the new policy.

The server must have been started with `--enable-lora` and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1, and must see the folder
under the same path. The policy's name (`vllm:URL#NAME`) stays; its adapter is replaced in place.

Two properties of vLLM (0.32) determine the rules:

* reloading a name from the *same path* keeps the prefix cache of the old weights. Every phase therefore exports to a
  new folder (:mod:`training.serving.export` never replaces one), and `put` rejects a folder that is already loaded;
* a request during the reload may end on the old or the new weights. Reload between phases, without requests in flight.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from envs.core.errors import BadInput
from models.base import ModelError, ModelRejected, ModelUnavailable
from models.local.safe_loading import ADAPTER_CONFIG, adapter_problem
from models.providers.openai_wire import wire_error
from models.transport import Call, Failure, RetryPolicy, failure_of_status, http_client, open_call, quoted, usable_key

if TYPE_CHECKING:
    from httpx2 import Response

DEADLINE_S: Final = 120.0
"""Timeout of one call to the server in seconds, retries included. Loading reads the adapter from disk."""

NO_ROUTE: Final = '"detail"'
"""Key of FastAPI's 404 for a missing route. vLLM's 404 for a missing adapter has `error`."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class ServedModel(BaseModel):
    """One model or adapter in the server's list."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    root: str | None = None
    """Path of the weights, or of the adapter."""
    parent: str | None = None
    """The base's name, for an adapter; None for the base itself."""


class _Served(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    data: tuple[ServedModel, ...]


class AdapterServer:
    """The adapters of one vLLM server. Use as an async context manager, or `aclose` it."""

    def __init__(
        self, url: str, *, api_key: str | None = None, deadline_s: float = DEADLINE_S, policy: RetryPolicy | None = None
    ) -> None:
        """*url* can end with the `/v1` of the API."""
        if not re.match(r"https?://[^/]", url):
            raise BadInput(f"server {url!r} is not of the form http(s)://HOST[:PORT]")
        self.url = url.rstrip("/").removesuffix("/v1")
        self._key = usable_key(api_key) if api_key else None
        self._deadline_s = deadline_s
        self._policy = policy or RetryPolicy(max_attempts=5)
        self._client = http_client()

    async def __aenter__(self) -> AdapterServer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._client.aclose()

    async def models(self) -> tuple[ServedModel, ...]:
        """Lists the server's models and adapters. Raises ModelError, in one line, if the request fails."""
        response = await self._send("GET", "/v1/models", None)
        try:
            return _Served.model_validate_json(response.content).data
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise ModelRejected(f"{self.url}: its list of models cannot be read: {problem}") from None

    async def put(self, name: str, folder: Path) -> ServedModel:
        """Loads the adapter in *folder* as *name*, replacing any adapter of this name, and returns the server's entry.

        Raises BadInput if the folder is no adapter, if *name* is the base model's, or if the server already has this
        folder loaded; ModelUnavailable if it does not accept adapters; another ModelError if it fails. After an error
        the name keeps its adapter.
        """
        _check_name(name)
        path = _adapter_path(folder)
        known = {model.id: model for model in await self.models()}
        if name in known and known[name].parent is None:
            raise BadInput(f"{name!r} is the base model of {self.url}: choose another name for the adapter")
        if name in known and known[name].root == path:
            raise BadInput(
                f"{self.url} serves {path!r} as {name!r} already: its cache would keep old weights, use a new folder"
            )
        await self._send("POST", "/v1/load_lora_adapter", {"lora_name": name, "lora_path": path, "load_inplace": True})
        served = {model.id: model for model in await self.models()}.get(name)
        if served is None or served.root != path:
            raise ModelRejected(
                f"{self.url} accepted the adapter {name!r} and does not list it: is another client loading too?"
            )
        return served

    async def remove(self, name: str) -> bool:
        """Unloads the adapter *name*. Returns False if the server did not have it."""
        _check_name(name)
        if all(model.id != name for model in await self.models()):
            return False
        await self._send("POST", "/v1/unload_lora_adapter", {"lora_name": name})
        return True

    async def _send(self, method: str, path: str, body: dict[str, Any] | None) -> Response:
        async with open_call(self._deadline_s, self._policy) as call:
            return await self._request(call, method, path, body)

    async def _request(self, call: Call, method: str, path: str, body: dict[str, Any] | None) -> Response:
        import httpx2

        async def attempt() -> Response | Failure:
            headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
            try:
                response = await self._client.request(method, self.url + path, json=body, headers=headers)
            except httpx2.TransportError as error:
                reason = quoted(f"{type(error).__name__}: {error}", self._key or "")
                return Failure(
                    ModelUnavailable, f"cannot reach {self.url}: {reason}; is the server running?", retry=True
                )
            return response if response.is_success else self._failure(path, response)

        return await call.send(attempt)

    def _failure(self, path: str, response: Response) -> Failure:
        """Converts an error response. A 500 is not retried: vLLM also sends it for an adapter that it will never
        load."""
        message = quoted(wire_error(response.text).message or response.reason_phrase, self._key or "")
        if response.status_code == 404 and NO_ROUTE in response.text:
            reason = "takes no adapters: start it with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"
            return Failure(ModelUnavailable, f"{self.url} {reason}")
        failure = failure_of_status(response.status_code, f"{self.url}{path}: {message}", response.headers)
        final = response.status_code == 500
        kind: type[ModelError] = ModelRejected if final else failure.error
        return Failure(kind, failure.reason, failure.retry and not final, failure.retry_after_s)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadInput(f"adapter name {name!r} must be letters, digits, dot, dash or underscore, 100 at most")


def _adapter_path(folder: Path) -> str:
    if not (folder / ADAPTER_CONFIG).is_file():
        raise BadInput(f"{str(folder)!r} holds no {ADAPTER_CONFIG}, so it is not an adapter: export it first")
    if problem := adapter_problem(folder):
        raise BadInput(problem)
    return str(folder.resolve())
