"""The result of a replay: one verdict per step, and the outcome with the recorded one."""

from __future__ import annotations

from enum import StrEnum

from agent.inspection.replay.resolve import How
from envs.core.actions import Status
from envs.core.record import Record
from envs.core.tasks import Score, TaskRef
from envs.core.trace import Outcome


class Verdict(StrEnum):
    """How a repeated step compares with the recorded one."""

    SAME = "same"
    MOVED = "moved"
    """Its element was found under another key; the result is the same."""
    MISSING = "missing"
    """Its element was not found with certainty, so the action was not executed."""
    DIFFERENT = "different"
    """The result differs: another status, address, dialog or number of new tabs."""


class ReplayedStep(Record):
    """A repeated step."""

    step: int
    """Its number in the trace."""
    action: str
    """In the `program` language, as recorded."""
    words: str = ""
    """The action in words, with the recorded names of its elements: `click button "Save"`."""
    verdict: Verdict
    found: How | None = None
    """How its element was found; None if the action names none."""
    target: str = ""
    """Description of the target element; empty without one."""
    recorded_status: Status | None = None
    """None if the run was cut off before the result."""
    status: Status | None = None
    """None if the action was not sent."""
    reason: str = ""
    """What differs, or how the element was found; empty if nothing differs."""
    note: str = ""
    """A remark that does not affect the verdict, e.g. that lines of the page differ."""
    url: str = ""
    """URL of the front tab after the step."""
    seconds: float = 0.0


class Replay(Record):
    """The result of a replay."""

    trace: str
    run_id: str
    episode_id: str
    task: TaskRef
    instruction: str
    from_step: int
    """First requested step; earlier steps are listed only if they were missing or different."""
    until_step: int | None
    """Last requested step; None for all."""
    steps: tuple[ReplayedStep, ...]
    done: int
    """Number of repeated steps, listed or not."""
    recorded: int
    """Number of steps of the trace."""
    recorded_outcome: Outcome | None
    """None if the trace has no footer."""
    outcome: Outcome | None
    """By the environment's checker; `unjudged` without one, None if the replay ended early."""
    score: Score | None = None
    seconds: float = 0.0

    @property
    def same_outcome(self) -> bool | None:
        """Whether the outcomes are equal; None if one is unknown."""
        if self.outcome is None or self.recorded_outcome is None or self.outcome == "unjudged":
            return None
        return self.outcome == self.recorded_outcome

    @property
    def faithful(self) -> bool:
        """Whether no step was missing or different."""
        return all(step.verdict in (Verdict.SAME, Verdict.MOVED) for step in self.steps)

    @property
    def ok(self) -> bool:
        """Whether the outcome is the same; if that is unknown, whether the replay is faithful."""
        return self.faithful if self.same_outcome is None else self.same_outcome

    def count(self, verdict: Verdict) -> int:
        return sum(step.verdict is verdict for step in self.steps)
