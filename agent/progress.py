"""Events that a display shows while a run goes on. They are for people: the trace is the record."""

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
    run_id: str
    folder: Path
    planned: int
    """Episodes of the run, those already finished before a resume included."""
    finished: int
    """Already finished before this process started."""
    limits: Limits | None = None
    """Of its episodes."""


@dataclass(frozen=True, slots=True)
class EpisodeStarted:
    episode_id: str
    task: TaskRef
    attempt: int
    worker: int
    """0-based worker that plays it."""
    instruction: str
    resumed_at: int = 0
    """Steps already committed before this process; 0 for a fresh start."""


@dataclass(frozen=True, slots=True)
class PlanMade:
    episode_id: str
    step: int
    cause: Cause
    milestones: tuple[str, ...]
    """Their texts, in order; empty without subgoals."""


@dataclass(frozen=True, slots=True)
class StepDone:
    episode_id: str
    step: int
    """1-based."""
    action: str
    """The action in its language."""
    words: str
    """The action in words, with the names of its elements: `click button "Save"`. Page text in it is data."""
    status: Status
    milestone: str
    """Text of the milestone being worked on; empty without subgoals or when all are reached."""
    z: tuple[bool, ...]
    seconds: float
    declined: str = ""
    """What was declined, in words, and by whom; empty where the action was sent."""


@dataclass(frozen=True, slots=True)
class ModelWaits:
    """A model's server is away; its call will be sent again."""

    episode_id: str
    role: Role
    reason: str
    """Of the last failure, one line."""
    seconds: float
    """Since the first failure in a row."""
    patience_s: float
    """For which it will go on asking."""


@dataclass(frozen=True, slots=True)
class RequestsRefused:
    """Origins that were refused for the first time in the episode."""

    episode_id: str
    step: int
    """1-based number of the step at hand."""
    blocked: tuple[BlockedOrigin, ...]


@dataclass(frozen=True, slots=True)
class EpisodeEnded:
    worker: int
    result: EpisodeResult


@dataclass(frozen=True, slots=True)
class RunEnded:
    result: RunResult


Event = RunStarted | EpisodeStarted | PlanMade | StepDone | ModelWaits | RequestsRefused | EpisodeEnded | RunEnded
Listener = Callable[[Event], None]
"""Called in the event loop, in order; must return at once and not raise."""
