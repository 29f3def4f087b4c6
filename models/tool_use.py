"""Conversations with models that answer with tool calls of a vendor's client-side tool set. Independent of pages:
:mod:`agent.episode.toolsets` maps the calls to actions.

A conversation only grows: some vendors bind a model's thoughts to everything before them, and every call needs its
result in the following message.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from models.base import Budget, ChatReply, Image, Message, Usage
from models.transport import Call, RetryPolicy, open_call

Toolset = Literal["anthropic-browser", "anthropic-computer", "openai-computer"]


@dataclass(frozen=True, slots=True)
class SafetyCheck:
    """A doubt of the vendor about a call: it counts as accepted only if a person approved the call."""

    id: str
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a model's turn."""

    id: str
    """Links the call to its result."""
    name: str
    arguments: Mapping[str, Any]
    """As the model gave them, unchecked."""
    toolset: str | None = None
    """The vendor's name of the tool set; None for a function of this program, and for tools without the name."""
    is_function: bool = False
    """A function that the request declared."""
    checks: tuple[SafetyCheck, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """An answer of the model."""

    items: tuple[Mapping[str, Any], ...]
    """As they came. They are sent back unchanged, thoughts included."""
    text: str
    """The visible text."""
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenTab:
    id: str
    title: str
    url: str
    active: bool


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one call."""

    call: ToolCall
    text: str
    image: Image | None = None
    is_error: bool = False
    tabs: tuple[OpenTab, ...] = ()
    """All tabs after the call, for tool sets that report them; one is active."""
    acknowledged: tuple[SafetyCheck, ...] = ()
    """The checks of the call that a person accepted."""


@dataclass(frozen=True, slots=True)
class Results:
    """The results of all calls of a turn, and what is new."""

    results: tuple[ToolResult, ...]
    news: Message | None = None


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function of this program that is offered beside the tool set."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of an object."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    system: str
    history: tuple[Message | ModelTurn | Results, ...]
    """Begins with a user message; a turn with calls is followed by their results."""
    display: tuple[int, int]
    """Size of the screenshots in pixels, the frame of all coordinates."""
    functions: tuple[FunctionTool, ...] = ()
    members: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Members of the tool set that are offered (True) or withheld, in place of the vendor's default."""
    thinking_tokens: Budget | None = None
    max_tokens: int = 2048
    """Limit on text and calls."""
    deadline_s: float = 120.0


def recorded(request: ToolRequest) -> tuple[Message, ...]:
    """The conversation as messages, for traces."""
    return (Message("system", request.system), *(_as_message(item) for item in request.history))


def turn_text(turn: ModelTurn) -> str:
    """The text of an answer, and a line for each of its calls."""
    calls = [f"{call.name} {json.dumps(dict(call.arguments), ensure_ascii=False)}" for call in turn.calls]
    return "\n".join(filter(None, (turn.text.strip(), *calls)))


def _as_message(item: Message | ModelTurn | Results) -> Message:
    if isinstance(item, Message):
        return item
    if isinstance(item, ModelTurn):
        return Message("assistant", turn_text(item))
    texts = [f"{each.call.name}{' (error)' if each.is_error else ''}: {each.text}" for each in item.results]
    images = tuple(each.image for each in item.results if each.image is not None)
    news = item.news or Message("user", "")
    return Message("user", "\n\n".join([*texts, news.text]), (*images, *news.images))


@dataclass(frozen=True, slots=True)
class ToolReply:
    turn: ModelTurn
    reply: ChatReply
    """Its text is the visible text."""


async def converse_once(
    take_turn: Callable[[Call], Awaitable[ModelTurn]],
    model: str,
    deadline_s: float,
    policy: RetryPolicy,
    slots: asyncio.Semaphore | None,
) -> ToolReply:
    """The turn that *take_turn* gets of *model*, with usage, seconds and attempts of the call.

    *deadline_s* includes the wait for a free slot. Raises :class:`models.base.ModelError`."""
    async with open_call(deadline_s, policy, slots) as call:
        turn = await take_turn(call)
        return ToolReply(turn, ChatReply(turn.text, call.spent or Usage(), model, call.seconds, call.attempts))


@runtime_checkable
class ToolModel(Protocol):
    """A model with its vendor's tool set. It is a :class:`models.base.ChatModel` too."""

    spec: str
    toolset: Toolset

    async def converse(self, request: ToolRequest) -> ToolReply:
        """Returns within `request.deadline_s` or raises a :class:`models.base.ModelError`."""
        ...
