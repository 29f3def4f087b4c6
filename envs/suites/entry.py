"""What a suite registers: how it is made, and its tasks. Installed packages use the entry-point group `mira.suites`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envs.core.settings import SessionSettings
from envs.core.tasks import Suite, TaskInfo

if TYPE_CHECKING:  # lists of suites are printed without the browser's library
    from envs.browser.chromium import Chromium
    from envs.suites.webarena.evaluators import FuzzyJudge


@dataclass(frozen=True, slots=True)
class Scoring:
    """How a run scores its episodes."""

    judge: FuzzyJudge | None = None
    """For checkers that compare texts by meaning."""
    strict_original: bool = False
    """By the rules of the benchmark's own evaluators."""


@dataclass(frozen=True, slots=True)
class SuiteEntry:
    """A suite that a run names: `mira run --suite NAME`."""

    make: Callable[[Chromium, Path, SessionSettings, Scoring], Suite]
    """From the run's browser, the run's folder and the session settings."""
    infos: Callable[[], Sequence[TaskInfo]]
    """Its tasks. Starts nothing."""
    training_seeds: range | None = None
    """Seeds that `mira train mira` and `mira train mgrpo` may train on, of the tasks whose split is `train` or empty.
    Seeds below are for evaluation. None: nothing of the suite is trained on by them."""

    def __post_init__(self) -> None:
        seeds = self.training_seeds
        if seeds is not None and (not seeds or seeds.start < 1 or seeds.step != 1):
            raise ValueError(f"training_seeds {seeds} must be rising seeds without gaps, above those for evaluation")
