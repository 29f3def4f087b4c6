"""The AutoRater that asks a model: `z_t` with a quote for every flip. Thinking tokens only for unclear milestones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Final, NamedTuple

from pydantic import Field, field_validator

from envs.core.record import Record, storable
from envs.core.trace import Flip
from judges.autorater_prompt import MilestoneAnswer, Reflection, key, reflection_schema, render
from judges.base import Progress, Rated
from judges.evidence import QuoteChecker, Rejection, normalised
from judges.ratings import Source, make_rating
from judges.relevance import idle, may_have_progressed
from models.asking import ask, charge
from models.base import Budget, ChatModel, ChatReply, ChatRequest, ModelError
from models.thinking import budget_of, has_dynamic_mode, thinking_tokens, validate_budget

MAX_QUOTES: Final = 24
"""Most quotes for one milestone. More are not a proof but a copy of the page."""


class RaterSettings(Record):
    """Settings of a model AutoRater."""

    budget: Budget = "auto"
    """Thinking tokens. A fixed budget calls the model at every step, but not before the first action and where only
    the focus moved. `auto` first checks for a relevant change without a model, then calls in the model's dynamic mode.
    A model without one is called without thinking, and with thinking only for milestones that are still unsure."""
    ask_every: int = Field(default=5, ge=1)
    """`auto` calls the model at least once in this many steps, regardless of the cheap check."""
    deadline_s: float = Field(default=120.0, gt=0)
    """Bound on one call, retries and repair included."""

    @field_validator("budget")
    @classmethod
    def _known_budget(cls, budget: Budget) -> Budget:
        return validate_budget(budget)


class Finding(NamedTuple):
    """The result for one milestone after its quote was checked."""

    place: int
    """0-based index in the plan."""
    flip: Flip | None = None
    """Achieved, with evidence."""
    rejected: Rejection | None = None
    """Why the claimed quote is no evidence."""
    unsure: bool = False
    """It needs another call: the model answered `unsure`, or its quote was rejected."""


class RatingCall(NamedTuple):
    """One model call of a rating."""

    reflection: Reflection
    findings: tuple[Finding, ...]
    reply: ChatReply

    @property
    def unsure(self) -> tuple[int, ...]:
        return tuple(finding.place for finding in self.findings if finding.unsure)


def check_quotes(progress: Progress, places: Sequence[int], reflection: Reflection) -> tuple[Finding, ...]:
    """Accepts a yes only with quotes that are all on the page or in the log. A pure function."""
    witness = QuoteChecker(progress)
    return tuple(_finding(progress, witness, index, reflection.answer(index)) for index in places)


def _finding(progress: Progress, witness: QuoteChecker, index: int, answer: MilestoneAnswer) -> Finding:
    if answer.answer != "yes":
        return Finding(index, unsure=answer.answer == "unsure")
    quotes = tuple(dict.fromkeys(normalised(quote) for quote in answer.quotes)) or ("",)
    if len(quotes) > MAX_QUOTES:
        return Finding(index, rejected="too many quotes", unsure=True)
    for quote in quotes:
        if (reason := witness.rejects(quote)) is not None:
            return Finding(index, rejected=reason, unsure=True)
    first, *further = [storable(quote) for quote in quotes]
    flip = Flip(milestone=progress.milestones[index].id, achieved=True, evidence=first, further=tuple(further))
    return Finding(index, flip)


def cheap_rating(progress: Progress, settings: RaterSettings) -> Rated | None:
    """The rating if no model call is needed: all milestones are achieved, the agent did nothing that can achieve one
    (the rating is postponed), or with `auto` nothing relevant has changed.

    Raises ValueError if `z` and the milestones differ in number.
    """
    if len(progress.z) != len(progress.milestones):
        raise ValueError(f"z of length {len(progress.z)} for {len(progress.milestones)} milestones")
    if all(progress.z):
        return Rated(make_rating(progress.z, progress.z, source="none"))
    if (why := idle(progress)) is not None:
        return Rated(make_rating(progress.z, progress.z, reason=why, source="cheap"), postponed=True)
    if settings.budget == "auto" and not may_have_progressed(progress, ask_every=settings.ask_every):
        reason = "nothing that bears on an open milestone has changed"
        return Rated(make_rating(progress.z, progress.z, reason=reason, source="cheap"))
    return None


class ModelAutoRater:
    """Asks *model* about the milestones that are not achieved yet (MiRA paper, Fig. 5).

    A flip counts only with evidence (:func:`check_quotes`). Other flips are rejected, listed in the rating's reason and
    counted in `rejected`. Achieved milestones stay achieved. An answer that does not match the JSON schema raises
    :class:`models.base.ModelInvalidAnswer`.
    """

    def __init__(self, model: ChatModel, settings: RaterSettings | None = None) -> None:
        self.spec = model.spec
        self.settings = settings or RaterSettings()
        self.rejected = 0
        """Number of claims rejected for lack of evidence, over the lifetime of this rater."""
        self._model = model

    async def rate(self, progress: Progress) -> Rated:
        """Raises ValueError if `z` and the milestones differ in number."""
        if (rating := cheap_rating(progress, self.settings)) is not None:
            return rating
        open_places = tuple(index for index, achieved in enumerate(progress.z) if not achieved)
        if self.settings.budget == "auto" and not has_dynamic_mode(self._model):
            return await self._rate_sparingly(progress, open_places)
        call = await self._ask(progress, open_places, budget_of(self._model, self.settings.budget))
        return rated(progress, (call,), source="model")

    async def _rate_sparingly(self, progress: Progress, places: tuple[int, ...]) -> Rated:
        quick = await self._ask(progress, places, thinking_tokens("auto", ambiguous=False))
        if not quick.unsure:
            return rated(progress, (quick,), source="cheap")
        known = replace(progress, z=rated(progress, (quick,), source="cheap").rating.z)
        try:
            thought = await self._ask(known, quick.unsure, thinking_tokens("auto", ambiguous=True))
        except ModelError as error:
            charge(error, [quick.reply])
            raise
        return rated(progress, (quick, thought), source="model")

    async def _ask(self, progress: Progress, places: tuple[int, ...], thinking: Budget) -> RatingCall:
        request = ChatRequest(
            messages=render(progress, places),
            thinking_tokens=thinking,
            max_tokens=250 * len(places) + 200,
            deadline_s=self.settings.deadline_s,
        )
        result = await ask(self._model, request, reflection_schema(places))
        findings = check_quotes(progress, places, result.answer)
        self.rejected += sum(finding.rejected is not None for finding in findings)
        return RatingCall(result.answer, findings, result.reply)


def rated(progress: Progress, calls: Sequence[RatingCall], *, source: Source) -> Rated:
    """Combines *calls* (at least one) into a rating: flips of all calls, other answers of the last."""
    flips = [(finding.place, finding.flip) for call in calls for finding in call.findings if finding.flip is not None]
    achieved = {index for index, _ in flips}
    places = range(len(progress.milestones))
    chosen = next((index for index in places if key(index) == calls[-1].reflection.next_milestone), None)
    rating = make_rating(
        progress.z,
        tuple(index in achieved for index in places),
        tuple(flip for _, flip in sorted(flips, key=itemgetter(0))),
        reason=_reason(calls[-1]),
        source=source,
        preferred_next=chosen,
    )
    return Rated(rating, tuple(call.reply for call in calls))


def _reason(call: RatingCall) -> str:
    """The model's reason, with the claims that were rejected."""
    reason = normalised(storable(call.reflection.reason))
    refused = "; ".join(f"{key(f.place)}: {f.rejected}" for f in call.findings if f.rejected is not None)
    return f"{reason} [refused: {refused}]".strip() if refused else reason
