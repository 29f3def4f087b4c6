"""The state that LangGraph checkpoints at every node: small, plain JSON values only.

Page text, prompts, token ids and pictures are in the trace; living things (browser, models, clocks) are in
:class:`agent.episode.episode.Episode`, which nodes get through LangGraph's runtime context. So a checkpoint is some
hundred bytes, and reading one can never construct an object.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypedDict, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from envs.core.tasks import Milestone
from envs.core.trace import Cause, EndedBy

Approval = Literal["ask", "yes", "no", "nobody"]
"""`ask` a person about the action at hand; a person's answer; `nobody` was there to ask."""


class MilestoneRow(TypedDict):
    """A milestone as a checkpoint holds it."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class State:
    """What the nodes of one episode know from each other."""

    step: int = 0
    """Committed steps."""
    plan: list[MilestoneRow] = field(default_factory=list[MilestoneRow])
    """The plan in force; nodes read it as `milestones`."""
    z: tuple[bool, ...] = ()
    """Verified status of each milestone."""
    next_milestone: int | None = None
    cause: Cause | None = None
    """A cause of re-planning that waits to be served."""
    detail: str = ""
    """What exactly went wrong, for the planner."""
    replans: int = 0
    parse_errors: int = 0
    """Answers in a row that were no action."""
    declines: int = 0
    """Actions that the person said no to, in this episode."""
    approval: Approval | None = None
    """Of the action at hand; None where it needs no approval."""
    problems: list[str] = field(default_factory=list[str])
    """What the policy must be told at its next turn."""
    ended_by: EndedBy | None = None
    """None while the episode runs."""
    answer: str | None = None
    error: str = ""

    def __post_init__(self) -> None:
        """A checkpoint gives `z` back as a list."""
        object.__setattr__(self, "z", tuple(self.z))

    @property
    def milestones(self) -> tuple[Milestone, ...]:
        """The plan in force, in order; empty = no subgoals."""
        return tuple(Milestone(id=row["id"], text=row["text"]) for row in self.plan)

    def as_update(self) -> Update:
        """Every field, for writing the whole state."""
        return cast(Update, {name: getattr(self, name) for name in self.__dataclass_fields__})


class Update(TypedDict, total=False):
    """What a node changes: any of the fields of :class:`State`, replaced as a whole."""

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
    problems: list[str]
    ended_by: EndedBy | None
    answer: str | None
    error: str


def serializer() -> JsonPlusSerializer:
    """The checkpoint serializer, pinned: from a checkpoint nothing but plain values and LangGraph's own safe types
    is ever constructed, whatever the environment variables say."""
    return JsonPlusSerializer(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=None)


def rows_of(plan: Iterable[Milestone]) -> list[MilestoneRow]:
    """*plan* as :attr:`State.plan` holds it."""
    return [MilestoneRow(id=milestone.id, text=milestone.text) for milestone in plan]


def ended_by(state: State) -> EndedBy:
    """How the episode ended, at the nodes after its end."""
    assert state.ended_by is not None
    return state.ended_by
