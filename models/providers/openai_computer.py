"""OpenAI's computer tool over the Responses API: `computer`, and `computer_use_preview` for the preview model.

Nothing is stored on the server: every request holds the whole conversation, with the encrypted reasoning of earlier
turns. Safety checks of a call are acknowledged only if a person approved it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

import openai

from models.base import (
    Image,
    Message,
    ModelBusy,
    ModelInvalidAnswer,
    ModelRejected,
    ModelTruncated,
)
from models.prompting.fence import defuse
from models.providers.failures import connection_failure, unreadable_answer
from models.providers.openai_chat import OpenAIChat
from models.providers.openai_dialect import Dialect, effort_for
from models.providers.openai_responses_wire import WholeResponse, WireItem, WireResponse, whole_response
from models.providers.openai_wire import CompletionDetails, PromptDetails, WireUsage, wire_error
from models.tool_use import (
    FunctionTool,
    ModelTurn,
    Results,
    SafetyCheck,
    ToolCall,
    ToolReply,
    ToolRequest,
    ToolResult,
    Toolset,
    converse_once,
)
from models.transport import Call, Failure, RetryPolicy, quoted, well_formed

PREVIEW: Final = "computer-use-preview"
"""Models of this name have the older form of the tool."""
CALL: Final = "computer"
"""Name of a call of the tool; its argument `actions` lists what to do, in order."""
_OPTIONAL: Final = ("include", "reasoning", "truncation", "store")
"""Parameters that are left out once a server has refused them."""


class OpenAIComputer(OpenAIChat):
    """A :class:`models.tool_use.ToolModel`. As a chat model it uses the chat-completions protocol."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        policy: RetryPolicy | None = None,
        max_concurrent: int | None = None,
    ) -> None:
        self.toolset: Toolset = "openai-computer"
        self._dropped: frozenset[str] = frozenset()
        super().__init__(
            model,
            spec=f"openai-computer:{model}",
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
            outcome = await call.send(lambda: self._try(request, call))
            if isinstance(outcome, ModelTurn):
                return outcome
            self._dropped |= {outcome}

    async def _try(self, request: ToolRequest, call: Call) -> ModelTurn | str | Failure:
        """One request. Returns the name of a parameter that the server refused."""
        body = {name: value for name, value in self._body(request).items() if name not in self._dropped}
        try:
            raw = await self._client.responses.with_raw_response.create(extra_body=body)
        except openai.APIStatusError as error:
            problem = wire_error(error.response.text)
            name = (problem.param or "").split(".")[0].split("[")[0]
            if error.response.status_code in (400, 422) and name in _OPTIONAL and name in body:
                return name
            refused = self._refused(error.response, self._dialect, None)
            reason = quoted(problem.message, self._key)
            return Failure(ModelRejected, reason, answered=True) if isinstance(refused, Dialect) else refused
        except openai.APIConnectionError as error:
            return connection_failure(error.__cause__ or error, str(self._client.base_url), self._key)
        return self._read(raw.text, request, call)

    def _read(self, body: str, request: ToolRequest, call: Call) -> ModelTurn | Failure:
        try:
            whole = whole_response(body)
        except (ValueError, RecursionError) as error:
            return unreadable_answer(error, "response of the Responses API")
        response = whole.response
        call.charge(self._usage(_usage_of(response)))
        return _unusable(response, request) or _turn_of(whole)

    def _body(self, request: ToolRequest) -> dict[str, Any]:
        effort = effort_for(self._model, request.thinking_tokens)
        room = effort.room if self._dialect.reasoning else 0
        body: dict[str, Any] = {
            "model": self._model,
            "instructions": well_formed(request.system),
            "input": [wire for item in request.history for wire in _wire_item(item)],
            "tools": [_tool(self._model, request.display), *(_function(each) for each in request.functions)],
            "max_output_tokens": request.max_tokens + room,
            "truncation": "auto",  # the preview model takes no other
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        if self._dialect.reasoning and effort.word is not None:
            body["reasoning"] = {"effort": effort.word}
        return body


def _tool(model: str, display: tuple[int, int]) -> dict[str, Any]:
    if not model.startswith(PREVIEW):
        return {"type": "computer"}
    width, height = display
    return {
        "type": "computer_use_preview",
        "environment": "browser",
        "display_width": width,
        "display_height": height,
    }


def _function(tool: FunctionTool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "strict": False,
    }


def _usage_of(response: WireResponse) -> WireUsage:
    wire = response.usage
    if wire is None:
        return WireUsage()
    cached = wire.input_tokens_details.cached_tokens if wire.input_tokens_details else 0
    thinking = wire.output_tokens_details.reasoning_tokens if wire.output_tokens_details else 0
    return WireUsage(
        prompt_tokens=wire.input_tokens,
        completion_tokens=wire.output_tokens,
        prompt_tokens_details=PromptDetails(cached_tokens=cached),
        completion_tokens_details=CompletionDetails(reasoning_tokens=thinking),
    )


def _unusable(response: WireResponse, request: ToolRequest) -> Failure | None:
    if response.status == "incomplete":
        reason = response.incomplete_details.reason if response.incomplete_details else None
        if reason == "max_output_tokens":
            limit = f"the answer hit its limit of {request.max_tokens} tokens: raise max_tokens"
            return Failure(ModelTruncated, limit, answered=True)
        if reason == "content_filter":
            return Failure(ModelRejected, "the server's content filter withheld the answer", answered=True)
        return Failure(ModelTruncated, f"the answer broke off ({reason})", retry=True, answered=True)
    if response.status == "failed":
        reason = quoted(response.error.message) if response.error else "no reason given"
        return Failure(ModelBusy, f"the server failed: {reason}", retry=True)
    if response.status not in (None, "completed"):
        return Failure(ModelTruncated, f"the answer broke off (status {response.status!r})", retry=True, answered=True)
    if response.refusal:
        return Failure(ModelRejected, f"the model refused: {quoted(response.refusal)}", answered=True)
    if not response.text.strip() and not any(item.call_id for item in response.output):
        return Failure(ModelInvalidAnswer, "the answer is empty", answered=True)
    return None


def _turn_of(whole: WholeResponse) -> ModelTurn:
    calls = tuple(call for item in whole.response.output if (call := _call_of(item)) is not None)
    return ModelTurn(tuple(whole.output), well_formed(whole.response.text), calls)


def _call_of(item: WireItem) -> ToolCall | None:
    if item.type == "computer_call":
        actions = list(item.actions if item.actions is not None else [item.action] if item.action is not None else [])
        checks = [
            SafetyCheck(each.id, each.code or "", each.message or "") for each in item.pending_safety_checks or ()
        ]
        return ToolCall(item.call_id, CALL, {"actions": actions}, toolset=CALL, checks=tuple(checks))
    if item.type == "function_call":
        return ToolCall(item.call_id, item.name, _arguments(item.arguments), is_function=True)
    return None


def _arguments(text: str) -> dict[str, Any]:
    """The arguments of a function call; empty where they are no object, which the function then refuses."""
    try:
        parsed = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _wire_item(item: Message | ModelTurn | Results) -> list[Mapping[str, Any]]:
    if isinstance(item, ModelTurn):
        return list(item.items)
    if isinstance(item, Results):
        news = [_wire_message(item.news)] if item.news is not None else []
        return [*(_wire_result(result) for result in item.results), *news]
    return [_wire_message(item)]


def _wire_message(message: Message) -> dict[str, Any]:
    if message.role == "assistant":
        return {"role": "assistant", "content": well_formed(message.text)}
    parts: list[dict[str, Any]] = [{"type": "input_text", "text": defuse(well_formed(message.text))}]
    parts += [{"type": "input_image", "image_url": _data_url(image), "detail": "auto"} for image in message.images]
    return {"role": "user", "content": parts}


def _wire_result(result: ToolResult) -> dict[str, Any]:
    """A call of the computer is answered with a picture, a function with text."""
    if result.call.is_function or result.image is None:
        return {"type": "function_call_output", "call_id": result.call.id, "output": well_formed(result.text)}
    shot = {"type": "computer_screenshot", "image_url": _data_url(result.image)}
    wire: dict[str, Any] = {"type": "computer_call_output", "call_id": result.call.id, "output": shot}
    if result.acknowledged:
        wire["acknowledged_safety_checks"] = [
            {"id": check.id, "code": check.code, "message": check.message} for check in result.acknowledged
        ]
    return wire


def _data_url(image: Image) -> str:
    return f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"
