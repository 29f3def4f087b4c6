"""The AutoRater of small models: one milestone at a time, in the order of the plan.

What a prompt says and how an answer is read is the subclass's: :mod:`judges.compact_autorater` for models that were
trained to rate, :mod:`judges.short_autorater` for small general models.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from envs.core.record import storable
from envs.core.trace import Flip
from judges.autorater import RaterSettings, cheap_rating
from judges.autorater_prompt import key
from judges.base import Progress, Rated
from judges.evidence import QuoteChecker, Rejection, normalised
from judges.ratings import make_rating
from models.asking import charge
from models.base import ChatModel, ChatReply, ModelError


class Claim(NamedTuple):
    """The model's answer about one milestone."""

    quote: str | None
    """What proves it; None: the model says that it is not achieved."""
    reply: ChatReply
    rejected: Rejection | None = None
    """Why the quote is no evidence, beyond what :class:`judges.evidence.QuoteChecker` finds."""


class _Answer(NamedTuple):
    """The answer for one milestone, checked."""

    place: int
    """0-based number of the milestone."""
    claim: Claim
    rejected: Rejection | None
    """Why the quote is no evidence."""

    @property
    def achieved(self) -> bool:
        return self.claim.quote is not None and self.rejected is None

    def summary(self) -> str:
        if self.rejected is not None:
            return f"{key(self.place)}: refused, {self.rejected}"
        return f"{key(self.place)}: {'yes' if self.achieved else 'no'}"


class StepwiseAutoRater(ABC):
    """Asks *model* about the first open milestone, and after each achieved one about the next.

    Milestones are achieved in the order of the plan only. Evidence, `rejected`, errors and the budget `auto` are those
    of :class:`judges.autorater.ModelAutoRater`.
    """

    def __init__(self, model: ChatModel, settings: RaterSettings | None = None) -> None:
        self.spec = model.spec
        self.settings = settings or RaterSettings()
        self.rejected = 0
        """Number of claims rejected for lack of evidence."""
        self.model = model

    @abstractmethod
    async def claim(self, progress: Progress, index: int) -> Claim:
        """Asks about the milestone with 0-based *index*. Raises :class:`models.base.ModelError`."""

    async def rate(self, progress: Progress) -> Rated:
        """Raises ValueError where `z` and the milestones differ in number, else :class:`models.base.ModelError`."""
        settled = cheap_rating(progress, self.settings)
        return settled if settled is not None else _rated(progress, await self._answers(progress))

    async def _answers(self, progress: Progress) -> list[_Answer]:
        """Asks about each open milestone, up to the first that is not achieved."""
        witness = QuoteChecker(progress)
        answers: list[_Answer] = []
        for index, known in enumerate(progress.z):
            if known:
                continue
            try:
                claim = await self.claim(progress, index)
            except ModelError as error:
                charge(error, [answer.claim.reply for answer in answers])
                raise
            rejected = None if claim.quote is None else claim.rejected or witness.rejects(claim.quote)
            self.rejected += rejected is not None
            answers.append(_Answer(index, claim, rejected))
            if not answers[-1].achieved:
                break
        return answers


def _rated(progress: Progress, answers: Sequence[_Answer]) -> Rated:
    proven = {answer.place: storable(normalised(answer.claim.quote or "")) for answer in answers if answer.achieved}
    rating = make_rating(
        progress.z,
        tuple(index in proven for index in range(len(progress.z))),
        tuple(
            Flip(milestone=progress.milestones[index].id, achieved=True, evidence=quote)
            for index, quote in proven.items()
        ),
        reason="; ".join(answer.summary() for answer in answers),
        source="model",
    )
    return Rated(rating, tuple(answer.claim.reply for answer in answers))
