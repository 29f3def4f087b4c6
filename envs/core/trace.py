"""The trace: the one record of an episode that run, replay, analyze, report and training share.

Append-only JSONL, one episode a file (`episodes/EPISODE.jsonl`), every line one of the records below, told
apart by `kind`. Large things (page text, prompts, screenshots) lie beside it in `blobs/`, named by the SHA-256
of their content, so that a page seen twice is stored once. Order within a step::

    [plan] → intent → commit            header first, footer last, events anywhere

The *intent* is on disk before the action is sent, the *commit* after it ended: an intent without a commit is
an action that may or may not have happened. A torn last line (the process died while writing) is tolerated.

Only the last line can be the footer that counts. Where a model failed, and not the policy or the world, the footer is
`resumable`; when the episode is resumed, an event follows it, then the further steps and another footer. Readers pass
over a footer that is followed by anything: an episode has one outcome, that of its last line, and none until then.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from envs.core.actions import Action, ActionResult
from envs.core.observation import ElementKey
from envs.core.record import Record
from envs.core.tasks import Milestone, MilestoneCheck, Score, TaskRef
from envs.security.blocked_requests import BlockedOrigin

SCHEMA_VERSION = 4
"""4: every line ends with its chain value, see :mod:`envs.core.trace_chain`; `ActionResult.held_requests`.
`ActionResult.reason` and `ActionResult.unapproved_downloads` came later and are optional.

3: `Footer.resumable`, and lines after such a footer; `ObservationRecord.blocked_requests`, `Footer.blocked_requests`,
`Footer.declined`, `Failure.cut_short`, `Loop.last`.

2: `ObservationRecord.state` and `viewport`, `Intent.target_box`, `Failure.loop`, `Header.parent` with its run and
step."""

Outcome = Literal["success", "failure", "broken", "unjudged"]
"""`broken`: the world or a model failed, so nothing is known about the policy. `unjudged`: nobody could judge."""

EndedBy = Literal[
    "stop", "world", "max_steps", "max_seconds", "max_tokens", "max_cost", "declined", "error", "interrupted"
]
"""What ended the episode: the policy's Stop, the world itself, a limit, a person who declined, or an error."""

Cause = Literal["initial", "loop", "stall", "stale_element", "blocked", "parse_error", "milestone_lost"]
"""Why a plan was made: at the start, or for one of the typed causes of re-planning."""


Role = Literal["policy", "planner", "rater", "judge", "analyzer"]
"""Who asked a model; `analyzer` stands in older traces only."""


class Call(Record):
    """One model call as it is accounted for."""

    role: Role
    model: str
    prompt_blob: str | None = None
    """Blob holding the prompt as sent (JSON list of messages), secrets masked."""
    completion: str = ""
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    """Only when the policy is local: training uses them as they are, never re-tokenised."""
    logprobs: tuple[float, ...] | None = None
    """Natural-log probability of each completion token, where the server gives it."""
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_thinking: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    """None where the price of the model is unknown."""
    seconds: float = 0.0
    attempts: int = 1
    """Times it was sent; 0 for the prompt of a demonstration, which nobody was asked."""
    error: str | None = None


class ElementKeyRecord(Record):
    """An element's durable key as stored, see :class:`envs.core.observation.ElementKey`."""

    ref: int
    frame: str
    role: str
    name: str
    ordinal: int
    digest: str

    @property
    def key(self) -> ElementKey:
        return ElementKey(self.frame, self.role, self.name, self.ordinal, self.digest)


class ObservationRecord(Record):
    """The observation of a step."""

    url: str
    title: str
    digest: str
    """Equal digests: the policy saw the same page, to the letter."""
    state: str = ""
    """What :func:`envs.observer.page_state.page_state` makes of it: equal where only clocks and tokens differ; empty in
    traces that do not have it."""
    text_blob: str
    """Blob holding the text shown to the policy."""
    keys_blob: str
    """Blob holding the JSON list of :class:`ElementKeyRecord` of the shown elements."""
    controls_total: int
    screenshot_blob: str | None = None
    viewport: tuple[int, int] | None = None
    """Width and height in CSS pixels of what the screenshot shows; None in traces that do not have it."""
    tabs: int = 1
    note: str = ""
    blocked_requests: tuple[BlockedOrigin, ...] = ()
    """Requests refused since the commit before; at the first step, since the start."""


class Flip(Record):
    """One milestone that changed, and why."""

    milestone: str
    achieved: bool
    evidence: str


