"""The result of an evaluator, and the protocol of the judge that some evaluators need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from envs.core.errors import EnvError


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    met: bool
    why: str
    """One line with the evidence, or with what is missing."""


class FuzzyJudge(Protocol):
    """Compares texts by meaning; implemented with a chat model by :class:`judges.fuzzy.ModelFuzzyJudge`."""

    async def __call__(self, question: str, reference: str, answer: str) -> bool:
        """True if *answer* to *question* has the meaning of *reference*.

        Raises :class:`JudgeFailed` if there is no verdict, which does not count as "no".
        """
        ...


class JudgeFailed(EnvError):
    """There is no verdict: no judge, or the judge failed or its answer is invalid. The episode's score is *broken*."""


async def no_judge(question: str, reference: str, answer: str) -> bool:
    """The default judge of a run without one; raises JudgeFailed."""
    raise JudgeFailed("this task compares by meaning (fuzzy_match): name a model as judge")


def short(text: str, limit: int = 80) -> str:
    """*text* quoted and shortened to one line, for a message."""
    line = " ".join(text.split())
    return repr(line if len(line) <= limit else line[: limit - 1] + "…")
