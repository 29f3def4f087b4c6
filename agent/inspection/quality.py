"""Measures the subgoal quality of runs: reads their traces one by one for :mod:`judges.subgoal_quality`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from agent.run.discover_traces import EpisodeFile
from envs.core.errors import TraceError
from envs.core.record import Record
from envs.core.trace_store import Trace
from judges.statistics import RESAMPLES
from judges.subgoal_quality import Agreement, Quality, agreement, quality
from judges.trace_ratings import Observed, Source, UnusableTrace, observe


class RunsQuality(Record):
    """The quality of the milestones in a number of runs."""

    read: int
    """Number of traces read, including those without usable data."""
    sources: tuple[Quality, ...]
    """One per source that any trace has; empty if no trace has both milestones and an outcome by a checker."""
    agreement: Agreement | None
    """None unless both sources exist."""
    left_out: dict[str, int]
    """Number of traces without data for any source, by reason."""
    damaged: tuple[str, ...]
    """One line per unreadable trace."""


def runs_quality(
    files: Sequence[EpisodeFile],
    *,
    without_last: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
    on_progress: Callable[[int], None] | None = None,
) -> RunsQuality:
    """Measures the quality over all *files*. *on_progress* is called with the number of traces read.

    *without_last* excludes each trace's last milestone, because a task's list often ends with the outcome itself, which
    adds no information.
    """
    observations = _Observations(without_last)
    for done, file in enumerate(files, 1):
        observations.add(file)
        if on_progress is not None:
            on_progress(done)
    sources: tuple[tuple[Source, Iterable[Observed]], ...] = (
        ("checks", observations.checks.values()),
        ("rater", observations.rater.values()),
    )
    measured = tuple(
        quality(tuple(observed), source, resamples=resamples, seed=seed) for source, observed in sources if observed
    )
    both = observations.checks.keys() & observations.rater.keys()
    return RunsQuality(
        read=len(files),
        sources=measured,
        agreement=agreement((observations.checks[n], observations.rater[n]) for n in sorted(both)) if both else None,
        left_out=dict(observations.left_out),
        damaged=tuple(observations.damaged),
    )


class _Observations:
    """Milestone observations by trace number."""

    def __init__(self, without_last: bool) -> None:
        self._without_last = without_last
        self.checks: dict[int, Observed] = {}
        self.rater: dict[int, Observed] = {}
        self.left_out: Counter[str] = Counter()
        self.damaged: list[str] = []
        self._number = 0

    def add(self, file: EpisodeFile) -> None:
        self._number += 1
        try:
            trace = file.read()
        except TraceError as error:
            self.damaged.append(str(error))
            return
        by_checks, by_rater = self._observe(trace, "checks"), self._observe(trace, "rater")
        if isinstance(by_checks, Observed):
            self.checks[self._number] = by_checks
        if isinstance(by_rater, Observed):
            self.rater[self._number] = by_rater
        if isinstance(by_checks, UnusableTrace) and isinstance(by_rater, UnusableTrace):
            self.left_out[by_rater.reason] += 1

    def _observe(self, trace: Trace, source: Source) -> Observed | UnusableTrace:
        seen = observe(trace, source)
        if self._without_last and isinstance(seen, Observed):
            return seen.without_last() or UnusableTrace("no milestones")
        return seen
