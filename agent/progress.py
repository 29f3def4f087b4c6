"""Events that a display shows while a run goes on. They are for people: the trace is the record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.results import EpisodeResult, RunResult
from envs.actions import Status
from envs.tasks import TaskRef
from envs.trace import Cause


@dataclass(frozen=True, slots=True)
class RunStarted:
    run_id: str
    folder: Path
    planned: int
    """Episodes of the run, those already finished before a resume included."""
    finished: int
    """Already finished before this process started."""


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
    """The action in its language, with the element's name for people."""
    status: Status
    milestone: str
    """Text of the milestone being worked on; empty without subgoals or when all are reached."""
    z: tuple[bool, ...]
    seconds: float
    declined: str = ""
    """What was declined, in words, and by whom; empty where the action was sent."""


@dataclass(frozen=True, slots=True)
class EpisodeEnded:
    worker: int
    result: EpisodeResult


@dataclass(frozen=True, slots=True)
class RunEnded:
    result: RunResult


Event = RunStarted | EpisodeStarted | PlanMade | StepDone | EpisodeEnded | RunEnded
Listener = Callable[[Event], None]
"""Called in the event loop, in order; must return at once and not raise."""
