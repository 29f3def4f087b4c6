"""The state of the graph: small, plain JSON values only.

Page text, prompts, token ids and pictures are in the trace. Runtime objects (browser, models, clocks) are in
:class:`agent.episode.episode.Episode`, which nodes get through LangGraph's runtime context. A checkpoint takes some
hundred bytes and exists in memory only: after a kill the state is rebuilt from the trace.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypedDict, cast

from envs.core.tasks import Milestone
from envs.core.trace import Cause, EndedBy

Approval = Literal["ask", "yes", "no", "nobody"]
"""`ask`: approval is pending. `yes`, `no`: a person's answer. `nobody`: no approver was present."""


class MilestoneRow(TypedDict):
    """A milestone as a checkpoint holds it."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class State:
    """The values that the nodes of one episode pass to each other."""

    step: int = 0
    """Number of committed steps."""
    plan: list[MilestoneRow] = field(default_factory=list[MilestoneRow])
    """The plan in force; nodes read it as `milestones`."""
    z: tuple[bool, ...] = ()
    """Verified status of each milestone."""
    next_milestone: int | None = None
    cause: Cause | None = None
    """The pending re-plan trigger."""
    detail: str = ""
    """Description of the trigger, for the planner."""
    replans: int = 0
    parse_errors: int = 0
    """Unparsable answers in a row."""
    declines: int = 0
    """Declined actions of this episode."""
    approval: Approval | None = None
    """Approval of the chosen action; None where it needs none."""
    queued: int = 0
    """Actions of the policy's last answer that are not committed, the chosen one included."""
    asks_again: bool = False
    """The policy stopped while a milestone was open and is asked again."""
    open_at_stop: str = ""
    """Text of the milestone that the policy was last asked about in this way."""
    problems: list[str] = field(default_factory=list[str])
    """Problems to show in the next prompt of the policy."""
    ended_by: EndedBy | None = None
    """None while the episode runs."""
    answer: str | None = None
    error: str = ""

    def __post_init__(self) -> None:
        """Converts `z`, which a checkpoint returns as a list."""
        object.__setattr__(self, "z", tuple(self.z))

    @property
    def milestones(self) -> tuple[Milestone, ...]:
        """The plan in force, in order; empty = no subgoals."""
        return tuple(Milestone(id=row["id"], text=row["text"]) for row in self.plan)

    def as_update(self) -> Update:
        """Returns every field, for writing the whole state."""
        return cast(Update, {name: getattr(self, name) for name in self.__dataclass_fields__})


class Update(TypedDict, total=False):
    """The return value of a node: new values for any fields of :class:`State`."""

    step: int
    plan: list[MilestoneRow]
    z: tuple[bool, ...]
    next_milestone: int | None
    cause: Cause | None
    detail: str
    replans: int
    parse_errors: int
    declines: int
    approval: Approval | None
    queued: int
    asks_again: bool
    open_at_stop: str
    problems: list[str]
    ended_by: EndedBy | None
    answer: str | None
    error: str


def rows_of(plan: Iterable[Milestone]) -> list[MilestoneRow]:
    """*plan* as :attr:`State.plan` holds it."""
    return [MilestoneRow(id=milestone.id, text=milestone.text) for milestone in plan]


def ended_by(state: State) -> EndedBy:
    """Returns how the episode ended; called after its end only."""
    assert state.ended_by is not None
    return state.ended_by
