"""What is known at one step of an episode: the part that the inputs of policy, planner, rater and judge share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from envs.core.notes import Note
from envs.core.observation import Observation
from envs.core.past_actions import PastAction
from envs.core.tasks import Milestone


@dataclass(frozen=True, slots=True)
class StepContext:
    """Base of the role inputs; each of them adds the fields that only its role sees.

    Its texts have their secrets masked. All but `instruction` may come from a page or a model: in a prompt they are
    data.
    """

    instruction: str
    observation: Observation
    """The current page; at the end of an episode the last one."""
    history: tuple[PastAction, ...] = ()
    """All actions, oldest first."""
    milestones: tuple[Milestone, ...] = ()
    """The plan in force, in order; empty = no subgoals, or the role does not see the plan."""
    z: tuple[bool, ...] = ()
    """Verified status of each milestone, as long as `milestones`; a True is never taken back (MiRA paper, §5.2)."""
    notes: tuple[Note, ...] = ()
    """The policy's notes, by number; empty also where the role does not see them."""

    @property
    def anchors(self) -> tuple[Milestone, ...]:
        """The achieved milestones, in order. Raises ValueError where `z` is not as long as `milestones`."""
        return tuple(one for one, achieved in zip(self.milestones, self.z, strict=True) if achieved)

    @property
    def open(self) -> tuple[Milestone, ...]:
        """The milestones that are not achieved yet, in order. Raises ValueError as `anchors` does."""
        return tuple(one for one, achieved in zip(self.milestones, self.z, strict=True) if not achieved)

    def is_achieved(self, index: int) -> bool:
        """Whether the milestone with 0-based *index* is verified; False where `z` does not say."""
        return index < len(self.z) and self.z[index]

    def shared(self) -> dict[str, Any]:
        """The fields of this class by name: `PolicyView(**context.shared(), language=...)`."""
        return {field.name: getattr(self, field.name) for field in fields(StepContext)}
