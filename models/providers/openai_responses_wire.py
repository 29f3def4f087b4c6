"""Parses replies of OpenAI's Responses API with its computer tool; fields of other versions are ignored."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field

from models.providers.openai_wire import Count
from models.transport import parsed_json


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class WireCheck(_Wire):
    id: str
    code: str | None = None
    message: str | None = None


class WirePart(_Wire):
    type: str
    text: str = ""
    refusal: str = ""


class WireItem(_Wire):
    """An item of the output: a message, a call of the computer tool or of a function, or reasoning."""

    type: str
    content: tuple[WirePart, ...] | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    action: dict[str, Any] | None = None
    """The one action of the preview tool."""
    actions: tuple[dict[str, Any], ...] | None = None
    pending_safety_checks: tuple[WireCheck, ...] | None = None


class InputDetails(_Wire):
    cached_tokens: Count = 0


class OutputDetails(_Wire):
    reasoning_tokens: Count = 0


class WireUsage(_Wire):
    input_tokens: Count = 0
    output_tokens: Count = 0
    """Thinking tokens included."""
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


class Incomplete(_Wire):
    reason: str | None = None


class WireFailure(_Wire):
    code: str | None = None
    message: str = ""


class WireResponse(_Wire):
    output: tuple[WireItem, ...]
    status: str | None = None
    incomplete_details: Incomplete | None = None
    error: WireFailure | None = None
    usage: WireUsage | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self._parts if part.type == "output_text")

    @property
    def refusal(self) -> str:
        return "".join(part.refusal for part in self._parts if part.type == "refusal")

    @property
    def _parts(self) -> list[WirePart]:
        return [part for item in self.output if item.type == "message" for part in item.content or ()]


class WholeResponse(_Wire):
    response: WireResponse
    output: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """The items as they came. A conversation sends them back unchanged, reasoning included."""


def whole_response(body: str) -> WholeResponse:
    """Parses *body*. Raises ValueError if it is not complete JSON, ValidationError if it is no response."""
    parsed = parsed_json(body)
    response = WireResponse.model_validate(parsed)
    return WholeResponse(response=response, output=cast("dict[str, Any]", parsed)["output"])
