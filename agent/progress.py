"""Progress events of a run, for displays. The trace is the record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.config import Limits
from agent.results import EpisodeResult, RunResult
from envs.core.actions import Status
from envs.core.tasks import TaskRef
from envs.core.trace import Cause, Role
from envs.security.blocked_requests import BlockedOrigin


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins, or continues. The first event."""

    run_id: str
    folder: Path
    planned: int
    """Number of episodes in the run, including those finished before a resume."""
    finished: int
    """Number of episodes that were finished before this process started."""
    limits: Limits | None = None
    """Limits of each episode."""


@dataclass(frozen=True, slots=True)
class EpisodeStarted:
    """A worker begins an episode, or continues one that was interrupted."""

    episode_id: str
    task: TaskRef
    attempt: int
    worker: int
    """0-based number of the worker that runs it."""
    instruction: str
    resumed_at: int = 0
    """Steps committed before this process; 0 for a new episode."""


@dataclass(frozen=True, slots=True)
class PlanMade:
    """The planner made the first plan, or replaced it."""

    episode_id: str
    step: int
    """1-based number of the step that follows."""
    cause: Cause
    milestones: tuple[str, ...]
    """Texts of the milestones, in order; empty without subgoals."""


@dataclass(frozen=True, slots=True)
class StepDone:
    """A step is committed: its action was executed, refused or declined, and its result is in the trace."""

    episode_id: str
    step: int
    """1-based."""
    action: str
    """The action in the action language."""
    words: str
    """The action in words, with the names of its elements: `click button "Save"`. Contains untrusted page text."""
    status: Status
    milestone: str
    """Text of the current milestone; empty without subgoals or when all are achieved."""
    z: tuple[bool, ...]
    """For each milestone, in order, whether it was rated as achieved before the action; empty without subgoals."""
    seconds: float
    """Wall seconds of the step: observation, rating, the policy's calls and the action."""
    declined: str = ""
    """The declined action in words, and who declined it; empty if the action was sent."""


@dataclass(frozen=True, slots=True)
class ModelWaits:
    """A model's server is unavailable, and the call will be retried."""

    episode_id: str
    role: Role
    reason: str
    """Error of the last attempt, in one line."""
    seconds: float
    """Seconds since the first of the consecutive failures."""
    patience_s: float
    """Seconds for which the call is retried."""


@dataclass(frozen=True, slots=True)
class RequestsRefused:
    """Origins whose requests were refused for the first time in the episode."""

    episode_id: str
    step: int
    """1-based number of the current step."""
    blocked: tuple[BlockedOrigin, ...]


@dataclass(frozen=True, slots=True)
class EpisodeEnded:
    """An episode has ended, and its result is on disk."""

    worker: int
    result: EpisodeResult


@dataclass(frozen=True, slots=True)
class RunEnded:
    """All episodes have ended. The last event; a run that is interrupted has none."""

    result: RunResult


Event = RunStarted | EpisodeStarted | PlanMade | StepDone | ModelWaits | RequestsRefused | EpisodeEnded | RunEnded
Listener = Callable[[Event], None]
"""Called with each event, in order, in the event loop. It must return at once and must not raise."""
