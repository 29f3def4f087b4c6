"""The records of a trace, which run, replay, analyze, report and training share.

A trace is an append-only JSONL file with one episode (`episodes/EPISODE.jsonl`). Every line is one of the records
below; `kind` names its type. Large contents (page text, prompts, screenshots) are stored in `blobs/`, named by SHA-256
and deduplicated. Order within a step::

    [plan] → intent → commit            header first, footer last, events anywhere

The *intent* is written before the action is sent, the *commit* after it ended. An intent without a commit is an action
that may or may not have happened. A torn last line (the process died while writing) is tolerated.

A footer is valid only as the last line. An episode whose footer is `resumable` (a model failed), or that a limit ended
which was raised since, continues after it with an event, further steps and another footer. Readers ignore a footer that
is followed by other lines: the outcome of an episode is that of its last line.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, TypeAdapter

from envs.core.action_place import ActionPlace
from envs.core.actions import Action, ActionResult
from envs.core.grounding import Grounding
from envs.core.notes import Notebook
from envs.core.observation import ElementKey
from envs.core.record import UNMASKED, Record, Unmasked
from envs.core.tasks import Milestone, MilestoneCheck, Score, TaskRef
from envs.security.blocked_requests import BlockedOrigin

SCHEMA_VERSION = 5
"""5: `Footer.ended_by` has `environment` for what was `world`.

4: every line ends with its chain value, see :mod:`envs.core.trace_chain`; `ActionResult.held_requests`.
`ActionResult.reason`, `ActionResult.unapproved_downloads`, `Intent.notebook`, `Intent.place`, `Intent.rationale`,
`Intent.batch`, `Intent.groundings`, `Intent.by_expert`, `Event.notebook`, `Event.config`, `Footer.config`,
`Footer.expert_steps`, `Footer.refused`, `Footer.verdict_score` and `ObservationRecord.marked_blob` came later and are
optional.

3: `Footer.resumable`, and lines after such a footer; `ObservationRecord.blocked_requests`, `Footer.blocked_requests`,
`Footer.declined`, `Failure.cut_short`, `Loop.last`.

2: `ObservationRecord.state` and `viewport`, `Intent.target_box`, `Failure.loop`, `Header.parent` with its run and
step."""

Outcome = Literal["success", "failure", "broken", "unjudged"]
"""`broken`: the environment or a model failed, so the result says nothing about the policy. `unjudged`: there was no
checker and no judge."""


def _with_new_name(ended_by: object) -> object:
    """`world` is the name of traces and results before version 5."""
    return "environment" if ended_by == "world" else ended_by


EndedBy = Annotated[
    Literal[
        "stop", "environment", "max_steps", "max_seconds", "max_tokens", "max_cost", "declined", "error", "interrupted"
    ],
    BeforeValidator(_with_new_name),
]
"""What ended the episode: the policy's Stop, the environment, a limit, declined actions, or an error."""

LIMITS: Final[tuple[EndedBy, ...]] = ("max_steps", "max_seconds", "max_tokens", "max_cost")
"""Values of `ended_by` that stand for a limit."""

Cause = Literal["initial", "loop", "stall", "stale_element", "blocked", "parse_error", "milestone_lost"]
"""Why a plan was made: the initial plan, or the replan trigger."""


Role = Literal["policy", "grounder", "planner", "rater", "judge", "analyzer"]
"""The component that called a model; `analyzer` occurs in older traces only."""


class Call(Record):
    """One model call with its tokens, cost and time."""

    role: Role
    model: str
    prompt_blob: Unmasked | None = None
    """Blob with the prompt as sent (JSON list of messages), secrets masked."""
    completion: str = ""
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    """Local policies only; training uses these ids without tokenizing again."""
    logprobs: tuple[float, ...] | None = None
    """Logprob (natural logarithm) of each completion token, if the server returns it."""
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_thinking: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    """None if the price of the model is unknown."""
    seconds: float = 0.0
    attempts: int = 1
    """Number of times it was sent; 0 for the prompt of a demonstration, which was not sent to a model."""
    error: str | None = None


class ElementKeyRecord(Record):
    """An element's durable key as stored, see :class:`envs.core.observation.ElementKey`."""

    ref: int
    frame: Unmasked
    role: str
    name: str
    ordinal: int
    digest: Unmasked

    @property
    def key(self) -> ElementKey:
        return ElementKey(self.frame, self.role, self.name, self.ordinal, self.digest)


