"""The contract of a model provider: a form of model specs, how one is parsed, and what `mira models` shows of it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from models.base import ChatModel, ModelStatus, ModelUnavailable
from models.thinking import Thinking
from models.transport import RetryPolicy


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What a run passes to every model that it makes."""

    base_url: str | None = None
    """`--base-url`: the server of `openai:`, `anthropic:` and `litellm:` specs. It takes precedence over addresses in
    `environ`."""
    policy: RetryPolicy | None = None
    max_concurrent: int | None = None
    """Limit on requests in flight."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """Where keys and addresses are read from."""


class ModelSpec(ABC):
    """A parsed model spec. `str()` gives the text that it was parsed from, in normal form."""

    __slots__ = ()

    @abstractmethod
    def make(self, options: ModelOptions) -> ChatModel:
        """The model. Raises :class:`ModelUnavailable`, in one line, when a key, file or package is missing; sends
        nothing."""

    def checkpoint_folders(self) -> tuple[Path, ...]:
        """The folders of its checkpoint that are on this machine: the adapter's, if it has one, then the checkpoint's.
        What they declare of the training in `mira.json` is used at play. Empty for models of elsewhere."""
        return ()

    @property
    def own_temperature(self) -> bool:
        """Whether its models sample at a temperature of their own, so that none is sent."""
        return False

    @property
    def constrained(self) -> bool:
        """Whether answers of its models follow a grammar unless a run says otherwise."""
        return False

    @property
    def has_vendor_tools(self) -> bool:
        """Whether a policy with its models answers with calls of its vendor's tools, in place of an action language."""
        return False

    def takes_grammars(self, options: ModelOptions) -> bool:
        """Whether a grammar can limit the answers of its models. True also where that depends on a server."""
        del options
        return True

    def ignores_thinking(self, thinking: Thinking) -> bool:
        """Whether *thinking* is known to change no call of its models. False also where that depends on a server."""
        del thinking
        return False

    def base_url_protocol(self, options: ModelOptions) -> str:
        """The protocol that the server of `--base-url` must speak for this model; empty if it is not used."""
        del options
        return ""

    def price_known(self, options: ModelOptions) -> bool:
        """Whether the cost of calls is known, or nothing is billed. Only then can a limit of cost be kept."""
        del options
        return False


@dataclass(frozen=True, slots=True)
class Provider:
    """One kind of model spec. An installed package adds one through the entry-point group `mira.providers`."""

    form: str
    """As messages show it: `openai:MODEL`, or a name alone if nothing follows it."""
    parse: Callable[[str], ModelSpec]
    """From the text after the colon. Raises :class:`ModelUnavailable` for a text of the wrong form."""
    status: Callable[[Mapping[str, str]], ModelStatus]
    """The row of `mira models`, from the environment variables. Sends nothing and imports no heavy package."""


def checked_url(url: str | None) -> str | None:
    """*url* again. Raises :class:`ModelUnavailable` if it is no base URL of a server."""
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ModelUnavailable(f"base URL {url!r} is not of the form http(s)://HOST[:PORT]/PATH")
    return url


def served_folders(model: str) -> tuple[Path, ...]:
    """The checkpoint folder whose path is the name of a server's *model*, as after `vllm serve DIR` and `transformers
    serve DIR`; empty for other names."""
    folder = Path(model)
    return (folder,) if (folder / "config.json").is_file() else ()


def expanded_path(text: str) -> Path:
    """The path *text*, with `~` as a shell expands it."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser raises for a name of no user
