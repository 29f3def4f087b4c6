"""Gives the calls of one role their own effort, while roles share the model and its connections."""

from __future__ import annotations

from dataclasses import dataclass, replace

from models.base import Budget, ChatModel, ChatReply, ChatRequest, Effort
from models.thinking import Thinking, effort_of, has_dynamic_mode


@dataclass(frozen=True, slots=True)
class ModelWithEffort:
    """A :class:`models.base.ChatModel` that adds *effort* to every request to *model*."""

    model: ChatModel
    effort: Effort

    @property
    def spec(self) -> str:
        return self.model.spec

    async def complete(self, request: ChatRequest) -> ChatReply:
        return await self.model.complete(replace(request, effort=self.effort))

    async def aclose(self) -> None:
        await self.model.aclose()

    @property
    def dynamic_thinking(self) -> bool:
        return has_dynamic_mode(self.model)

    def thinks_at(self, budget: Budget | None) -> bool:
        """The effort counts, not the *budget*."""
        del budget
        return self.effort != "none"


def with_effort(model: ChatModel, thinking: Thinking | None) -> ChatModel:
    """*model*, with the effort that *thinking* names, if it names one."""
    effort = effort_of(thinking)
    return model if effort is None else ModelWithEffort(model, effort)
