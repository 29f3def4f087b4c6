"""The judge of WebArena's `fuzzy_match`: compares an answer with the reference answer by meaning.

The benchmark always uses GPT-4; here the run's judge model is used. It adapts a chat model to
:class:`envs.suites.webarena.evaluators.FuzzyJudge`. An answer that cannot be parsed and an unreachable model raise
:class:`envs.suites.webarena.evaluators.JudgeFailed`: the episode is broken, never failed.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from pydantic import Field

from envs.core.record import Record, storable
from envs.observer.page_text import one_line
from envs.suites.webarena.evaluators import JudgeFailed
from models.asking import ask
from models.base import ChatModel, ChatReply, ChatRequest, Message, ModelError
from models.prompting.fence import FENCE_RULE
from models.prompting.prompt_text import fenced, joined, message, words

SYSTEM: Final = f"""\
You are an expert who compares an answer with a reference answer to the same task. The words may differ, and the \
answer may say more than the reference; what counts is whether it says what the reference says.

Rules
- Numbers, dates, names and units must agree in value; "2h 5min" and "125 minutes" agree, "2h" and "2h 5min" do not.
- An answer that is only partly right, or that contradicts itself, does not agree.
- Where the reference says that the task cannot be done, the answer agrees if it says so, for the reason that the \
reference gives or an equal one.
- {FENCE_RULE}

Answer with a JSON object: {{"reason": one sentence, "agrees": true or false}}."""

MAX_ANSWER_CHARS: Final = 20_000
"""Only the beginning of a longer text is compared."""


class Comparison(Record):
    """What the model answers with; the reason comes first, so that the verdict follows from it."""

    reason: str
    agrees: bool


@dataclass(slots=True)
class Comparisons:
    """The judge's comparisons while one episode is scored."""

    replies: list[ChatReply] = field(default_factory=list[ChatReply])
    """Oldest first, including unusable answers."""
    failed: bool = False
    """At least one comparison failed, because the model gave no usable answer."""


_recorder: ContextVar[Comparisons | None] = ContextVar("recorder", default=None)


@contextmanager
def comparisons() -> Generator[Comparisons]:
    """Records the judge's comparisons inside the block, so that the caller can account for their cost. The checker in
    between needs no access to the model."""
    recorded = Comparisons()
    token = _recorder.set(recorded)
    try:
        yield recorded
    finally:
        _recorder.reset(token)


def _record(reply: ChatReply) -> None:
    if (recorded := _recorder.get()) is not None:
        recorded.replies.append(reply)


def _record_failure(error: ModelError, spec: str) -> None:
    if (recorded := _recorder.get()) is not None:
        recorded.failed = True
        if error.usage is not None:
            recorded.replies.append(ChatReply("", error.usage, spec, error.seconds, error.attempts))


class FuzzySettings(Record):
    deadline_s: float = Field(default=120.0, gt=0)
    max_tokens: int = Field(default=512, ge=64)


class ModelFuzzyJudge:
    """Calls *model* once for each comparison."""

    def __init__(self, model: ChatModel, settings: FuzzySettings | None = None) -> None:
        self.spec = model.spec
        self.settings = settings or FuzzySettings()
        self._model = model

    async def __call__(self, question: str, reference: str, answer: str) -> bool:
        request = ChatRequest(
            messages=render(question, reference, answer),
            max_tokens=self.settings.max_tokens,
            deadline_s=self.settings.deadline_s,
        )
        try:
            result = await ask(self._model, request, Comparison)
        except ModelError as error:
            _record_failure(error, self.spec)
            reason = one_line(storable(str(error)), 200)
            raise JudgeFailed(f"the judge {self.spec} gave no verdict: {type(error).__name__}: {reason}") from error
        _record(result.reply)
        return result.answer.agrees


def render(question: str, reference: str, answer: str) -> tuple[Message, ...]:
    """The judge's messages: rules first, then text of the agent or a page, fenced."""
    parts = [
        words("The task:\n") + fenced("task", question),
        words("The reference answer:\n") + fenced("reference", reference),
        words("The answer:\n") + fenced("answer", storable(answer[:MAX_ANSWER_CHARS])),
    ]
    return message("system", words(SYSTEM)), message("user", joined("\n\n", parts))
