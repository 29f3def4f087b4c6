"""What an evaluator found, and the judge that some of them need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from envs.core.errors import EnvError


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's result."""

    met: bool
    why: str
    """One line: what was found, or what is missing."""


class FuzzyJudge(Protocol):
    """Compares texts by meaning; made from a chat model by :class:`judges.fuzzy.ModelFuzzyJudge`."""

    async def __call__(self, question: str, reference: str, answer: str) -> bool:
        """Does *answer* to *question* say what *reference* says?

        Raises :class:`JudgeFailed` where no verdict was reached: that is never a "no".
        """
        ...


class JudgeFailed(EnvError):
    """No verdict: there is no judge, or it could not be reached or understood. The episode's score is *broken*."""


async def no_judge(question: str, reference: str, answer: str) -> bool:
    """The judge of a run that has none."""
    raise JudgeFailed("this task compares by meaning (fuzzy_match): name a model as judge")


def short(text: str, limit: int = 80) -> str:
    """*text* on one line, for a message."""
    line = " ".join(text.split())
    return repr(line if len(line) <= limit else line[: limit - 1] + "…")
