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


class ModelUnavailable(ModelError):
    """The model cannot be used here: a key, a package, a file or the server is missing. The message says what to do."""


class UnknownModel(ModelUnavailable):
    """A model spec of an unknown form."""


class ModelRejected(ModelError):
    """The server refused the request (status 4xx, except those that are retried), the model or a content filter refused
    to answer, or the request does not fit the model, such as images for a model that reads text only. Not retried."""


class ModelBusy(ModelError):
    """The last attempt ended with status 408, 409, 425, 429 or 5xx, or with a failed connection, and neither the retry
    window nor the deadline left time for another attempt."""


class ModelTimeout(ModelError):
    """The call reached `ChatRequest.deadline_s`, or the last attempt took longer than the time of one attempt
    (:attr:`models.transport.RetryPolicy.attempt_share`)."""

    early: bool = False
    """The retry window or the number of attempts ended the call, with time left until its deadline."""


class ModelOutOfTime(ModelTimeout):
    """The time of the caller, such as an episode's `max_seconds`, ended before the deadline of the call. A call that
    the retry window ends in that time is an ordinary :class:`ModelTimeout`."""


class ModelTruncated(ModelError):
    """The answer reached its limit of tokens or the end of the model's context, or it broke off. `answered` is False
    where the connection broke. A partial answer is never returned."""


class ModelInvalidAnswer(ModelError):
    """The answer is empty, or is not valid JSON of `ChatRequest.schema` after one repair request, or the server sent no
    response of its protocol."""

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
    """The assistant turn of an answer that is sent back. An empty answer becomes `NO_ANSWER`, because servers such as
    Anthropic's refuse a turn without text."""
    return Message("assistant", text if text.strip() else NO_ANSWER, signature=signature)


Budget = Literal["auto"] | int
"""Thinking tokens allowed: 0 = none, 256 … 16384, or `auto` (MiRA paper, App. A.2)."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a reasoning model thinks, in the words of OpenAI's `reasoning_effort`. A model takes some of them only."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call of a chat model. Fields that a provider may ignore say so."""

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
    """Limit on the visible answer, in tokens; thinking tokens have their own budget."""
    temperature: float = 0.0
    """0 is greedy decoding. Not sent to models that sample at a temperature of their own."""
    seed: int | None = None
    """Seed of the sampling, sent to servers that take one; None sends none."""
    stop: tuple[str, ...] = ()
    """The answer ends before the first of these texts."""
    grammar: str | None = None
    """GBNF with the start rule `root`: the answer is one of its sentences, if the model supports grammars (`local:`,
    `vllm:`, llama.cpp's server). Other models ignore it, so the caller still checks the answer."""
    logprobs: bool = False
    """Ask for token ids and log-probabilities. A model that has none returns None for them."""
    deadline_s: float = 120.0
    """Total wall seconds for this call, retries and repair included."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call spent, in tokens of the model and US dollars. All attempts that got an answer count, and so does a
    repair request."""

    tokens_in: int = 0
    """All tokens of the prompts, those of `tokens_cached` included."""
    tokens_cached: int = 0
    """The part of `tokens_in` that the server read from its prompt cache; 0 where it reports none."""
    tokens_thinking: int = 0
    """Tokens of thoughts; not part of `tokens_out`."""
    tokens_out: int = 0
    """Tokens of the visible answer."""
    cost_usd: float | None = None
    """None if the model's price is unknown; 0.0 for local models."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A whole answer of a chat model."""

    text: str
    """The visible answer, without thoughts that the provider returns apart from it."""
    usage: Usage
    model: str
    """The model's name or spec, for traces."""
    seconds: float
    """Wall seconds of the call, with all attempts and waits."""
    attempts: int = 1
    """Requests sent, the successful one included."""
    parsed: Any = None
    """An instance of `ChatRequest.schema`, if one was set."""
    prompt_token_ids: tuple[int, ...] | None = None
    """None unless the model returns token ids (`local:`, `vllm:`, `embedded`)."""
    completion_token_ids: tuple[int, ...] | None = None
    """None unless the model returns token ids."""
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
