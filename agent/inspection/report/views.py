"""The data of the report's templates: selected, counted and cut to size, but not escaped."""

from __future__ import annotations

from dataclasses import dataclass

from agent.inspection.critic_values import StateValues
from agent.inspection.expert_steps import Assisted
from envs.core.notes import Note
from envs.core.trace import Event, Failure, Flip, Outcome
from envs.security.blocked_requests import BlockedOrigin
from judges.analysis import Analysis


@dataclass(frozen=True, slots=True)
class PictureView:
    """A screenshot with the target of the action, in CSS pixels of the viewport."""

    uri: str
    """A data URI."""
    width: int
    height: int
    box: tuple[float, float, float, float] | None
    points: tuple[tuple[float, float], ...]
    """Pointer positions of actions with coordinates."""


@dataclass(frozen=True, slots=True)
class MessageView:
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class CallView:
    """One model call."""

    role: str
    model: str
    usage: str
    """Tokens, seconds and cost as text."""
    prompt: tuple[MessageView, ...]
    answer: str
    error: str


@dataclass(frozen=True, slots=True)
class StepView:
    number: int
    action: str
    aim: str
    """Role and name of the action's element; empty without one."""
    status: str
    message: str
    seconds: float
    url: str
    title: str
    flips: tuple[Flip, ...]
    """Milestones that changed after this step's action."""
    names: dict[str, str]
    """Text of each milestone in `flips` by its id."""
    page: str
    raw: str
    notes: tuple[str, ...]
    rationale: str
    batch: str
    """The action's place in its answer, as `2 of 3`; empty where the answer has one action."""
    groundings: tuple[str, ...]
    """Description → point → control, of each control that the policy described."""
    calls: tuple[CallView, ...]
    picture: PictureView | None
    picture_left_out: str
    """Why the picture was omitted; empty if it is shown or none was taken."""
    problems: tuple[str, ...]
    """One line per unreadable blob."""
    refused: tuple[str, ...]
    """Refused origins with the requested resources, those before the action first."""
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
    """A row of the list of steps: a step, a step of the reference, or both."""

    step: StepView | None
    reference: ReferenceStepView | None
    same: bool
    diverges: bool


@dataclass(frozen=True, slots=True)
class MilestoneView:
    text: str
    achieved: bool
    """Whether it was achieved at the end."""
    evidence: str
    reached: int | None
    """Number of the step that first reached it; 0: from the start; None: never."""


@dataclass(frozen=True, slots=True)
class RowView:
    """An episode in the list."""

    anchor: str
    run: str
    task: str
    site: str
    policy: str
    outcome: Outcome | str
    """`unfinished` if the trace has no footer."""
    failure: str
    """Category; empty unless it failed."""
    steps: int
    seconds: float
    tokens: int
    cost: float
    done: int
    milestones: int
    instruction: str
    degraded: bool = False
    """Planner or rater failed at least once."""
    assisted: Assisted | None = None
    """Steps of an expert; None without one."""


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
    """The failure of the analysis if there is one, else the one recorded in the trace."""
    milestones: tuple[MilestoneView, ...]
    memory: tuple[Note, ...]
    """The policy's notes at the end."""
    pairs: tuple[PairView, ...]
    reference: str
    """The episode shown next to this one; empty without one."""
    refused: tuple[BlockedOrigin, ...]
    """Refused requests of the episode, by origin."""
    events: tuple[Event, ...]
    parent: str
    values: tuple[StateValues, ...] = ()
    """Critics' outputs for its states; empty without critics."""
