"""The state of the graph: small, plain JSON values only.

Page text, prompts, token ids and pictures are in the trace; living things (browser, models, clocks) are in
:class:`agent.episode.episode.Episode`, which nodes get through LangGraph's runtime context. A checkpoint takes some
hundred bytes and exists in memory only: after a kill the state is rebuilt from the trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict, cast

HISTORY_TAIL = 12
"""Actions that policy, planner and judges are shown; all of them are in the trace."""


@dataclass(frozen=True, slots=True)
class State:
    """What the nodes of one episode know from each other."""

    step: int = 0
    """Committed steps."""
    plan: list[list[str]] = field(default_factory=list[list[str]])
    """Milestones in force as [id, text], in order; empty = no subgoals."""
    z: list[bool] = field(default_factory=list[bool])
    """Verified status of each milestone."""
    next_milestone: int | None = None
    cause: str = ""
    """A typed cause of re-planning that waits to be served; empty = none."""
    detail: str = ""
    """What exactly went wrong, for the planner."""
    replans: int = 0
    parse_errors: int = 0
    """Answers in a row that were no action."""
    declines: int = 0
    """Actions that the person said no to, in this episode."""
    approval: str = ""
    """Of the action at hand: `ask` a person first, `yes`, `no`, `nobody` was there to ask; empty where nobody need be
    asked."""
    history: list[str] = field(default_factory=list[str])
    """The last actions with their results, one line each, oldest first."""
    problems: list[str] = field(default_factory=list[str])
    """What the policy must be told at its next turn."""
    ended_by: str = ""
    """An :data:`envs.core.trace.EndedBy` once the episode ended; empty while it goes on."""
    answer: str | None = None
    error: str = ""

    def as_update(self) -> Update:
        """Every field, for writing the whole state."""
        return cast(Update, {name: getattr(self, name) for name in self.__dataclass_fields__})


class Update(TypedDict, total=False):
    """What a node changes: any of the fields of :class:`State`, replaced as a whole."""

    step: int
    plan: list[list[str]]
    z: list[bool]
    next_milestone: int | None
    cause: str
    detail: str
    replans: int
    parse_errors: int
    declines: int
    approval: str
    history: list[str]
    problems: list[str]
    ended_by: str
    answer: str | None
    error: str


def with_line(history: list[str], line: str) -> list[str]:
    """*history* with *line* at its end, cut to the tail that is kept."""
    return [*history, line][-HISTORY_TAIL:]
