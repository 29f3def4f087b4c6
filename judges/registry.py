"""Makes the AutoRater and the outcome judge that a run's configuration names: an entry of the registry, or a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from envs.core.errors import BadInput
from judges.autorater import ModelAutoRater, RaterSettings
from judges.base import AutoRater, OutcomeJudge, Progress, Rated
from judges.compact_autorater import CompactAutoRater
from judges.entry import JudgeEntry
from judges.outcome import JudgeSettings, ModelJudge
from judges.short_autorater import ShortAutoRater
from judges.state_autorater import StateAutoRater
from models.base import ChatModel
from models.local.declarations import RoleStyle
from models.registry import Registry

JUDGES: Final = Registry(
    "mira.judges",
    JudgeEntry,
    {"state": "judges.state_autorater:ENTRY", "none": "judges.none:ENTRY", "orm": "judges.orm:ENTRY"},
    error=BadInput,
    reserved=frozenset({"same"}),
    with_model=frozenset({"orm"}),
)
OUTCOME_ONLY: Final = frozenset({"orm"})
"""Entries that judge the end of an episode and rate no milestones."""
_RATERS: Final[Mapping[RoleStyle, Callable[[ChatModel, RaterSettings | None], AutoRater]]] = {
    "compact": CompactAutoRater,
    "short": ShortAutoRater,
    "full": ModelAutoRater,
}


class CheckersFirst:
    """Uses the state checkers at steps that have their answers, and *otherwise* at all other steps.

    A checker reads the application's state and costs nothing. A model reads a page, which may be false.
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
    style: RoleStyle = "full",
) -> AutoRater:
    """An entry of the registry, or an AutoRater that asks *model*, which was made from the model spec *spec*.

    Added entries and models are used only at steps without state checks. *style*: the prompts that the model
    gets. Raises BadInput for an added entry that cannot be used, ValueError if a model is
    needed and is None.
    """
    name, _ = JUDGES.split(spec)
    if name:
        rater = JUDGES.load(name).rater(model, settings or RaterSettings())
        return CheckersFirst(rater) if JUDGES.is_added(name) else rater
    return CheckersFirst(_RATERS[style](_required(spec, model), settings))


def make_judge(spec: str, model: ChatModel | None = None, settings: JudgeSettings | None = None) -> OutcomeJudge | None:
    """An outcome judge, like `make_rater`; None if only the task's checker gives a verdict."""
    name, _ = JUDGES.split(spec)
    if name:
        return JUDGES.load(name).outcome(model, settings or JudgeSettings())
    return ModelJudge(_required(spec, model), settings)


def _required(spec: str, model: ChatModel | None) -> ChatModel:
    if model is None:
        raise ValueError(f"judge {spec!r} needs a model; use `state`, `none` or a model spec")
    return model
