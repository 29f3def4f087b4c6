"""Parses replies of the Messages API; fields of other versions of it are ignored.

Requests are built in :mod:`models.providers.anthropic_chat`.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict

from models.transport import parsed_json


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


def _zero_for_null(value: Any) -> Any:
    return 0 if value is None else value


Count = Annotated[int, BeforeValidator(_zero_for_null)]


class OutputDetails(_Wire):
    thinking_tokens: Count = 0


class WireUsage(_Wire):
    input_tokens: Count = 0
    """Without the two below."""
    cache_read_input_tokens: Count = 0
    cache_creation_input_tokens: Count = 0
    output_tokens: Count = 0
    """Thinking tokens included."""
    output_tokens_details: OutputDetails | None = None


class StopDetails(_Wire):
    explanation: str | None = None
    category: str | None = None


class WireBlock(_Wire):
    type: str
    text: str = ""
    id: str = ""
    name: str = ""
    toolset_name: str | None = None
    input: dict[str, Any] | None = None


class WireReply(_Wire):
    content: tuple[WireBlock, ...]
    stop_reason: str | None = None
    stop_details: StopDetails | None = None
    usage: WireUsage = WireUsage()

    @property
    def text(self) -> str:
        """The visible text; thoughts are blocks of another type."""
        return "".join(block.text for block in self.content if block.type == "text")


class WholeReply(_Wire):
    reply: WireReply
    content: list[dict[str, Any]]
    """The blocks as they came. A conversation sends them back unchanged: thoughts are signed."""


def whole_reply(body: str) -> WholeReply:
    """Parses *body*. Raises ValueError if it is not complete JSON, ValidationError if it is no message."""
    parsed = parsed_json(body)
    reply = WireReply.model_validate(parsed)
    return WholeReply(reply=reply, content=cast("dict[str, Any]", parsed)["content"])


class WireError(_Wire):
    type: str = ""
    message: str = ""


def wire_error(body: str) -> WireError:
    """Parses the error in *body*; text of another form is its message."""
    try:
        parsed: Any = json.loads(body)
    except (ValueError, RecursionError):
        return WireError(message=body)
    error = cast("dict[str, Any]", parsed).get("error") if isinstance(parsed, dict) else None
    if not isinstance(error, dict):
        return WireError(message=body)
    texts = {key: str(error[key]) for key in ("type", "message") if error.get(key) is not None}
    return WireError(**texts) if "message" in texts else WireError(message=body)
