"""The judge that WebArena's `fuzzy_match` asks: does an answer say what the reference says, however worded?

The benchmark hard-codes GPT-4 for this; here it is whatever model the run names. It adapts a chat model
to :class:`envs.suites.webarena.evaluators.FuzzyJudge`. An answer that cannot be read, and a model that cannot
be reached, raise :class:`envs.suites.webarena.evaluators.JudgeFailed`: the episode is broken, never failed.
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
"""Of a longer text, as a page may be, the beginning is compared."""


class Comparison(Record):
    """What the model answers with; the reason comes first, so that the verdict follows from it."""

    reason: str
    agrees: bool


@dataclass(slots=True)
class Comparisons:
    """What became of the judge's comparisons while an episode was scored."""

    replies: list[ChatReply] = field(default_factory=list[ChatReply])
    """Oldest first, an answer that was no use among them."""
    failed: bool = False
    """One was not made, because the model gave no usable answer."""


_heard: ContextVar[Comparisons | None] = ContextVar("heard", default=None)


@contextmanager
def comparisons() -> Generator[Comparisons]:
    """What the judge answers within: whoever has an episode scored pays for it, and the checker in between knows of no
    model."""
    made = Comparisons()
    token = _heard.set(made)
    try:
        yield made
    finally:
        _heard.reset(token)


def _hear(reply: ChatReply) -> None:
    if (made := _heard.get()) is not None:
        made.replies.append(reply)


def _hear_failure(error: ModelError, spec: str) -> None:
    if (made := _heard.get()) is not None:
        made.failed = True
        if error.usage is not None:
            made.replies.append(ChatReply("", error.usage, spec, error.seconds, error.attempts))


class FuzzySettings(Record):
    deadline_s: float = Field(default=120.0, gt=0)
    max_tokens: int = Field(default=512, ge=64)


class ModelFuzzyJudge:
    """Asks *model* once for each comparison."""

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
            asked = await ask(self._model, request, Comparison)
        except ModelError as error:
            _hear_failure(error, self.spec)
            reason = one_line(storable(str(error)), 200)
            raise JudgeFailed(f"the judge {self.spec} gave no verdict: {type(error).__name__}: {reason}") from error
        _hear(asked.reply)
        return asked.answer.agrees


def render(question: str, reference: str, answer: str) -> tuple[Message, ...]:
    """The judge's messages; rules first, what comes from the agent or a page last and fenced."""
    parts = [
        words("The task:\n") + fenced("task", question),
        words("The reference answer:\n") + fenced("reference", reference),
        words("The answer:\n") + fenced("answer", storable(answer[:MAX_ANSWER_CHARS])),
    ]
    return message("system", words(SYSTEM)), message("user", joined("\n\n", parts))
