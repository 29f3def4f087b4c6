"""Episodes as evaluation sees them: read one trace at a time, and no more kept than the numbers need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from agent.run.discover_traces import EpisodeFile
from envs.core.errors import BadInput, TraceError
from envs.core.record import Record
from envs.core.tasks import TaskRef
from envs.core.trace import Footer, Outcome
from envs.core.trace_store import Trace, check_unedited
from judges.trace_ratings import Observed, observe

NOT_ANALYZED = "not analyzed"


class PlayedEpisode(Record):
    """One episode that has ended."""

    run_id: str
    episode_id: str
    task: TaskRef
    attempt: int
    category: str
    """Of the site or the form of the task, e.g. `shop`."""
    split: str
    """Of the task's template; empty where the suite has no splits."""
    policy: str
    outcome: Outcome
    failure: str
    """Category of a failed episode, `not analyzed` where nobody did; empty for the others."""
    steps: int
    tokens: int
    """Read and written, all roles."""
    seconds: float
    observed: Observed | None
    """When the run's rater saw each milestone done; None where the trace does not say."""

    @property
    def judged(self) -> bool:
        """It says something about the policy: broken and unjudged ones do not."""
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
    """What was read of some episodes."""

    played: tuple[PlayedEpisode, ...]
    """In the order given; at least one."""
    unfinished: int
    """Traces without an end: a run that goes on, or was killed."""
    no_milestones: Counter[str]
    """Judged episodes whose trace says nothing of milestones, by reason."""
    damaged: tuple[str, ...]
    """One line for each trace that cannot be read."""


def read_played(files: Sequence[EpisodeFile], log: Callable[[int], None] | None = None) -> Reading:
    """The episodes that have ended. *tell* hears how many files are read. Raises BadInput where none has ended."""
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
        if log is not None:
            log(done)
    if not played:
        why = f": {damaged[0]}" if damaged else "; continue with: mira resume RUN"
        raise BadInput(f"no finished episode among {len(files)} in {str(files[0].folder)!r}{why}")
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
        policy=str(header.config.get("policy", "unknown")),
        outcome=footer.outcome,
        failure=(footer.failure.category if footer.failure else NOT_ANALYZED) if failed else "",
        steps=totals.steps,
        tokens=totals.tokens,
        seconds=totals.seconds,
        observed=seen if isinstance(seen, Observed) else None,
    )
    if played.judged and not isinstance(seen, Observed):
        no_milestones[seen.reason] += 1
    return played


@cache
def _splits(suite: str) -> dict[str, str]:
    """Split by name of task; empty for suites that this installation does not know, such as imported ones."""
    from agent.run.environments import (
        known_suite,
    )  # brings the browser's library with it, which the pure functions do not need

    try:
        return {info.name: info.split for info in known_suite(suite).infos() if info.split}
    except BadInput:
        return {}
