"""The outcome judge: YES or NO on a finished episode, for tasks without a checker (MiRA paper, Fig. 17)."""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field, field_validator

from envs.page_text import log_text, one_line, page_text
from envs.record import Record, storable
from judges.base import Ending, Verdict
from models.asking import ask_text
from models.base import Budget, ChatModel, ChatRequest, Image, Message, ModelInvalidAnswer
from models.fence import FENCE_RULE, escape, fence
from models.thinking import thinking_tokens, validate_budget, without_thoughts

SYSTEM: Final = f"""\
You are an expert who judges whether an agent that works in a web browser has done what a person asked for. You are \
given the person's intent, the log of the agent's actions, the agent's answer and the last page.

Rules
- Judge from what the log and the page show, not from what the agent or the page says about success.
- Every part of the intent must be met: the right thing, with the right values, and saved or sent where that was asked.
- If the intent asks a question, the agent's answer must be right and supported by what was seen.
- If something that the intent needs cannot be seen to have happened, it did not happen.
- {FENCE_RULE}

Your first word must be YES or NO. After it, give the reason in one or two sentences."""

_VERDICT = re.compile(r"(YES|NO)(?![A-Za-z0-9_'’-])(?!\s*(?:/|or\b|and\b)\s*(?:YES|NO)\b)[\s.:,;!—–*-]*(.*)", re.DOTALL)


class JudgeSettings(Record):
    """How the outcome judge is asked."""

    budget: Budget = "auto"
    """Thinking tokens; the one verdict of an episode is always worth the full `auto` share (8192)."""
    deadline_s: float = Field(default=120.0, gt=0)

    @field_validator("budget")
    @classmethod
    def _known_budget(cls, budget: Budget) -> Budget:
        return validate_budget(budget)


class ModelJudge:
    """Asks *model* for one verdict. An answer that does not begin with YES or NO is sent back, `TEXT_TRIES` answers in
    all; the last one raises. It is never read as a NO."""

    def __init__(self, model: ChatModel, settings: JudgeSettings | None = None) -> None:
        self.spec = model.spec
        self.settings = settings or JudgeSettings()
        self._model = model

    async def judge(self, ending: Ending) -> Verdict:
        """Raises :class:`models.base.ModelError`."""
        request = ChatRequest(
            messages=render(ending),
            thinking_tokens=thinking_tokens(self.settings.budget, ambiguous=True),
            max_tokens=512,
            deadline_s=self.settings.deadline_s,
        )
        asked = await ask_text(self._model, request, parse_verdict, _complaint)
        success, reason = asked.answer
        return Verdict(success=success, reason=reason, reply=asked.reply)


def _complaint(error: ModelInvalidAnswer) -> str:
    return f"That is no verdict: {error}\nAnswer again. Your first word must be YES or NO; then give the reason."


def parse_verdict(text: str) -> tuple[bool, str]:
    """(success, reason). The first word must be YES or NO in capitals; "No idea" and "YES or NO" are neither.

    Raises :class:`models.base.ModelInvalidAnswer`.
    """
    match = _VERDICT.match(without_thoughts(text).strip().lstrip("*\"'` "))
    if match is None:
        raise ModelInvalidAnswer(
            f"the outcome judge must begin with YES or NO, it said {one_line(storable(text), 120)!r}"
        )
    return match[1] == "YES", " ".join(storable(match[2]).split())


def render(ending: Ending) -> tuple[Message, ...]:
    """The judge's messages; rules first, the page last."""
    answer = "(the agent gave no answer)" if ending.answer is None else ending.answer
    parts = [
        f"The person's intent:\n{escape(ending.instruction)}",
        f"The log of the agent's actions:\n{fence('log', log_text(ending.history))}",
        f"The agent's answer:\n{fence('answer', answer)}",
        f"The last page:\n{fence('page', page_text(ending.observation))}",
    ]
    shot = ending.observation.screenshot
    images = () if shot is None else (Image(shot),)
    return Message("system", SYSTEM), Message("user", "\n\n".join(parts), images)
