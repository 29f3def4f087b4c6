"""What a judge registers: functions that make it. Installed packages use the entry-point group `mira.judges`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from judges.autorater import RaterSettings
from judges.base import AutoRater, OutcomeJudge
from judges.outcome import JudgeSettings
from models.base import ChatModel


def _no_judge(model: ChatModel | None, settings: JudgeSettings) -> None:
    """Leaves the verdict to the task's checker."""


@dataclass(frozen=True, slots=True)
class JudgeEntry:
    """A judge that a run names: `--judge NAME`, or `--judge NAME+MODEL` with the model that it may use.

    The model is None unless the run names one.
    """

    rater: Callable[[ChatModel | None, RaterSettings], AutoRater]
    """Verifies milestones at each step. The state checkers of a task take precedence over an added one."""
    outcome: Callable[[ChatModel | None, JudgeSettings], OutcomeJudge | None] = _no_judge
    """Judges the end of the episode; None leaves the verdict to the task's checker."""
