"""Makes the AutoRater and the outcome judge that a run's configuration names."""

from __future__ import annotations

from judges.autorater import ModelAutoRater, RaterSettings
from judges.base import AutoRater, OutcomeJudge, Progress, Rated
from judges.compact_autorater import CompactAutoRater
from judges.outcome import JudgeSettings, ModelJudge
from judges.ratings import make_rating
from judges.state_autorater import StateAutoRater
from models.base import ChatModel


class NoAutoRater:
    """Leaves `z` as it is."""

    spec = "none"

    async def rate(self, progress: Progress) -> Rated:
        return Rated(make_rating(progress.z, progress.z, source="none"))


class ChecksFirst:
    """The state checkers where a step has their answers, *otherwise* where it has none.

    A checker reads the application's state and costs nothing; a model reads a page that may lie.
    """

    def __init__(self, otherwise: AutoRater) -> None:
        self.spec = otherwise.spec
        self._otherwise = otherwise
        self._state = StateAutoRater()

    async def rate(self, progress: Progress) -> Rated:
        rater = self._otherwise if progress.checks is None else self._state
        return await rater.rate(progress)


def make_rater(
    spec: str,
    model: ChatModel | None = None,
    settings: RaterSettings | None = None,
    *,
    compact: bool = False,
) -> AutoRater:
    """`state`, `none`, or any model spec together with the *model* made from it.

    A model is asked only where the state checkers do not answer; *compact* asks it as a small model that was trained to
    rate. Raises ValueError where a model is needed and none is given.
    """
    if spec == "none":
        return NoAutoRater()
    if spec == "state":
        return StateAutoRater()
    return ChecksFirst((CompactAutoRater if compact else ModelAutoRater)(_needed(spec, model), settings))


def make_judge(spec: str, model: ChatModel | None = None, settings: JudgeSettings | None = None) -> OutcomeJudge | None:
    """A judge by *model*; None for `state` and `none`, where only the task's checker can tell."""
    if spec in ("none", "state"):
        return None
    return ModelJudge(_needed(spec, model), settings)


def _needed(spec: str, model: ChatModel | None) -> ChatModel:
    if model is None:
        raise ValueError(f"judge {spec!r} needs a model; use `state`, `none` or a model spec")
    return model
