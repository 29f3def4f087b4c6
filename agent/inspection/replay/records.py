"""What a replay says: one verdict a step, and the outcome beside the recorded one."""

from __future__ import annotations

from enum import StrEnum

from agent.inspection.replay.resolve import How
from envs.core.actions import Status
from envs.core.record import Record
from envs.core.tasks import Score, TaskRef
from envs.core.trace import Outcome


class Verdict(StrEnum):
    """How a step of the replay compares with the recorded one."""

    SAME = "same"
    MOVED = "moved"
    """Its element was found under another key; what came of it is the same."""
    MISSING = "missing"
    """Its element was not found, or not with certainty: nothing was done."""
    DIFFERENT = "different"
    """It was done, and something else came of it: another status, address, dialog or number of new tabs."""


class ReplayedStep(Record):
    """One step, done again."""

    step: int
    """Its number in the trace."""
    action: str
    """In the `program` language, as recorded."""
    words: str = ""
    """The same in words, with the names that its elements had then: `click button "Save"`."""
    verdict: Verdict
    found: How | None = None
    """How its element was found; None where the action names none."""
    target: str = ""
    """The element that was acted on, for people; empty where there is none."""
    recorded_status: Status | None = None
    """None where the run was cut off before it knew."""
    status: Status | None = None
    """None where nothing was sent."""
    reason: str = ""
    """What is different, or how the element was found; empty where all is the same."""
    note: str = ""
    """What is worth knowing and decides nothing, e.g. that the page reads otherwise afterwards."""
    url: str = ""
    """Address of the front tab afterwards."""
    seconds: float = 0.0


class Replay(Record):
    """A replay as a whole."""

    trace: str
    run_id: str
    episode_id: str
    task: TaskRef
    instruction: str
    from_step: int
    """First step that was asked for; those before it are listed only where they were missing or different."""
    until_step: int | None
    """The step after which it ended by request; None where all steps were to be done."""
    steps: tuple[ReplayedStep, ...]
    done: int
    """Steps gone through, listed or not."""
    recorded: int
    """Steps of the trace."""
    recorded_outcome: Outcome | None
    """None where the trace has no footer."""
    outcome: Outcome | None
    """By the environment's own checker; `unjudged` where it has none, None where the replay ended before the end."""
    score: Score | None = None
    seconds: float = 0.0

    @property
    def same_outcome(self) -> bool | None:
        """None where one of the two is not known."""
        if self.outcome is None or self.recorded_outcome is None or self.outcome == "unjudged":
            return None
        return self.outcome == self.recorded_outcome

    @property
    def faithful(self) -> bool:
        """No step was missing or different."""
        return all(step.verdict in (Verdict.SAME, Verdict.MOVED) for step in self.steps)

    @property
    def ok(self) -> bool:
        """The same outcome; where that is not known, a faithful replay."""
        return self.faithful if self.same_outcome is None else self.same_outcome

    def count(self, verdict: Verdict) -> int:
        return sum(step.verdict is verdict for step in self.steps)
