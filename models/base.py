"""The chat interface of all models. It is independent of tasks and pages.

ModelError
├── ModelUnavailable     not usable here: package, key or file missing (the message says what to do; exit code 2)
├── ModelRejected        the server refused the request (4xx): not retried
├── ModelBusy            429 or 5xx until the end of the retry window or the deadline
├── ModelTimeout         the total deadline passed
│   └── ModelOutOfTime   the caller's time ran out before that
├── ModelTruncated       the answer hit its token limit or the stream broke: never returned as an answer
└── ModelInvalidAnswer   not valid JSON of the schema, after one repair attempt
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """The tokens of an answer, as far as the model returns them."""

    prompt: tuple[int, ...] | None = None
    completion: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    """As :attr:`ChatReply.logprobs`."""


class ModelError(Exception):
    """Base of the errors of a chat call. The attributes hold what the call spent."""

    attempts: int = 1
    seconds: float = 0.0
    usage: Usage | None = None
    """Tokens of unusable answers (truncated, invalid), which are billed too. None without an answer."""
    sampled: SampledTokens | None = None
    """Tokens of an unusable answer, where they are known: training lowers their probability."""
    answered: bool = False
    """True: the model works, but gave no usable answer to this request (unparsable, truncated, withheld), or the server
    refused the request for its content. Other requests may succeed. False: the model is unreachable or refuses all
    requests."""
    lasting: bool = False
    """Whether a later retry cannot help."""


class ModelUnavailable(ModelError): ...


class UnknownModel(ModelUnavailable):
    """A model spec of an unknown form."""


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
    """One turn. The static part of a prompt comes first, for prefix caches of servers."""

    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[Image, ...] = ()
    signature: bytes | None = None
    """`ChatReply.signature` of an assistant message."""


NO_ANSWER = "(no answer)"


def answer_turn(text: str, signature: bytes | None = None) -> Message:
    """The assistant turn of an answer that is sent back. An empty or truncated answer is told in words, because servers
    such as Anthropic's refuse a turn without text."""
    return Message("assistant", text if text.strip() else NO_ANSWER, signature=signature)


Budget = Literal["auto"] | int
"""Thinking tokens allowed: 0 = none, 256 … 16384, or `auto` (MiRA paper, App. A.2)."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a reasoning model thinks, in the words of OpenAI's `reasoning_effort`. A model takes some of them only."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    messages: tuple[Message, ...]
    schema: type[BaseModel] | None = None
    """The answer must be JSON that is valid for this model; `ChatReply.parsed` holds it."""
    thinking_tokens: Budget | None = None
    """Thinking budget in tokens, mapped to the server's parameter; `auto`: the model chooses, in the provider's dynamic
    mode; None leaves the model's default."""
    effort: Effort | None = None
    """Sent as it is by providers with such a parameter, also to a model that is not known to think. Others use
    `thinking_tokens`, which the caller sets to the tokens of this effort (:data:`models.thinking.EFFORT_TOKENS`)."""
    max_tokens: int = 1024
    """Limit on the visible answer."""
    temperature: float = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    grammar: str | None = None
    """GBNF with the start rule `root`: the answer is one of its sentences, if the model supports grammars (`local:`,
    `vllm:`, llama.cpp's server). Other models ignore it, so the caller still checks the answer."""
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
    """None if the model's price is unknown; 0.0 for local models."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    text: str
    usage: Usage
    model: str
    seconds: float
    attempts: int = 1
    """Requests sent, the successful one included."""
    parsed: Any = None
    """An instance of `ChatRequest.schema`, if one was set."""
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    """Natural logarithms at temperature 1 of the unconstrained distribution, also where a grammar limited the tokens.
    One per completion token."""
    signature: bytes | None = None
    """The provider's opaque token for the thoughts behind the answer, to be sent back with it in a next turn. Never
    stored."""


class ChatModel(Protocol):
    """An async chat model. One instance serves all workers of a run."""

    spec: str
    """The model spec, for traces and tables."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Returns within `request.deadline_s` or raises a :class:`ModelError`."""
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One row of `mira models`."""

    spec: str
    usable: bool
    detail: str
    """What makes it usable, or what is missing and how to add it."""
    examples: tuple[str, ...] = field(default=())
