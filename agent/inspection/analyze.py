"""Analyzes the failures of runs: which traces failed, which successes they can be compared with, and the totals.

Traces are read one at a time; of references, what comparing needs is kept for the latest few hundred. A trace that
cannot be read is named and passed over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from agent.run.discover_traces import EpisodeFile, discover_traces
from envs.core.errors import TraceError
from envs.core.record import Record
from envs.core.trace import Outcome
from envs.core.trace_store import BlobStore, read_summary, read_trace
from judges.analysis import Analysis, Analyzer, Pages, Recorded, Reference
from judges.analysis.rules import needs_reason

_REFERENCES_KEPT = 512


class Problem(Record):
    """A trace that was passed over."""

    trace: str
    problem: str


class Total(Record):
    """Failures of one category, on one kind of site, by one policy."""

    failure: str
    category: str
    policy: str
    count: int


@dataclass(slots=True)
class Survey:
    """What lies in the places that were named."""

    failed: list[EpisodeFile] = field(default_factory=list[EpisodeFile])
    """Those that failed, broke, or were cut off and not judged."""
    undecided: int = 0
    """Episodes that ended themselves and that nobody judged: whether they failed is not known."""
    successes: dict[str, list[EpisodeFile]] = field(default_factory=dict[str, list[EpisodeFile]])
    """By the id of their task."""
    outcomes: Counter[Outcome | None] = field(default_factory=Counter[Outcome | None])
    """Of the runs to analyze, references left out; None: unfinished."""
    damaged: int = 0
    """Of the runs to analyze: traces that cannot be read."""
    problems: list[Problem] = field(default_factory=list[Problem])

    @property
    def readable(self) -> int:
        return sum(self.outcomes.values())


def survey(runs: Sequence[Path], references: Sequence[Path] = ()) -> Survey:
    """Sorts the episodes of *runs* by outcome; every success there, and in *references*, is one to compare with.

    Raises BadInput for a place that holds no traces.
    """
    found = Survey()
    mine = {file.path.resolve(): file for file in discover_traces(runs)}
    others = [file for file in discover_traces(references) if file.path.resolve() not in mine] if references else []
    for file in (*mine.values(), *others):
        try:
            header, footer = read_summary(file.path)
            if footer is None:
                footer = read_trace(file.path).footer  # unfinished, or damaged where its end should be
        except TraceError as error:
            found.problems.append(Problem(trace=str(file.path), problem=str(error)))
            found.damaged += file.path.resolve() in mine
            continue
        outcome = footer.outcome if footer is not None else None
        if outcome == "success":
            found.successes.setdefault(header.task.id, []).append(file)
        if file.path.resolve() in mine:
            found.outcomes[outcome] += 1
            if footer is not None and needs_reason(footer.outcome, footer.ended_by):
                found.failed.append(file)
            elif outcome == "unjudged":
                found.undecided += 1
    return found


class Analyses:
    """Explains the failures of a survey one by one, in the order of the runs."""

    def __init__(self, found: Survey, analyzer: Analyzer) -> None:
        self._found = found
        self._analyzer = analyzer
        self._pages = lru_cache(maxsize=64)(_pages)
        self._references = lru_cache(maxsize=_REFERENCES_KEPT)(self._reference)

    async def __aiter__(self) -> AsyncIterator[Analysis | Problem]:
        for file in self._found.failed:
            try:
                trace = file.read()
                candidates = [self._references(one) for one in self._found.successes.get(trace.header.task.id, ())]
                known = [one for one in candidates if isinstance(one, Reference)]
                yield await self._analyzer.analyze(Recorded(trace, self._pages(file.folder)), known)
            except TraceError as error:
                yield Problem(trace=str(file.path), problem=str(error))

    def _reference(self, file: EpisodeFile) -> Reference | None:
        """None, and a problem of the survey, where it cannot be read."""
        try:
            return self._analyzer.reference(Recorded(file.read(), self._pages(file.folder)))
        except TraceError as error:
            self._found.problems.append(Problem(trace=str(file.path), problem=str(error)))
            return None


def _pages(folder: Path) -> Pages:
    return Pages(BlobStore(folder / "blobs"))


class Axis(NamedTuple):
    failure: str
    category: str
    policy: str


def totals(analyses: Sequence[Analysis]) -> tuple[Total, ...]:
    """Counts by category, kind of site and policy; the most frequent first. Of what failed or broke: an episode that
    nobody judged is in no total."""
    failed = [one for one in analyses if one.outcome != "unjudged"]
    counts = Counter(Axis(one.failure.category, one.category, one.policy) for one in failed)
    return tuple(
        Total(failure=axis.failure, category=axis.category, policy=axis.policy, count=count)
        for axis, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
