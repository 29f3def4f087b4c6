"""Interfaces of tasks, suites and environments, and their records.

A *suite* lists tasks and creates environments. An *environment* belongs to one worker, runs one episode at a time, and
is closed once. `check_environment` in the tests verifies an implementation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from operator import not_
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from pydantic import Field

from envs.core.actions import Action, ActionResult
from envs.core.observation import Observation
from envs.core.record import Record, Unmasked

if TYPE_CHECKING:
    from envs.browser.session import BrowserSession


class Milestone(Record):
    """One concrete, checkable step towards the goal (a subgoal of the MiRA paper, §5.1)."""

    id: str
    text: str


class TaskRef(Record):
    """Identifies one task instance: `suite/name/seed`."""

    suite: Unmasked
    name: Unmasked
    seed: int = 0
    written: str = Field(default="", exclude_if=not_)
    """An instruction that a model wrote for the place where the instance begins. The instance's own instruction,
    checker and milestones do not apply (:mod:`envs.core.written_tasks`)."""

    @property
    def id(self) -> str:
        return f"{self.suite}/{self.name}/{self.seed}" + (f"~{self.written_digest}" if self.written else "")

    @property
    def written_digest(self) -> str:
        """Eight hexadecimal digits that tell written instructions of one instance apart; empty without one."""
        return hashlib.sha256(self.written.encode()).hexdigest()[:8] if self.written else ""

    def __hash__(self) -> int:  # Pydantic's own hash of a frozen model, which type checkers do not see
        return hash((self.suite, self.name, self.seed, self.written))


class TaskInfo(Record):
    """Description of a task that is available before it starts."""

    name: str
    category: str
    """The site category, which selects few-shot examples, e.g. `form`, `shop`, `open`."""
    has_checker: bool
    milestones: int = 0
    """Reference milestones that the task ships; 0 = none."""
    oracle: bool = False
    """The suite contains a solver, which the policy `oracle` uses."""
    needs: str = ""
    """Requirements beyond this package, such as an extra or environment variables; empty if none."""
    kind: str = ""
    """Kind of task, e.g. `information`; empty if unknown."""
    difficulty: str = ""
    """For example `easy`; empty if unknown."""
    split: str = ""
    """For example `train`; empty if the suite has no splits."""
    sample: str = ""
    """Example instruction or template with placeholders; empty if unknown."""


class EpisodeStart(Record):
    """Task details that are known only after the task has started."""

    instruction: str
    category: str
    milestones: tuple[Milestone, ...] = ()
    """Reference milestones, in order; empty if the task has none."""


class MilestoneCheck(Record):
    """The state checker's result for one reference milestone at this moment."""

    achieved: bool
    evidence: str


class Score(Record):
    """The checker's result for the whole task."""

    status: Literal["success", "failure", "broken"]
    """`broken`: the environment failed, so the result says nothing about the agent."""
    reward: float
    """0 to 1; the benchmark's own reward."""
    evidence: str


Restore = Literal["replay", "reopen"]


class Environment(Protocol):
    """The environment of one worker. Every method has a timeout, see :mod:`envs.core.settings`."""

    restore: Restore
    """How a killed episode is restored. `replay`: the state is in the page, so the committed actions are executed again
    from the seed. `reopen`: the state is on the server, so the last URL is opened with the saved cookies and no action
    is repeated."""

    @property
    def session(self) -> BrowserSession | None:
        """The browser session that actions are executed in; None where another process has the browser."""
        ...

    async def reset(self, task: TaskRef) -> EpisodeStart:
        """Starts the task. Raises ResetFailed."""
        ...

    async def observe(self, *, screenshot: bool = False) -> Observation: ...

    async def execute(self, action: Action) -> ActionResult:
        """Executes one action and waits for the page to settle. No page behaviour raises an exception."""
        ...

    async def done(self) -> bool:
        """True if the environment has ended the episode (MiniWoB does after a submit)."""
        ...

    async def score(self, answer: str | None) -> Score | None:
        """Returns the checker's score; None if the task has no checker. Called once, at the end."""
        ...

    async def check_milestones(self) -> tuple[MilestoneCheck, ...] | None:
        """Checks the reference milestones, in order; None if the task has none."""
        ...

    async def save_state(self, folder: Path) -> None:
        """Writes the data for `restore_state` (cookies, storage); cheap, called after every step."""
        ...

    async def restore_state(self, task: TaskRef, folder: Path, committed: Sequence[Action]) -> EpisodeStart:
        """Restores a killed episode in the way that `restore` names. Raises ResetFailed."""
        ...

    async def close(self) -> None: ...


class Suite(Protocol):
    """A named collection of tasks."""

    name: str

    def tasks(self) -> Sequence[TaskInfo]: ...

    async def environment(self) -> Environment:
        """Creates an environment for one worker."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class TaskSelection:
    """Task instances to run, in a fixed order: every task × every seed, or an explicit list."""

    suite: str
    names: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    picked: tuple[TaskRef, ...] = ()
    """Explicit list, which replaces names × seeds; all of *suite*, without duplicates."""

    def refs(self) -> tuple[TaskRef, ...]:
        if self.picked:
            return self.picked
        return tuple(TaskRef(suite=self.suite, name=n, seed=s) for n in self.names for s in self.seeds)
