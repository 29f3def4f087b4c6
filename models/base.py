"""The one chat interface that everything above speaks. It knows nothing of tasks and pages.

ModelError
├── ModelUnavailable     not usable here: package, key or file missing (says which and what to do; exit code 2)
├── ModelRejected        the server refused the request for good (4xx): not retried
├── ModelBusy            429 or 5xx until the retry window or the deadline was used up
├── ModelTimeout         the total deadline passed
│   └── ModelOutOfTime   the time of whoever asked was used up before that
├── ModelTruncated       the answer hit its token limit or the stream broke: never returned as an answer
└── ModelInvalidAnswer   not the JSON that was asked for, also after one repair attempt
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import BaseModel


class ModelError(Exception):
    """Base of what a chat call raises. The attributes say what was spent before it was raised."""

    attempts: int = 1
    seconds: float = 0.0
    usage: Usage | None = None
    """Tokens of answers that came but were no use (truncated, invalid): they are billed too. None: none came."""
    answered: bool = False
    """The model works and had no usable answer to this one question: an unreadable, cut or withheld one, or the server
    refused the request for what it holds. Another question may go well. False: nothing is known but that it is away,
    or refuses everybody."""
    lasting: bool = False
    """To ask again later cannot help."""


class ModelUnavailable(ModelError): ...


class UnknownModel(ModelUnavailable):
    """A spec of no known form."""


class ModelRejected(ModelError): ...


class ModelBusy(ModelError): ...


class ModelTimeout(ModelError): ...


class ModelOutOfTime(ModelTimeout): ...


class ModelTruncated(ModelError): ...


class ModelInvalidAnswer(ModelError):
    answered = True


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a message."""

    data: bytes
    media_type: Literal["image/png", "image/jpeg"] = "image/png"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. The static part of a prompt comes first so that server-side prefix caches hit."""

    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[Image, ...] = ()


Budget = Literal["auto"] | int
"""Thinking tokens allowed: 0 = none, 256 … 16384, or `auto` (MiRA paper, App. A.2)."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    messages: tuple[Message, ...]
    schema: type[BaseModel] | None = None
    """The answer must be JSON that validates as this model; it comes back in `ChatReply.parsed`."""
    thinking_tokens: int | None = None
    """Thinking budget in tokens; None leaves the model's default. Mapped to what the server knows."""
    max_tokens: int = 1024
    """Limit on the visible answer."""
    temperature: float = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    deadline_s: float = 120.0
    """Total wall seconds for this call, retries and repair included."""


@dataclass(frozen=True, slots=True)
class Usage:
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_thinking: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    """None where the model's price is unknown; 0.0 for local models."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    text: str
    usage: Usage
    model: str
    seconds: float
    attempts: int = 1
    """Requests sent, the successful one included."""
    parsed: Any = None
    """An instance of `ChatRequest.schema`, when one was asked for."""
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None


class ChatModel(Protocol):
    """An async chat model. One instance serves all workers of a run."""

    spec: str
    """The spec it was made from, for traces and tables."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answers within `request.deadline_s` or raises a :class:`ModelError`."""
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One row of `mira models`."""

    spec: str
    usable: bool
    detail: str
    """What makes it usable, or what is missing and how to get it."""
    examples: tuple[str, ...] = field(default=())
