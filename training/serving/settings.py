"""Which server policies play on; without the libraries that run one."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from envs.core.record import Record


class ServerSettings(Record):
    """Where policies play."""

    url: str
    """`http://HOST:PORT` of a vLLM server. VLLM_API_KEY, if it wants a key."""
    command: tuple[str, ...] = ()
    """Starts it there for as long as a policy plays, and the GPU is free when it learns: `["vllm", "serve"]`, to which
    the model, its name and the address are added. Empty: a server runs there already, on the policy's base, and takes
    adapters."""
    options: tuple[str, ...] = ()
    """What a started server is told besides, e.g. `["--dtype", "bfloat16", "--max-model-len", "16384"]`."""
    ready_s: float = Field(default=900.0, gt=0)
    """A started server that does not answer after it is given up."""

    @field_validator("url")
    @classmethod
    def _has_a_port(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not parts.port:
            raise ValueError(f"{url!r} is not of the form http://HOST:PORT")
        return url.rstrip("/").removesuffix("/v1")