class Rating(Record):
    """The AutoRater's answer at one step: `z_t` with evidence, and the three answers of the MiRA paper, Fig. 5."""

    z: tuple[bool, ...]
    flips: tuple[Flip, ...] = ()
    current_complete: bool = False
    next_milestone: int | None = None
    """0-based index of the next milestone to work on; None when all are done."""
    reason: str = ""
    source: Literal["state", "model", "cheap", "none"] = "none"
    """Who answered: the task's state checkers, a model's thinking call, or the cheap check alone."""


class Timings(Record):
    """Seconds of a step by part."""

    observe: float = 0.0
    reflect: float = 0.0
    act: float = 0.0
    execute: float = 0.0

    @property
    def total(self) -> float:
        return self.observe + self.reflect + self.act + self.execute


class Parent(Record):
    """Where a branched episode comes from."""

    run_id: str
    episode_id: str
    step: int
    """The last step taken over from the parent; the actions up to it were done again to get there."""


class Header(Record):
    kind: Literal["header"] = "header"
    schema_version: int = SCHEMA_VERSION
    run_id: str
    episode_id: str
    task: TaskRef
    attempt: int = 1
    instruction: str
    category: str
    reference_milestones: tuple[Milestone, ...] = ()
    start_url: str = ""
    config: dict[str, Any]
    """The resolved run configuration, enough to run it again; secrets by name only."""
    versions: dict[str, str]
    started_at: str
    """UTC, ISO 8601."""
    parent: Parent | None = None
    """Set where this episode was branched from another one."""


class PlanRecord(Record):
    """A plan that came into force before step `step`."""

    kind: Literal["plan"] = "plan"
    step: int
    cause: Cause
    milestones: tuple[Milestone, ...]
    planner: str
    call: Call | None = None


class Intent(Record):
    """Everything known before the action is sent."""

    kind: Literal["intent"] = "intent"
    step: int
    """1-based."""
    seen: ObservationRecord
    rating: Rating
    action: Action
    raw: str
    """The policy's text as it came, the comment lines included."""
    notes: tuple[str, ...] = ()
    """`# Note:` and `# Element:` comments of the policy."""
    target: ElementKeyRecord | None = None
    """Key of the element that the action names."""
    target_box: tuple[float, float, float, float] | None = None
    """That element's x, y, width, height in CSS pixels of the viewport; None unless boxes were observed."""
    calls: tuple[Call, ...] = ()
    at: str


class Commit(Record):
    """What came of the action of the intent with the same step."""

    kind: Literal["commit"] = "commit"
    step: int
    result: ActionResult
    timings: Timings
    at: str


class Event(Record):
    """Something worth knowing that is not a step: resumed, approval, crash, parse error, budget."""

    kind: Literal["event"] = "event"
    step: int
    name: str
    detail: str = ""
    calls: tuple[Call, ...] = ()
    at: str


class Loop(Record):
    """A stretch of steps that repeats itself."""

    entry: int
    """1-based number of the first step of the stretch: where the loop was entered."""
    period: int
    """Steps in one round."""
    repetitions: int
    """Whole rounds, at least 2."""
    last: int | None = None
    """Number of the last step of the stretch, where other steps lie between the rounds; None where none do."""


class Failure(Record):
    """Why it failed (MiRA paper, §4)."""

    category: Literal["stop_at_wrong_page", "stuck_midway", "no_reasonable_attempt", "other"]
    key_step: int | None
    """1-based step at which the failure began; None where no step was taken."""
    reason: str
    loop: Loop | None = None
    """Set where a loop was found, whatever the category."""
    cut_short: bool = False
    """A limit ended the episode while it was making progress: the limit is the reason."""


class Totals(Record):
    steps: int = 0
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    model_calls: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


class Footer(Record):
    kind: Literal["footer"] = "footer"
    outcome: Outcome
    ended_by: EndedBy
    judged_by: Literal["checker", "judge", "none"]
    score: Score | None = None
    verdict: str = ""
    """The outcome judge's word, recorded beside the checker's where both exist."""
    answer: str | None = None
    rating: Rating | None = None
    milestone_checks: tuple[MilestoneCheck, ...] | None = None
    failure: Failure | None = None
    blocked_requests: tuple[BlockedOrigin, ...] = ()
    """All that was refused in the episode, by origin."""
    declined: int = 0
    """Actions that were not sent because a person declined them, or nobody was there to ask."""
    totals: Totals
    error: str | None = None
    resumable: bool = False
    """A model (policy, planner, rater or judge) gave no answer: `mira resume` plays the episode on from its last
    committed step, or judges it again where only the verdict is missing."""
    calls: tuple[Call, ...] = ()
    at: str


Line = Annotated[Header | PlanRecord | Intent | Commit | Event | Footer, Field(discriminator="kind")]
LINE: TypeAdapter[Line] = TypeAdapter(Line)
"""Validates and dumps one line of a trace."""
