"""What the report's templates are given: everything already chosen, counted and cut to size, nothing yet escaped."""

from __future__ import annotations

from dataclasses import dataclass

from envs.core.trace import Event, Failure, Flip, Outcome
from envs.security.blocked_requests import BlockedOrigin
from judges.analysis import Analysis


@dataclass(frozen=True, slots=True)
class PictureView:
    """A screenshot with what the action aimed at, in CSS pixels of the viewport."""

    uri: str
    """A data URI."""
    width: int
    height: int
    box: tuple[float, float, float, float] | None
    points: tuple[tuple[float, float], ...]
    """Where the pointer was put by actions that name coordinates."""


@dataclass(frozen=True, slots=True)
class MessageView:
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class CallView:
    """One model call."""

    role: str
    model: str
    told: str
    """Tokens, seconds and cost in words."""
    prompt: tuple[MessageView, ...]
    answer: str
    error: str


@dataclass(frozen=True, slots=True)
class StepView:
    number: int
    action: str
    aim: str
    """Role and name of the element that the action names; empty without one."""
    status: str
    message: str
    seconds: float
    url: str
    title: str
    flips: tuple[Flip, ...]
    """Milestones that changed by this step's action."""
    names: dict[str, str]
    """Text of each milestone in `flips` by its id."""
    page: str
    raw: str
    notes: tuple[str, ...]
    calls: tuple[CallView, ...]
    picture: PictureView | None
    picture_left_out: str
    """Why there is no picture; empty where there is one or none was taken."""
    problems: tuple[str, ...]
    """What could not be read, one line each."""
    refused: tuple[str, ...]
    """Refused origins with what was asked for, those of the page before the action first."""
    is_key: bool
    in_loop: bool
    loop_begins: bool
    open: bool


@dataclass(frozen=True, slots=True)
class ReferenceStepView:
    number: int
    action: str
    aim: str
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class PairView:
    """A row of the list of steps: a step, the reference's step, or both."""

    step: StepView | None
    reference: ReferenceStepView | None
    same: bool
    diverges: bool


@dataclass(frozen=True, slots=True)
class MilestoneView:
    text: str
    achieved: bool
    """At the end."""
    evidence: str
    reached: int | None
    """Number of the step whose action first did it; 0 = from the start; None = never."""


@dataclass(frozen=True, slots=True)
class RowView:
    """An episode in the list."""

    anchor: str
    run: str
    task: str
    site: str
    policy: str
    outcome: Outcome | str
    """`unfinished` where the trace has no end."""
    failure: str
    """Category; empty unless it failed."""
    steps: int
    seconds: float
    tokens: int
    cost: float
    done: int
    milestones: int
    instruction: str


@dataclass(frozen=True, slots=True)
class EpisodeView:
    row: RowView
    instruction: str
    ended: str
    verdict: str
    error: str
    answer: str | None
    analysis: Analysis | None
    failure: Failure | None
    """The analyzer's word where there is one, else what the run itself recorded."""
    milestones: tuple[MilestoneView, ...]
    pairs: tuple[PairView, ...]
    reference: str
    """Which episode it stands beside; empty without one."""
    refused: tuple[BlockedOrigin, ...]
    """Of the whole episode."""
    events: tuple[Event, ...]
    parent: str
