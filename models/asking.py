"""One typed question: a request with a schema in, an instance of that schema out, or a ModelError."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pydantic import BaseModel

from models.base import ChatModel, ChatReply, ChatRequest
from models.structured import parse_answer

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Asked(Generic[M]):
    answer: M
    reply: ChatReply


async def ask(model: ChatModel, request: ChatRequest, schema: type[M]) -> Asked[M]:
    """The answer to *request* as *schema*.

    A model that does not parse by itself (a scripted one) is parsed here, so that its text meets the same rules.
    Raises :class:`models.base.ModelError`; :class:`models.base.ModelInvalidAnswer` where the text is not a *schema*.
    """
    reply = await model.complete(replace(request, schema=schema))
    answer = reply.parsed if isinstance(reply.parsed, schema) else parse_answer(reply.text, schema)
    return Asked(answer, reply)
