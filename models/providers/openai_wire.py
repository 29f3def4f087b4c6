"""Parses replies of the chat-completions protocol; optional fields may be missing.

OpenAI, vLLM, llama.cpp and Ollama differ in optional fields: a missing one gets its default, a wrong type is an error.
Requests are built in :mod:`models.providers.openai_chat`.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat

from models.transport import parsed_json


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


def _default_for_null(default: Any) -> BeforeValidator:
    return BeforeValidator(lambda value: default if value is None else value)


Count = Annotated[int, _default_for_null(0)]


class PromptDetails(_Wire):
    cached_tokens: Count = 0


class CompletionDetails(_Wire):
    reasoning_tokens: Count = 0


class WireUsage(_Wire):
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    """Thinking tokens included."""
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None


class TokenLogprob(_Wire):
    logprob: FiniteFloat


class WireLogprobs(_Wire):
    content: tuple[TokenLogprob, ...] | None = None


class WireMessage(_Wire):
    content: str | None = None
    refusal: str | None = None


class WireChoice(_Wire):
    message: WireMessage
    finish_reason: str | None = None
    logprobs: WireLogprobs | None = None
    token_ids: tuple[int, ...] | None = None
    """vLLM, with `return_token_ids`."""


class WireReply(_Wire):
    choices: tuple[WireChoice, ...] = Field(min_length=1)
    usage: WireUsage | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    """vLLM, with `return_token_ids`."""


def wire_reply(body: str) -> WireReply:
    """Parses *body*. Raises ValueError if it is not complete JSON, ValidationError if it is no chat completion."""
    return WireReply.model_validate(parsed_json(body))


class WireError(_Wire):
    """An error body: OpenAI nests it under `error`, older vLLM does not."""

    message: str = ""
    param: str | None = None
    code: str | None = None


def wire_error(body: str) -> WireError:
    """Parses the error in *body*; text that is no JSON object is its message."""
    try:
        parsed: Any = json.loads(body)
    except (ValueError, RecursionError):
        return WireError(message=body)
    if isinstance(parsed, dict) and isinstance(parsed.get("error"), dict | str):
        parsed = parsed["error"]
    if isinstance(parsed, str):
        return WireError(message=parsed)
    if not isinstance(parsed, dict):
        return WireError(message=body)
    texts = {key: str(parsed[key]) for key in ("message", "param", "code") if parsed.get(key) is not None}
    return WireError(**texts) if "message" in texts else WireError(message=body)
