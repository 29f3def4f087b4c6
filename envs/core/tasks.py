"""Tasks, suites and environments: the contract between the agent's loop and any world.

A *suite* lists tasks and makes environments; an *environment* belongs to one worker, plays one
episode at a time, and is closed once. `check_environment` in the tests is the contract as code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from envs.core.actions import Action, ActionResult
from envs.core.observation import Observation
from envs.core.record import Record

if TYPE_CHECKING:
    from envs.browser.session import BrowserSession


class Milestone(Record):
    """One concrete, checkable step towards the goal (a subgoal of the MiRA paper, §5.1)."""

    id: str
    text: str


class TaskRef(Record):
    """Names one task instance: `suite/name/seed`."""

    suite: str
    name: str
    seed: int = 0

    @property
    def id(self) -> str:
        return f"{self.suite}/{self.name}/{self.seed}"


class TaskInfo(Record):
    """What a suite says of a task before it is started."""

    name: str
    category: str
    """The site category that picks few-shot examples, e.g. `form`, `shop`, `open`."""
    has_checker: bool
    milestones: int = 0
    """Reference milestones that the task ships; 0 = none."""
    oracle: bool = False
    """The suite ships a solver, which the policy `oracle` plays."""
    needs: str = ""
    """What must be there to play it beside this package: an extra, environment variables; empty where nothing is."""
    kind: str = ""
    """What it asks for, e.g. `information`; empty where the suite does not say."""
    difficulty: str = ""
    """e.g. `easy`; empty where the suite does not say."""
    split: str = ""
    """e.g. `train`; empty where the suite has no splits."""
    sample: str = ""
    """How an instance may be worded, placeholders included; empty where the suite does not say."""


class EpisodeStart(Record):
    """Known only once the task is running."""

    instruction: str
    category: str
    milestones: tuple[Milestone, ...] = ()
    """Reference milestones, in order; empty where the task ships none."""


class MilestoneCheck(Record):
    """The state checker's word on one reference milestone, now."""

    achieved: bool
    evidence: str


class Score(Record):
    """The task checker's word on the whole task."""

    status: Literal["success", "failure", "broken"]
    """`broken`: the world itself failed, so nothing is known about the agent."""
    reward: float
    """0 to 1; what the benchmark itself counts."""
    evidence: str


Restore = Literal["replay", "reopen"]


class Environment(Protocol):
    """One worker's world. Every method is bounded in time; see the room's settings."""

    restore: Restore
    """How a killed episode comes back. `replay`: the state lives in the page, so it is rebuilt by re-executing
    committed actions from the seed. `reopen`: the state lives on the server, so the last URL is opened with the
    saved cookies and nothing is sent again."""

    @property
    def session(self) -> BrowserSession | None:
        """The browser session that actions are executed in; None where another process has the browser."""
        ...

    async def reset(self, task: TaskRef) -> EpisodeStart:
        """Brings the task to its start. Raises ResetFailed."""
        ...

    async def observe(self, *, screenshot: bool = False) -> Observation: ...

    async def execute(self, action: Action) -> ActionResult:
        """Does one action and waits for the page to settle. Never raises for what a page can do."""
        ...

    async def done(self) -> bool:
        """True once the world has ended the episode by itself (MiniWoB does after a submit)."""
        ...

    async def score(self, answer: str | None) -> Score | None:
        """The checker's verdict, called once at the end; None where the task has no checker."""
        ...

    async def check_milestones(self) -> tuple[MilestoneCheck, ...] | None:
        """State of the reference milestones, in order; None where the task ships none."""
        ...

    async def save_state(self, folder: Path) -> None:
        """Writes what `restore_state` needs (cookies, storage); cheap, called after every step."""
        ...

    async def restore_state(self, task: TaskRef, folder: Path, committed: Sequence[Action]) -> EpisodeStart:
        """Brings a killed episode back as `restore` says. Raises ResetFailed."""
        ...

    async def close(self) -> None: ...


class Suite(Protocol):
    """A named collection of tasks."""

    name: str

    def tasks(self) -> Sequence[TaskInfo]: ...

    async def environment(self) -> Environment:
        """A fresh environment for one worker."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class TaskSelection:
    """Which instances of a suite to play, in a fixed order: every task × every seed, or those that were picked."""

    suite: str
    names: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    picked: tuple[TaskRef, ...] = ()
    """In place of names × seeds; all of *suite*, each once."""

    def refs(self) -> tuple[TaskRef, ...]:
        if self.picked:
            return self.picked
        return tuple(TaskRef(suite=self.suite, name=n, seed=s) for n in self.names for s in self.seeds)
