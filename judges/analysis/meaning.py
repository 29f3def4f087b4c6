"""Decides with a model whether two actions are equivalent, if keys, addresses and texts do not decide.

AnalysisError
└── MeaningFailed     the model is unreachable or gave no valid answer; this never counts as a verdict
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from pydantic import Field

from envs.core.errors import EnvError
from envs.core.record import Record, storable
from envs.observer.page_text import one_line
from models.asking import ask
from models.base import ChatModel, ChatRequest, Message, ModelError
from models.prompting.fence import FENCE_RULE
from models.prompting.prompt_text import fenced, joined, message, words

SYSTEM: Final = f"""\
You compare two single actions of two agents that do the same task on the same website. The names and words may \
differ; what counts is whether both actions serve the same purpose there: the same link or control, the same query or \
value in other words. Two links to different items, or values that differ in a number, a date, a name or a unit, are \
not the same.

{FENCE_RULE}

Answer with a JSON object: {{"reason": one sentence, "same": true or false}}."""


class AnalysisError(EnvError):
    """Base of the analyzer's errors."""


class MeaningFailed(AnalysisError):
    """A model gave no verdict on whether two actions are equivalent."""


class Question(NamedTuple):
    """Two actions, in words."""

    failed: str
    reference: str


class Meaning(Protocol):
    async def same(self, instruction: str, question: Question) -> bool:
        """Raises MeaningFailed."""
        ...


class SameAction(Record):
    """What the model answers with; the reason comes first, so that the verdict follows from it."""

    reason: str
    same: bool


class MeaningSettings(Record):
    deadline_s: float = Field(default=60.0, gt=0)
    max_tokens: int = Field(default=256, ge=64)


class ModelMeaning:
    """Calls *model* once for each pair of actions of a task. A model that was unreachable is not called again: each
    call would wait for it as long."""

    def __init__(self, model: ChatModel, settings: MeaningSettings | None = None) -> None:
        self.spec = model.spec
        self._model = model
        self._settings = settings or MeaningSettings()
        self._known: dict[tuple[str, Question], bool] = {}
        self._unreachable: MeaningFailed | None = None

    async def same(self, instruction: str, question: Question) -> bool:
        key = (instruction, question)
        if key not in self._known:
            self._known[key] = await self._compare(instruction, question)
        return self._known[key]

    async def _compare(self, instruction: str, question: Question) -> bool:
        if self._unreachable is not None:
            raise MeaningFailed(str(self._unreachable))
        request = ChatRequest(
            messages=render(instruction, question),
            max_tokens=self._settings.max_tokens,
            deadline_s=self._settings.deadline_s,
        )
        try:
            result = await ask(self._model, request, SameAction)
        except ModelError as error:
            reason = one_line(storable(str(error)), 200)
            failed = MeaningFailed(f"the judge {self.spec} gave no verdict: {type(error).__name__}: {reason}")
            self._unreachable = None if error.answered else failed
            raise failed from error
        return result.answer.same


def render(instruction: str, question: Question) -> tuple[Message, ...]:
    """The model's messages: rules first, then text of the task and pages, fenced."""
    parts = [
        words("The task:\n") + fenced("task", instruction),
        fenced("action one", storable(question.failed)),
        fenced("action two", storable(question.reference)),
    ]
    return message("system", words(SYSTEM)), message("user", joined("\n\n", parts))
