"""Settings of the rollout server. Importing them does not import serving libraries."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from envs.core.record import Record


class ServerSettings(Record):
    """The vLLM server for rollouts."""

    url: str
    """`http://HOST:PORT` of a vLLM server. An API key is read from VLLM_API_KEY."""
    command: tuple[str, ...] = ()
    """Command that starts the server for rollouts only, so that the GPU is free for training: `["vllm", "serve"]`; the
    model, its name and the address are appended. Empty: a server for the policy's base that accepts adapters is already
    running."""
    options: tuple[str, ...] = ()
    """Additional arguments of the started server, e.g. `["--dtype", "bfloat16", "--max-model-len", "16384"]`."""
    ready_s: float = Field(default=900.0, gt=0)
    """Seconds to wait until a started server answers."""

    @field_validator("url")
    @classmethod
    def _has_a_port(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not parts.port:
            raise ValueError(f"{url!r} is not of the form http://HOST:PORT")
        return url.rstrip("/").removesuffix("/v1")
