"""Reads episodes for evaluation, one trace at a time, and keeps only the data that the metrics need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from agent.inspection.expert_steps import Assisted, assisted
from agent.run.discover_traces import EpisodeFile
from envs.core.errors import BadInput, TraceError
from envs.core.record import Record
from envs.core.tasks import TaskRef
from envs.core.trace import Footer, Outcome
from envs.core.trace_store import Trace, check_unedited
from judges.trace_ratings import Observed, observe

NOT_ANALYZED = "not analyzed"


class PlayedEpisode(Record):
    """One finished episode."""

    run_id: str
    episode_id: str
    task: TaskRef
    attempt: int
    category: str
    """Category of the site or task, e.g. `shop`."""
    split: str
    """Split of the task's template; empty for suites without splits."""
    policy: str
    outcome: Outcome
    failure: str
    """Category of a failed episode, `not analyzed` without an analysis; empty for other episodes."""
    steps: int
    tokens: int
    """Input and output tokens of all roles."""
    seconds: float
    degraded: bool = False
    """Planner or rater failed at least once; the episode went on without their answer."""
    assisted: Assisted | None = None
    """Steps of an expert; None without one."""
    observed: Observed | None
    """The step at which the run's rater rated each milestone as done; None if the trace has no ratings."""

    @property
    def judged(self) -> bool:
        """Whether the episode is a success or a failure, and not broken or unjudged."""
        return self.outcome in ("success", "failure")

    @property
    def success(self) -> bool:
        return self.outcome == "success"

    @property
    def template(self) -> str:
        """`suite/name`: the task without its seed."""
        return f"{self.task.suite}/{self.task.name}"


@dataclass(frozen=True, slots=True)
class Reading:
    """The episodes that were read, and counts of those that could not be used."""

    played: tuple[PlayedEpisode, ...]
    """In the order of the files; at least one."""
    unfinished: int
    """Traces without a footer: the run is still running or was killed."""
    no_milestones: Counter[str]
    """Judged episodes without milestones in their trace, by reason."""
    damaged: tuple[str, ...]
    """One line for each unreadable trace."""


def read_played(files: Sequence[EpisodeFile], report: Callable[[int], None] | None = None) -> Reading:
    """Reads the finished episodes. *report* gets the number of files read so far. Raises BadInput without any."""
    played: list[PlayedEpisode] = []
    unfinished = 0
    no_milestones: Counter[str] = Counter()
    damaged: list[str] = []
    for done, file in enumerate(files, 1):
        try:
            trace = file.read()
            check_unedited(file.path, trace.seal)
        except TraceError as error:
            damaged.append(str(error))
        else:
            if trace.footer is None:
                unfinished += 1
            else:
                played.append(_played(trace, trace.footer, no_milestones))
        if report is not None:
            report(done)
    if not played:
        hint = f": {damaged[0]}" if damaged else "; continue with: mira resume RUN"
        raise BadInput(f"no finished episode among {len(files)} in {str(files[0].folder)!r}{hint}")
    return Reading(tuple(played), unfinished, no_milestones, tuple(damaged))


def _played(trace: Trace, footer: Footer, no_milestones: Counter[str]) -> PlayedEpisode:
    header, totals = trace.header, footer.totals
    failed = footer.outcome == "failure"
    seen = observe(trace, "rater")
    played = PlayedEpisode(
        run_id=header.run_id,
        episode_id=header.episode_id,
        task=header.task,
        attempt=header.attempt,
        category=header.category,
        split=_splits(header.task.suite).get(header.task.name, ""),
        policy=trace.policy or "unknown",
        outcome=footer.outcome,
        failure=(footer.failure.category if footer.failure else NOT_ANALYZED) if failed else "",
        steps=totals.steps,
        tokens=totals.tokens,
        seconds=totals.seconds,
        degraded=bool(footer.degraded),
        assisted=assisted(header, footer),
        observed=seen if isinstance(seen, Observed) else None,
    )
    if played.judged and not isinstance(seen, Observed):
        no_milestones[seen.reason] += 1
    return played


@cache
def _splits(suite: str) -> dict[str, str]:
    """Splits by task name; empty for suites that this installation does not have, such as imported ones."""
    from agent.run.suites import known_suite  # imports the browser library, which pure functions do not need

    try:
        return {info.name: info.split for info in known_suite(suite).infos() if info.split}
    except BadInput:
        return {}
