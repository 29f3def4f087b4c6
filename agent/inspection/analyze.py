"""Analyzes the failures of runs: finds failed traces and references, explains failures, and counts them.

Traces are read one at a time. Features of the latest few hundred references are cached. Unreadable traces, and episodes
about which the judge gave no verdict, are named and skipped.
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
from judges.analysis.meaning import MeaningFailed
from judges.analysis.rules import needs_reason

_REFERENCES_KEPT = 512


class Problem(Record):
    """An episode that was skipped: its trace cannot be read, or the judge gave no verdict about its actions."""

    trace: str
    problem: str


class Total(Record):
    """The number of failures of one category, on one kind of site, by one policy."""

    failure: str
    category: str
    policy: str
    count: int


@dataclass(slots=True)
class Survey:
    """The episodes of runs and references, sorted by outcome."""

    failed: list[EpisodeFile] = field(default_factory=list[EpisodeFile])
    """Episodes that failed, broke, or were cut off and not judged."""
    undecided: int = 0
    """Unjudged episodes that the policy ended: whether they failed is unknown."""
    successes: dict[str, list[EpisodeFile]] = field(default_factory=dict[str, list[EpisodeFile]])
    """By task id."""
    outcomes: Counter[Outcome | None] = field(default_factory=Counter[Outcome | None])
    """Outcomes of the runs to analyze, without references; None is unfinished."""
    damaged: int = 0
    """Number of unreadable traces in the runs to analyze."""
    problems: list[Problem] = field(default_factory=list[Problem])

    @property
    def readable(self) -> int:
        return sum(self.outcomes.values())


def survey(runs: Sequence[Path], references: Sequence[Path] = ()) -> Survey:
    """Sorts the episodes of *runs* by outcome. Successes in *runs* and *references* are references.

    Raises BadInput for a path without traces.
    """
    result = Survey()
    own = {file.path.resolve(): file for file in discover_traces(runs)}
    others = [file for file in discover_traces(references) if file.path.resolve() not in own] if references else []
    for file in (*own.values(), *others):
        try:
            header, footer = read_summary(file.path)
            if footer is None:
                footer = read_trace(file.path).footer  # unfinished, or damaged at its end
        except TraceError as error:
            result.problems.append(Problem(trace=str(file.path), problem=str(error)))
            result.damaged += file.path.resolve() in own
            continue
        outcome = footer.outcome if footer is not None else None
        if outcome == "success":
            result.successes.setdefault(header.task.id, []).append(file)
        if file.path.resolve() in own:
            result.outcomes[outcome] += 1
            if footer is not None and needs_reason(footer.outcome, footer.ended_by):
                result.failed.append(file)
            elif outcome == "unjudged":
                result.undecided += 1
    return result


class Analyses:
    """Explains the failures of a survey one by one, in the order of the runs."""

    def __init__(self, survey: Survey, analyzer: Analyzer) -> None:
        self._survey = survey
        self._analyzer = analyzer
        self._pages = lru_cache(maxsize=64)(_pages)
        self._references = lru_cache(maxsize=_REFERENCES_KEPT)(self._reference)

    async def __aiter__(self) -> AsyncIterator[Analysis | Problem]:
        for file in self._survey.failed:
            try:
                trace = file.read()
                candidates = [
                    self._references(reference) for reference in self._survey.successes.get(trace.header.task.id, ())
                ]
                references = [reference for reference in candidates if isinstance(reference, Reference)]
                yield await self._analyzer.analyze(Recorded(trace, self._pages(file.folder)), references)
            except TraceError as error:
                yield Problem(trace=str(file.path), problem=str(error))
            except MeaningFailed as error:
                yield Problem(trace=str(file.path), problem=f"{file.path}: {error}")

    def _reference(self, file: EpisodeFile) -> Reference | None:
        """Reads a reference; None, and a problem of the survey, if it cannot be read."""
        try:
            return self._analyzer.reference(Recorded(file.read(), self._pages(file.folder)))
        except TraceError as error:
            self._survey.problems.append(Problem(trace=str(file.path), problem=str(error)))
            return None


def _pages(folder: Path) -> Pages:
    return Pages(BlobStore(folder / "blobs"))


class Axis(NamedTuple):
    failure: str
    category: str
    policy: str


def totals(analyses: Sequence[Analysis]) -> tuple[Total, ...]:
    """Counts failed and broken episodes by category, kind of site and policy, the most frequent first.

    Unjudged episodes are not counted."""
    failed = [analysis for analysis in analyses if analysis.outcome != "unjudged"]
    counts = Counter(Axis(analysis.failure.category, analysis.category, analysis.policy) for analysis in failed)
    return tuple(
        Total(failure=axis.failure, category=axis.category, policy=axis.policy, count=count)
        for axis, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
