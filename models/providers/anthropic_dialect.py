"""Selects the parameters of a Messages API request for a model, and adapts them when a server refuses one.

Thinking budgets, by the generation of the model:

| model                 | 0              | tokens                                                 | `auto`       |
|-----------------------|----------------|--------------------------------------------------------|--------------|
| before Claude 3.7     | (no thinking)  | never sent                                             | never sent   |
| to 4.5                | not sent (off) | `budget_tokens`, at least 1,024                        | 8,192 tokens |
| 4.6 and later         | `disabled`     | `adaptive`: `low` to 1,024, `medium` to 8,192, above `high` | `adaptive` |
| Opus 5.5, Fable, Mythos | effort `low` | as above; thinking cannot be turned off                | `adaptive`   |

None sends nothing: models from 5 on think then, as they choose. The server counts thinking against `max_tokens`, so
room for it is added to `ChatRequest.max_tokens`. `temperature` is sent to models before 4.7 only, and never with
thinking.

A schema is sent as the format of the answer (`output_config.format`), to models before 4.5 as the only tool, whose
input is the answer, and to servers that refuse both as a part of the system prompt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from models.base import Budget, ChatRequest
from models.schema_export import ExportedSchema, exported
from models.thinking import dynamic_tokens

SchemaForm = Literal["format", "tool", "prompt"]
ANSWER_TOOL: Final = "answer"
"""Name of the tool whose input is a structured answer."""
MIN_BUDGET: Final = 1_024
"""Smallest `budget_tokens` that the API takes."""
DEFAULT_ROOM: Final = 16_384
LOW_ROOM: Final = 4_096
HIGH_ROOM: Final = 32_768

_NAMED = re.compile(r"claude-(?:(?P<family>opus|sonnet|haiku|fable|mythos)-)?(?P<major>\d)(?:[-.](?P<minor>\d)(?!\d))?")
_ALWAYS = re.compile(r"claude-(?:fable|mythos)")
_UNSUPPORTED = re.compile(
    r"unsupported|not support|unknown|unrecogni|not permitted|unexpected|extra|deprecated|not allowed|may only",
    re.IGNORECASE,
)
"""Error texts for a parameter that the model does not take, in contrast to one with a bad value."""


def version_of(model: str) -> tuple[int, int] | None:
    """`(4, 5)` of `claude-haiku-4-5-20251001`; None if the name has no version."""
    if _ALWAYS.match(model) and _NAMED.match(model) is None:
        return (5, 0)  # a preview without a number
    match = _NAMED.match(model)
    return None if match is None else (int(match["major"]), int(match["minor"] or 0))


@dataclass(frozen=True, slots=True)
class Thinking:
    """The parameters of a thinking budget."""

    config: dict[str, Any] | None
    effort: str | None
    room: int
    """Tokens added to the limit."""

    @property
    def is_on(self) -> bool:
        return self.config is not None and self.config["type"] != "disabled"


@dataclass(frozen=True, slots=True)
class AnthropicDialect:
    """The parameters that one server accepts for one model. Frozen: each refusal makes a new one."""

    adaptive: bool
    """Thinking is adaptive, with an effort; else it has a budget of tokens."""
    can_think: bool = True
    always_thinks: bool = False
    default_thinks: bool = False
    """The model thinks if nothing is asked for."""
    samples: bool = True
    """The model takes a temperature."""
    efforts: bool = True
    form_swapped: bool = False
    """The other form of thinking was refused."""
    schema: SchemaForm = "format"

    @classmethod
    def of_model(cls, model: str) -> AnthropicDialect:
        """A name without a version, of another server, gets the form with budgets until that is refused."""
        version = version_of(model)
        if version is None:
            return cls(adaptive=False)
        always = _ALWAYS.match(model) is not None or ("opus" in model and version >= (5, 5))
        return cls(
            adaptive=version >= (4, 6),
            can_think=version >= (3, 7) or always,
            always_thinks=always,
            default_thinks=version >= (5, 0),
            samples=version < (4, 7),
            schema="format" if version >= (4, 5) else "tool",
        )

    def thinking(self, tokens: Budget | None) -> Thinking:
        """The parameters of a budget, by the table above."""
        if not self.can_think:
            return Thinking(None, None, 0)
        if not self.adaptive:
            budget = dynamic_tokens(tokens) or 0
            budget = max(MIN_BUDGET, budget) if budget > 0 else 0
            config = {"type": "enabled", "budget_tokens": budget} if budget else None
            return Thinking(config, None, budget)
        if tokens is None:
            return Thinking(None, None, DEFAULT_ROOM if self.default_thinks or self.always_thinks else 0)
        if tokens == "auto":
            return Thinking({"type": "adaptive"}, None, DEFAULT_ROOM)
        if tokens <= 0:
            return self._effort("low", LOW_ROOM) if self.always_thinks else Thinking({"type": "disabled"}, None, 0)
        if tokens <= 1_024:
            return self._effort("low", LOW_ROOM)
        if tokens <= 8_192:
            return self._effort("medium", DEFAULT_ROOM)
        return self._effort("high", max(HIGH_ROOM, 2 * tokens))

    def _effort(self, word: str, room: int) -> Thinking:
        return Thinking({"type": "adaptive"}, word if self.efforts else None, room)

    def schema_form(self, schema: ExportedSchema) -> SchemaForm:
        """A format has closed objects only, so a free-form mapping is the input of a tool."""
        return "tool" if self.schema == "format" and not schema.strict else self.schema

    def parameters(self, request: ChatRequest) -> dict[str, Any]:
        """The request's body without model, system prompt and messages."""
        thinking = self.thinking(request.thinking_tokens)
        body: dict[str, Any] = {"max_tokens": request.max_tokens + thinking.room}
        output: dict[str, Any] = {}
        if thinking.config is not None:
            body["thinking"] = thinking.config
        if thinking.effort is not None:
            output["effort"] = thinking.effort
        if self.samples and not thinking.is_on and not self.always_thinks:
            body["temperature"] = min(1.0, request.temperature)
        if stops := [stop for stop in request.stop if stop.strip()]:
            body["stop_sequences"] = stops
        if request.schema is not None:
            schema = exported(request.schema)
            if self.schema_form(schema) == "format":
                output["format"] = {"type": "json_schema", "schema": schema.json_schema}
            elif self.schema_form(schema) == "tool":
                body.update(_answer_tool(schema, forced=not thinking.is_on))
        return body | ({"output_config": output} if output else {})

    def without(self, message: str) -> AnthropicDialect | None:
        """The dialect after the server refused a parameter, which only the error's text names; None if the request has
        no other form. A wrong value (a limit too large) changes nothing."""
        if not _UNSUPPORTED.search(message):
            return None
        if self.samples and "temperature" in message:
            return replace(self, samples=False)
        if self.adaptive and not self.always_thinks and "disabled" in message and "thinking" in message:
            return replace(self, always_thinks=True)
        form = "adaptive" if self.adaptive else "budget_tokens|thinking.type.enabled"
        if not self.form_swapped and "thinking" in message and re.search(form, message):
            return replace(self, adaptive=not self.adaptive, form_swapped=True)
        if self.efforts and "effort" in message:
            return replace(self, efforts=False)
        if self.can_think and "thinking" in message:
            return replace(self, can_think=False)
        if self.schema == "format" and re.search(r"output_config|output_format|json_schema", message):
            return replace(self, schema="tool")
        if self.schema == "tool" and re.search(r"tool", message):
            return replace(self, schema="prompt")
        return None


def _answer_tool(schema: ExportedSchema, *, forced: bool) -> dict[str, Any]:
    """The tool whose input is the answer. With thinking a call cannot be forced."""
    description = "Gives the answer. Call it once, with the whole answer."
    tool = {"name": ANSWER_TOOL, "description": description, "input_schema": schema.json_schema}
    choice: dict[str, Any] = {"type": "tool", "name": ANSWER_TOOL} if forced else {"type": "auto"}
    return {"tools": [tool], "tool_choice": {**choice, "disable_parallel_tool_use": True}}