class ObservationRecord(Record):
    """The observation of a step."""

    url: str
    title: str
    digest: Unmasked
    """Hash of what the policy saw: equal digests mean identical text."""
    state: Unmasked = ""
    """Page state of :func:`envs.observer.page_state.page_state`, equal if only clocks and tokens differ; empty in older
    traces."""
    text_blob: Unmasked
    """Blob with the text shown to the policy."""
    keys_blob: Unmasked
    """Blob with the shown elements as a JSON list of :class:`ElementKeyRecord`."""
    controls_total: int
    screenshot_blob: Unmasked | None = None
    marked_blob: Unmasked | None = None
    """The screenshot with the numbers of the controls, where the policy was shown both."""
    viewport: tuple[int, int] | None = None
    """Width and height of the screenshot's area in CSS pixels; None in older traces."""
    tabs: int = 1
    note: str = ""
    blocked_requests: tuple[BlockedOrigin, ...] = ()
    """Requests refused since the previous commit; at the first step, since the start."""


class Flip(Record):
    """A change of one milestone, with its evidence."""

    milestone: str
    achieved: bool
    evidence: str
    further: tuple[str, ...] = ()
    """Further quotes, where it takes several: a set, or a list that is complete."""


class Rating(Record):
    """The AutoRater's answer at one step: `z_t` with evidence, and the three answers of the MiRA paper, Fig. 5."""

    z: tuple[bool, ...]
    flips: tuple[Flip, ...] = ()
    current_complete: bool = False
    next_milestone: int | None = None
    """0-based index of the next milestone to work on; None when all are done."""
    reason: str = ""
    source: Literal["state", "model", "cheap", "none"] = "none"
    """The source of the rating: the task's state checkers, a model's thinking call, or only the cheap check."""


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
    """The origin of a branched episode."""

    run_id: Unmasked
    episode_id: Unmasked
    step: int
    """The last step copied from the parent; the actions up to it were executed again."""


class Header(Record):
    """First line of a trace: the task, the run's configuration and the versions."""

    kind: Literal["header"] = "header"
    schema_version: int = SCHEMA_VERSION
    run_id: Unmasked
    episode_id: Unmasked
    task: TaskRef
    attempt: int = 1
    instruction: str
    category: str
    reference_milestones: tuple[Milestone, ...] = ()
    start_url: str = ""
    config: dict[str, Any]
    """The resolved run configuration, sufficient to repeat the run; secrets by name only."""
    versions: Annotated[dict[str, str], UNMASKED]
    started_at: Unmasked
    """UTC, ISO 8601."""
    parent: Parent | None = None
    """Set where this episode was branched from another one."""


class PlanRecord(Record):
    """A plan that became active before step `step`."""

    kind: Literal["plan"] = "plan"
    step: int
    cause: Cause
    milestones: tuple[Milestone, ...]
    planner: str
    call: Call | None = None


class BatchPlace(Record):
    """The place of an action in an answer with several actions."""

    place: int = Field(ge=1)
    """1-based."""
    size: int = Field(ge=2)
    """Actions of the answer that were to be done."""


class Intent(Record):
    """All data of a step that is known before the action is sent."""

    kind: Literal["intent"] = "intent"
    step: int
    """1-based."""
    seen: ObservationRecord
    rating: Rating
    action: Action
    raw: str
    """The policy's unmodified answer, with comment lines; empty for the later actions of a batch."""
    label: str = ""
    """What an expert would answer at this state, in the action language; empty without an expert, where it knows
    nothing, and in older traces."""
    by_expert: bool = False
    """`action` is the expert's, in place of another or no action of the policy; also the end of an episode where the
    expert knew nothing. False in older traces, which do not say."""
    notes: tuple[str, ...] = ()
    """`# Note:` and `# Element:` comments of the policy."""
    notebook: Notebook | None = None
    """The policy's notes after this answer; None where it changed none, and in older traces."""
    rationale: str = ""
    """What the policy wrote before its action, on one line, cut at the limit of the run; empty in older traces."""
    batch: BatchPlace | None = None
    """None for an answer with one action. The call and the rationale of a batch are in its first intent."""
    target: ElementKeyRecord | None = None
    """Key of the element that the action names."""
    place: ActionPlace | None = None
    """What role and name of the element do not say; None where they say all, and in older traces."""
    target_box: tuple[float, float, float, float] | None = None
    """The element's x, y, width and height in CSS pixels of the viewport; None unless boxes were observed."""
    groundings: tuple[Grounding, ...] = ()
    """How the controls were found that the policy described in words; empty without a grounder, and in older traces."""
    calls: tuple[Call, ...] = ()
    changed: bool | None = None
    """Whether the page changed by the action before, as seen when this action was chosen; None: not known, or it failed
    or is not meant to change a page."""
    at: Unmasked


