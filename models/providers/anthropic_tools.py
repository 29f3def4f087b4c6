"""Claude with Anthropic's client-side tool sets: `browser_toolset_20260801` and `computer_toolset_20260801`.

Models before Opus 4.8 do not know the tool sets: for the computer they get the older tool with the size of the display
(`computer_20251124`, `computer_20250124`), whose calls are brought into the form of the tool set. There is no older
browser tool, so such a model refuses the request.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from models.base import ModelInvalidAnswer
from models.prompting.fence import defuse
from models.providers.anthropic_chat import CACHE_MARK, AnthropicChat, unusable, wire_image, wire_message, wire_system
from models.providers.anthropic_dialect import AnthropicDialect, version_of
from models.providers.anthropic_wire import WholeReply, WireBlock
from models.tool_use import ModelTurn, Results, ToolCall, ToolReply, ToolRequest, ToolResult, Toolset, converse_once
from models.transport import Call, Failure, RetryPolicy, well_formed

Family = Literal["browser", "computer"]
STATE_ALONE: Final = frozenset({"list_tabs", "new_tab", "switch_tab", "close_tab"})
"""Members whose result is the state of the browser and nothing else."""


class AnthropicTools(AnthropicChat):
    """A :class:`models.tool_use.ToolModel`."""

    def __init__(
        self,
        model: str,
        *,
        toolset: Family,
        api_key: str | None = None,
        base_url: str | None = None,
        policy: RetryPolicy | None = None,
        max_concurrent: int | None = None,
    ) -> None:
        self.toolset: Toolset = "anthropic-browser" if toolset == "browser" else "anthropic-computer"
        self._family: Family = toolset
        super().__init__(
            model,
            spec=f"{self.toolset}:{model}",
            api_key=api_key,
            base_url=base_url,
            policy=policy,
            max_concurrent=max_concurrent,
        )

    async def converse(self, request: ToolRequest) -> ToolReply:
        return await converse_once(
            lambda call: self._turn(request, call), self._model, request.deadline_s, self._policy, self._slots
        )

    async def _turn(self, request: ToolRequest, call: Call) -> ModelTurn:
        while True:
            dialect = self._dialect
            outcome = await call.send(lambda current=dialect: self._try(request, current, call))
            if isinstance(outcome, ModelTurn):
                return outcome
            self._dialect = outcome

    async def _try(
        self, request: ToolRequest, dialect: AnthropicDialect, call: Call
    ) -> ModelTurn | AnthropicDialect | Failure:
        tool, betas = self._tool(request)
        thinking = dialect.thinking(request.thinking_tokens)
        functions = [
            {"name": each.name, "description": each.description, "input_schema": dict(each.parameters)}
            for each in request.functions
        ]
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": request.max_tokens + thinking.room,
            "tools": [*functions, tool],
            "system": wire_system(request.system),
            "messages": wire_history(request),
        }
        if thinking.config is not None:
            body["thinking"] = thinking.config
        if thinking.effort is not None:
            body["output_config"] = {"effort": thinking.effort}
        outcome = await self._post(body, dialect, call, betas)
        if not isinstance(outcome, WholeReply):
            return outcome
        turn = _turn_of(outcome)
        failure = unusable(outcome.reply, request.max_tokens)
        if failure is None and not turn.calls and not turn.text.strip():
            reason = f"the answer is empty (stop_reason {outcome.reply.stop_reason!r})"
            return Failure(ModelInvalidAnswer, reason, answered=True)
        return failure or turn

    def _tool(self, request: ToolRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The declaration of the tool set, and the beta features that it needs."""
        configs = {name: {"enabled": enabled} for name, enabled in request.members.items()}
        version = version_of(self._model)
        if self._family == "browser" or version is None or version >= (4, 8):
            return {"type": f"{self._family}_toolset_20260801", "configs": configs}, ()
        width, height = request.display
        sized = {"name": "computer", "display_width_px": width, "display_height_px": height}
        if version >= (4, 6) or ("opus" in self._model and version >= (4, 5)):
            zooms = request.members.get("zoom", True)
            return {"type": "computer_20251124", **sized, "enable_zoom": zooms}, ("computer-use-2025-11-24",)
        return {"type": "computer_20250124", **sized}, ("computer-use-2025-01-24",)


def _turn_of(whole: WholeReply) -> ModelTurn:
    calls = tuple(_call_of(block) for block in whole.reply.content if block.type == "tool_use")
    return ModelTurn(tuple(whole.content), well_formed(whole.reply.text), calls)


def _call_of(block: WireBlock) -> ToolCall:
    arguments = dict(block.input or {})
    if block.toolset_name is None and block.name == "computer":  # the older tool
        return ToolCall(block.id, str(arguments.pop("action", "")), arguments)
    return ToolCall(block.id, block.name, arguments, block.toolset_name, is_function=block.toolset_name is None)


def wire_history(request: ToolRequest) -> list[dict[str, Any]]:
    """The messages. The last one ends with a cache mark: the next request begins with all of them."""
    messages: list[dict[str, Any]] = []
    for item in request.history:
        if isinstance(item, ModelTurn):
            messages.append({"role": "assistant", "content": [dict(block) for block in item.items]})
        elif isinstance(item, Results):
            messages.append({"role": "user", "content": _wire_results(item)})
        else:
            messages.append(wire_message(item))
    messages[-1]["content"][-1]["cache_control"] = dict(CACHE_MARK)
    return messages


def _wire_results(item: Results) -> list[dict[str, Any]]:
    news = wire_message(item.news)["content"] if item.news is not None else []
    return [*(_wire_result(result) for result in item.results), *news]


def _wire_result(result: ToolResult) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call.id, "content": _content(result)}
    if result.call.toolset is not None:
        wire["toolset_name"] = result.call.toolset
    return wire | ({"is_error": True} if result.is_error else {})


def _content(result: ToolResult) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": defuse(well_formed(result.text or "(nothing)"))}]
    if result.is_error:
        return text  # an error has no other content
    state = _state(result)
    if state and result.call.name in STATE_ALONE:
        return state
    image = [wire_image(result.image)] if result.image is not None else []
    return [*([] if image and not result.text else text), *image, *state]


def _state(result: ToolResult) -> list[dict[str, Any]]:
    if result.call.toolset != "browser" or not result.tabs:
        return []
    tabs = [
        {"tab_id": tab.id, "title": well_formed(tab.title), "url": well_formed(tab.url), "active": tab.active}
        for tab in result.tabs
    ]
    return [{"type": "browser_state", "tabs": tabs}]
