"""Subgoal quality of whole runs: reads their traces one by one and hands what they say to
:mod:`judges.subgoal_quality`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from agent.run.discover_traces import EpisodeFile
from envs.core.errors import TraceError
from envs.core.record import Record
from envs.core.trace_store import Trace
from judges.subgoal_quality import Agreement, Quality, agreement, quality
from judges.trace_ratings import Observed, Source, UnusableTrace, observe


class RunsQuality(Record):
    """The quality of the milestones in a number of runs."""

    read: int
    """Traces read, those that say nothing included."""
    sources: tuple[Quality, ...]
    """One for each source that any trace has; none where no trace has milestones and a checker's outcome."""
    agreement: Agreement | None
    """None unless both sources are there."""
    left_out: dict[str, int]
    """Traces that say nothing for any source, by reason."""
    damaged: tuple[str, ...]
    """One line for each trace that cannot be read."""


def runs_quality(
    files: Sequence[EpisodeFile],
    *,
    without_last: bool = False,
    resamples: int = 2000,
    seed: int = 0,
    tell: Callable[[int], None] | None = None,
) -> RunsQuality:
    """Of all *files* together. *tell* hears how many have been read.

    *without_last* leaves each trace's last milestone out: a task's own list often ends with the outcome itself, and
    then says little that the outcome did not.
    """
    found = _Found(without_last)
    for done, file in enumerate(files, 1):
        found.add(file)
        if tell is not None:
            tell(done)
    sources: tuple[tuple[Source, Iterable[Observed]], ...] = (
        ("checks", found.checks.values()),
        ("rater", found.rater.values()),
    )
    measured = tuple(
        quality(tuple(observed), source, resamples=resamples, seed=seed) for source, observed in sources if observed
    )
    both = found.checks.keys() & found.rater.keys()
    return RunsQuality(
        read=len(files),
        sources=measured,
        agreement=agreement((found.checks[n], found.rater[n]) for n in sorted(both)) if both else None,
        left_out=dict(found.left_out),
        damaged=tuple(found.damaged),
    )


class _Found:
    """What the traces said, by their number."""

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