class Commit(Record):
    """The result of the action of the intent with the same step."""

    kind: Literal["commit"] = "commit"
    step: int
    result: ActionResult
    timings: Timings
    at: Unmasked


class Event(Record):
    """An event that is not a step, such as a resume, approval, crash, parse error or exceeded budget."""

    kind: Literal["event"] = "event"
    step: int
    name: Unmasked
    detail: str = ""
    notebook: Notebook | None = None
    """The policy's notes after an answer without an action (`parse_error`); None where it changed none."""
    config: dict[str, Any] | None = None
    """The resolved run configuration from here on, of a `resumed` event that changed it; None where it stays."""
    calls: tuple[Call, ...] = ()
    at: Unmasked


class Loop(Record):
    """A repeated sequence of steps."""

    entry: int
    """1-based number of the first step of the loop."""
    period: int
    """Number of steps in one repetition."""
    repetitions: int
    """Number of complete repetitions, at least 2."""
    last: int | None = None
    """Number of the last step of the loop if other steps lie between the repetitions, else None."""


class Failure(Record):
    """Why an episode failed (MiRA paper, §4)."""

    category: Literal["stop_at_wrong_page", "stuck_midway", "no_reasonable_attempt", "other"]
    key_step: int | None
    """1-based step at which the failure began; None if no step was taken."""
    reason: str
    loop: Loop | None = None
    """The detected loop, in any category; None if there is none."""
    cut_short: bool = False
    """The failure is a limit that ended the episode while it was making progress."""


class Degraded(Record):
    """How often planner and rater gave nothing usable (no answer within the retry window, or an unreadable one). The
    episode went on with the plan and the status that it had, and counts like any other."""

    planner: int = 0
    rater: int = 0

    def __bool__(self) -> bool:
        return self.planner + self.rater > 0

    def plus(self, role: Literal["planner", "rater"]) -> Degraded:
        """One more error of *role*."""
        return self.model_copy(update={role: getattr(self, role) + 1})


class Totals(Record):
    """What an episode spent: seconds, tokens of all roles and US dollars."""

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
    """Last line of the trace of an episode that has ended: the outcome, who judged it, and what it spent."""

    kind: Literal["footer"] = "footer"
    outcome: Outcome
    ended_by: EndedBy
    judged_by: Literal["checker", "judge", "none"]
    score: Score | None = None
    verdict: str = ""
    """The outcome judge's verdict, recorded beside the checker's if both exist."""
    verdict_score: float | None = None
    """Probability of success, in [0, 1], where the judge gave one (`orm:`); None otherwise, and in older traces."""
    answer: str | None = None
    rating: Rating | None = None
    milestone_checks: tuple[MilestoneCheck, ...] | None = None
    failure: Failure | None = None
    blocked_requests: tuple[BlockedOrigin, ...] = ()
    """All requests that were refused in the episode, by origin."""
    declined: int = 0
    """Number of actions that were not sent because a person declined them or no approver was available."""
    totals: Totals
    expert_steps: int | None = None
    """Number of steps whose action was the expert's in place of the policy's; None without an expert, and in older
    traces."""
    degraded: Degraded = Degraded()
    """Errors of planner and rater in this episode, each of which is an event, too."""
    error: str | None = None
    resumable: bool = False
    """A model (policy or judge; in older traces planner or rater, too) did not answer, or a resume could not restore
    the environment. `mira resume` continues the episode after its last committed step, or judges it again if only the
    verdict is missing."""
    refused: Role | None = None
    """The role whose model's server refused the request that is missing (4xx: a wrong name or key, a spent quota): a
    resume needs another model or key. None in other cases, and in older traces."""
    config: dict[str, Any] | None = None
    """The resolved run configuration at the end, if a resume changed that of the header; else None."""
    calls: tuple[Call, ...] = ()
    at: Unmasked


Line = Annotated[Header | PlanRecord | Intent | Commit | Event | Footer, Field(discriminator="kind")]
LINE: TypeAdapter[Line] = TypeAdapter(Line)
"""Validates and dumps one line of a trace."""
