"""Gives the calls of one role their own effort, while roles share the model and its connections."""

from __future__ import annotations

from dataclasses import replace

from models.base import Budget, ChatModel, ChatReply, ChatRequest, Effort
from models.thinking import Thinking, effort_of, has_dynamic_mode


class ModelWithEffort:
    """A :class:`models.base.ChatModel` that adds *effort* to every request to *model*."""

    def __init__(self, model: ChatModel, effort: Effort) -> None:
        self.spec = model.spec
        self._model = model
        self._effort: Effort = effort

    async def complete(self, request: ChatRequest) -> ChatReply:
        return await self._model.complete(replace(request, effort=self._effort))

    async def aclose(self) -> None:
        await self._model.aclose()

    @property
    def dynamic_thinking(self) -> bool:
        return has_dynamic_mode(self._model)

    def thinks_at(self, budget: Budget | None) -> bool:
        """The effort counts, not the *budget*."""
        del budget
        return self._effort != "none"


def with_effort(model: ChatModel, thinking: Thinking | None) -> ChatModel:
    """*model*, with the effort that *thinking* names, if it names one."""
    effort = effort_of(thinking)
    return model if effort is None else ModelWithEffort(model, effort)
