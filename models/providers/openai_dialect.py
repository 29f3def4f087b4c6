"""Selects the parameters for a server of the OpenAI protocol, and adapts them when it refuses one.

Thinking budgets become `reasoning_effort`, only for models that support it. Their token limit includes thinking, so
tokens are added to `ChatRequest.max_tokens`:

| thinking_tokens | effort                                              | room, tokens            |
|-----------------|-----------------------------------------------------|-------------------------|
| None, `auto`    | not sent (the model's default, which is dynamic)    | 16,384                  |
| 0               | lowest: `none` (gpt-5.1 on), `minimal` (gpt-5), `low` (o-series, gpt-oss) | 1,024 |
| 1 … 1,024       | `low`                                               | 4,096                   |
| 1,025 … 8,192   | `medium`                                            | 16,384                  |
| above           | `high`                                              | twice the budget, at least 32,768 |

OpenAI's models have no exact budget; the token limit bounds them. `ChatRequest.effort` is sent as it is, with the room
of its tokens, also to a model that is not in the table: whoever names an effort knows the model.

On vLLM, `chat_template_kwargs` turns thinking on and off (Qwen3), and the budget is added to the limit.
It has no dynamic mode: `auto` is 8,192 tokens there. Other servers with chat templates are sent it for 0 alone, and a
budget changes nothing there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from models.base import Budget, ChatRequest, Effort
from models.schema_export import exported
from models.thinking import EFFORT_TOKENS, dynamic_tokens

_REASONING = re.compile(r"(?:.*/)?(?:o\d(?:-|$)|gpt-[5-9](?!.*-chat)|gpt-oss)")
"""Models with `reasoning_effort`; `gpt-5-chat-latest` and `gpt-5.1-chat-latest` do not think."""
_NONE_EFFORT = re.compile(r"(?:.*/)?gpt-(?:5\.\d|[6-9])")
_MINIMAL_EFFORT = re.compile(r"(?:.*/)?gpt-5")

DEFAULT_ROOM = 16_384
EFFORT = "reasoning_effort"

_UNKNOWN = re.compile(r"unsupported|not support|unknown|unrecogni|not permitted|unexpected|extra", re.IGNORECASE)
"""Error texts for an unknown parameter, or one that has only its default value for this model."""
_GRAMMARS = ("structured_outputs", "grammar")
"""The parameters of a grammar: vLLM's, and llama.cpp's."""
_OPTIONAL = (
    "temperature",
    EFFORT,
    "seed",
    "stop",
    "logprobs",
    "return_token_ids",
    "chat_template_kwargs",
    *_GRAMMARS,
)
"""Parameters that are omitted once a server has refused them. `stop` is also applied to the answer."""
_NO_STOP = frozenset({"stop"})


@dataclass(frozen=True, slots=True)
class EffortParameters:
    """The parameters of a thinking budget for a reasoning model."""

    word: str | None
    room: int
    """Tokens added to the limit for thinking."""


def effort_for(model: str, thinking_tokens: Budget | None) -> EffortParameters:
    """The effort of a budget, by the table above."""
    if thinking_tokens is None or thinking_tokens == "auto":
        return EffortParameters(None, DEFAULT_ROOM)
    if thinking_tokens <= 0:
        if _NONE_EFFORT.match(model):
            return EffortParameters("none", 1_024)
        return EffortParameters("minimal" if _MINIMAL_EFFORT.match(model) else "low", 1_024)
    if thinking_tokens <= 1_024:
        return EffortParameters("low", 4_096)
    if thinking_tokens <= 8_192:
        return EffortParameters("medium", 16_384)
    return EffortParameters("high", max(32_768, 2 * thinking_tokens))


@dataclass(frozen=True, slots=True)
class Dialect:
    """The parameters that one server accepts. Frozen: each refusal makes a new one, and refusals are kept."""

    model: str
    limit: str = "max_tokens"
    """Name of the token limit: `max_completion_tokens` on OpenAI's own API, `max_tokens` elsewhere."""
    reasoning: bool = False
    """The model thinks: effort is sent, and sampling parameters, which such models refuse, are not."""
    token_ids: bool = False
    """Request token ids (vLLM); other servers ignore the field."""
    priced: bool = True
    """The price table applies to this server."""
    templated: bool = True
    """The server renders messages with a chat template, whose control tokens may be in a message's text. OpenAI's own
    API separates them."""
    limit_swapped: bool = False
    """The server refused the first name of the limit."""
    schema_in_prompt: bool = False
    """`response_format` was refused: the schema is described in a system message."""
    json_object: bool = False
    """The server takes a `response_format` without a schema's name: llama-cpp-python enforces the schema beside it,
    others any JSON object."""
    dropped: frozenset[str] = frozenset()
    """Optional parameters that the server has refused."""

    @classmethod
    def of_model(cls, model: str, *, hosted: bool) -> Dialect:
        """*hosted*: the server is OpenAI's own, not one of a base URL."""
        limit = "max_completion_tokens" if hosted else "max_tokens"
        reasoning = _REASONING.match(model) is not None
        dropped: frozenset[str] = _NO_STOP if reasoning and hosted else frozenset()
        return cls(model, limit, reasoning=reasoning, priced=hosted, templated=not hosted, dropped=dropped)

    @classmethod
    def of_vllm(cls, model: str) -> Dialect:
        return cls(model, reasoning=_REASONING.match(model) is not None, token_ids=True, priced=False)

    def parameters(self, request: ChatRequest) -> dict[str, Any]:
        """The request's body without model and messages."""
        body = {**self._limits(request), **self._sampling(request)}
        if request.stop:
            body["stop"] = list(request.stop)
        if request.schema is not None and not self.schema_in_prompt:
            schema = exported(request.schema)
            named = {"name": schema.name, "schema": schema.json_schema, "strict": schema.strict}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        elif request.schema is not None and self.json_object:
            body["response_format"] = {"type": "json_object", "schema": exported(request.schema).json_schema}
        switch = self._thinking_switch(request)
        if switch is not None:
            body["chat_template_kwargs"] = {"enable_thinking": switch}
        thinks = switch is True or request.effort not in (None, "none")
        if request.grammar is not None and request.schema is None and not thinks:
            body.update(self._grammar(request.grammar))
        if request.logprobs:
            body["logprobs"] = True
        if self.token_ids:
            body["return_token_ids"] = True
        dropped = self.dropped if request.effort is None else self.dropped - {EFFORT}
        return {name: value for name, value in body.items() if name not in dropped}

    def without(self, parameter: str | None, message: str, effort: Effort | None = None) -> Dialect | None:
        """The dialect after the server refused *parameter*; None if the request has no other form.

        An *effort* that the request names is never left out: its refusal is the answer.

        Servers without `error.param` name it in the message. A wrong *value* (a limit too large) is the caller's error
        and changes nothing.
        """
        if names_schema(parameter, message):
            if not self.schema_in_prompt:
                return replace(self, schema_in_prompt=True, json_object=_names(None, message, "json_object"))
            if self.json_object:
                return replace(self, json_object=False)
        if not _UNKNOWN.search(message):
            return None
        if not self.limit_swapped and _names(parameter, message, self.limit):
            other = "max_tokens" if self.limit == "max_completion_tokens" else "max_completion_tokens"
            return replace(self, limit=other, limit_swapped=True)
        for name in _OPTIONAL:
            if name == EFFORT and effort is not None:
                continue
            if name not in self.dropped and _names(parameter, message, name):
                return replace(self, dropped=self.dropped | {name})
        return None

    def merged(self, learned: Dialect) -> Dialect:
        """Combines the refusals of both dialects, for concurrent workers."""
        return replace(
            learned,
            limit=self.limit if self.limit_swapped else learned.limit,
            limit_swapped=self.limit_swapped or learned.limit_swapped,
            schema_in_prompt=self.schema_in_prompt or learned.schema_in_prompt,
            json_object=learned.json_object and (self.json_object or not self.schema_in_prompt),
            dropped=self.dropped | learned.dropped,
        )

    def _thinking_switch(self, request: ChatRequest) -> bool | None:
        """The chat template's variable that turns thinking on or off; None leaves its default."""
        tokens = dynamic_tokens(request.thinking_tokens)
        if tokens is None or self.reasoning or not self.templated:
            return None
        return (True if self.token_ids else None) if tokens > 0 else False

    def _grammar(self, grammar: str) -> dict[str, Any]:
        """The parameter that limits the answer to *grammar*. A model that thinks answers freely, because the grammar
        would also limit its thoughts; so does OpenAI's own API, which has no grammars of this form."""
        if self.reasoning or not self.templated:
            return {}
        return {"structured_outputs": {"grammar": grammar}} if self.token_ids else {"grammar": grammar}

    def _limits(self, request: ChatRequest) -> dict[str, Any]:
        if request.effort is not None:
            room = effort_for(self.model, EFFORT_TOKENS[request.effort]).room
            return {self.limit: request.max_tokens + room, EFFORT: request.effort}
        if not self.reasoning:
            room = (dynamic_tokens(request.thinking_tokens) or 0) if self.token_ids else 0
            return {self.limit: request.max_tokens + room}
        effort = effort_for(self.model, request.thinking_tokens)
        limits: dict[str, Any] = {self.limit: request.max_tokens + effort.room}
        if effort.word is not None:
            limits[EFFORT] = effort.word
        return limits

    def _sampling(self, request: ChatRequest) -> dict[str, Any]:
        sampling: dict[str, Any] = {} if self.reasoning and not self.token_ids else {"temperature": request.temperature}
        if request.seed is not None:
            sampling["seed"] = request.seed
        return sampling


def names_schema(parameter: str | None, message: str) -> bool:
    """Whether a server refused the form of structured answers."""
    return _names(parameter, message, "response_format", "json_schema")


def _names(parameter: str | None, message: str, *names: str) -> bool:
    if parameter:
        return parameter.split(".")[0] in names
    return any(re.search(rf"\b{name}\b", message) for name in names)
