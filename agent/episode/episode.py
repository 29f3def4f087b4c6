"""The runtime objects of one episode, which the graph's nodes share.

Nothing here is checkpointed. The trace holds everything that must survive the process; :mod:`agent.run.resume` rebuilds
an `Episode` from it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

from agent.config import ModelRole, RunConfig
from agent.episode.approval import Approver, decline
from agent.episode.batch import Batch
from agent.episode.changed_pages import changed
from agent.episode.grounder import ModelGrounder
from agent.episode.policy import ActionProposal, ModelCall, Policy
from agent.episode.refused_origins import blocked_in, news
from agent.episode.resources import Provided
from agent.episode.state import State
from agent.episode.structured_answers import AnswerSchema
from agent.episode.tools import NO_TOOLS, Toolbox
from agent.progress import Event as ProgressEvent
from agent.progress import ModelWaits, RequestsRefused
from agent.run.limits import UsageTracker
from agent.run.resume import RecoveredEpisode
from envs.browser.session import BrowserSession
from envs.core.action_languages import Language
from envs.core.errors import EnvError
from envs.core.notes import Notebook, edited
from envs.core.observation import ElementKey, Observation
from envs.core.past_actions import PastAction
from envs.core.record import storable, unmasked_fields
from envs.core.step_context import StepContext
from envs.core.tasks import Environment, EpisodeStart, MilestoneCheck, Score, TaskRef
from envs.core.trace import (
    Call,
    Commit,
    Degraded,
    ElementKeyRecord,
    Event,
    Failure,
    Intent,
    ObservationRecord,
    Outcome,
    Rating,
    Role,
    Timings,
    Totals,
)
from envs.core.trace_store import BlobStore, TraceWriter, now
from envs.observer.page_state import page_state
from envs.observer.set_of_marks import marked
from envs.security.blocked_requests import BlockedOrigin, merge_blocked_origins
from envs.suites.webarena.evaluators import FuzzyJudge
from judges.base import AutoRater, OutcomeJudge
from models.asking import calls_end_at, empty_reply
from models.base import ChatReply, Message, ModelError
from models.transport import Waiting, wait_listener
from planners.base import Planner
from planners.replan_triggers import ReplanDetector, StepSummary

JUDGING_S = 30.0
"""Seconds that rater and judge get at least at the end of an episode, also after `max_seconds`; at most `max_seconds`
itself."""


class Interrupted(Exception):
    """The run was stopped at a step boundary. The episode can be resumed."""


Reflection = tuple[Rating, tuple[str, ...]]
"""A rating, and the texts of achieved milestones that no longer hold."""


class EnvironmentLost(EnvError):
    """The environment failed (for example its browser crashed). The episode can continue from its trace."""


@dataclass(frozen=True, slots=True)
class AgentComponents:
    """Policy, planner and judges of a run, shared by all its episodes."""

    policy: Policy
    planner: Planner
    rater: AutoRater
    judge: OutcomeJudge | None
    language: Language
    replan_detector: ReplanDetector
    answers: AnswerSchema | None
    """The schema of the answer; None where any text is accepted."""
    compares: FuzzyJudge | None = None
    """Compares answers by meaning for checkers; None without a model judge."""
    confirms_stop: bool = False
    """The policy is asked again where it stops while a milestone is open."""
    full_planner: bool = False
    """A large model plans, see :attr:`agent.episode.prompts.PolicyView.shows_status`."""
    grounder: ModelGrounder | None = None
    """Finds what the policy describes in words; None where it names controls by number."""
    needs_pictures: bool = False
    """The policy acts on screenshots, so there is one at every step."""
    tools: Toolbox = NO_TOOLS
    """What the policy may call beside actions on the page."""
    pictured: frozenset[ModelRole] = frozenset()
    """Which of planner, rater and judge are shown the picture of the view."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Identifies an episode."""

    run_id: str
    episode_id: str
    task: TaskRef
    attempt: int


@dataclass(slots=True)
class Assessment:
    """Results of judging and analysis; written into the footer."""

    outcome: Outcome = "unjudged"
    score: Score | None = None
    verdict: str = ""
    verdict_score: float | None = None
    """See :attr:`envs.core.trace.Footer.verdict_score`."""
    judged_by: Literal["checker", "judge", "none"] = "none"
    checks: tuple[MilestoneCheck, ...] | None = None
    failure: Failure | None = None
    unjudged: str = ""
    """Why a model judge gave no verdict."""
    resumable: bool = False
    """See :attr:`envs.core.trace.Footer.resumable`."""
    refused: Role | None = None
    """See :attr:`envs.core.trace.Footer.refused`."""


@dataclass(slots=True)
class Episode:
    """The state that the nodes share within one process."""

    identity: Identity
    config: RunConfig
    components: AgentComponents
    environment: Environment
    trace: TraceWriter
    blobs: BlobStore
    start: EpisodeStart
    notify: Callable[[ProgressEvent], None]
    saved: Path
    """Folder for the saved state of the environment, from which it is restored after a kill."""
    stopping: asyncio.Event
    """Set when the run is stopped: the episode ends at its next step boundary."""

    approver: Approver = decline
    """Decides on held requests; the graph asks about actions."""
    declined_requests: int = 0
    """Held requests that were not approved since :meth:`take_declined`."""
    reconfigured: bool = False
    """A resume changed the configuration: `config` is not that of the trace's header."""
    may_retry: bool = False
    """The environment may fail once: the episode then continues in a new one, from its trace."""
    usage_tracker: UsageTracker = field(default_factory=UsageTracker)
    began: float = field(default_factory=time.monotonic)
    judging_ends: float | None = None
    """Deadline of the judging on the monotonic clock; None before it begins, or without a limit."""
    observation: Observation | None = None
    """The observation that the next action is chosen on; None right after an action."""
    previous: Observation | None = None
    reflecting: asyncio.Task[Reflection] | None = None
    """A pending rating that runs beside the policy call (`overlap_reflect`)."""
    rating: Rating = field(default_factory=lambda: Rating(z=()))
    unrated: bool = False
    """The last page was not rated (an error, or nothing was done on it): the next one is, even if it is unchanged."""
    degraded: Degraded = field(default_factory=Degraded)
    rater_back_at: int = 0
    """Number of committed steps from which a rater that did not answer is asked again."""
    failed_role: Role | None = None
    """The role whose model failed last."""
    proposal: ActionProposal | None = None
    batch: Batch | None = None
    """The further actions of the policy's last answer. They do not survive the process: a resume asks again."""
    calls: list[Call] = field(default_factory=list[Call])
    """Model calls that are not in the trace yet."""
    past: list[PastAction] = field(default_factory=list[PastAction])
    history: tuple[PastAction, ...] = ()
    """`past` with secrets masked, for policy, planner and judges; each prompt has its own budget for it."""
    steps: list[tuple[Intent, Commit | None]] = field(default_factory=list[tuple[Intent, Commit | None]])
    """Every recorded step, for the failure analyzer."""
    summaries: list[StepSummary] = field(default_factory=list[StepSummary])
    blocked: tuple[BlockedOrigin, ...] = ()
    """Requests that the proxy has refused, by origin."""
    planned_at: int = 0
    """Number of the last step before the current plan came into force."""
    notebook: Notebook = field(default_factory=Notebook)
    """The policy's notes, with remarks of the last answer."""
    notebook_changed: bool = False
    """The last answer changed `notebook`, and no trace line holds it yet."""
    timings: Timings = field(default_factory=Timings)
    assessment: Assessment = field(default_factory=Assessment)
    provided: Provided | None = None
    """Secrets and files in the policy's prompts; read at the first turn, then constant."""

    async def observe(self) -> Observation:
        """Returns the current page; observes it only if an action was executed since the last observation."""
        if self.observation is None:
            begun = time.perf_counter()
            pictured = self.config.takes_screenshots or self.components.needs_pictures
            seen = await self.environment.observe(screenshot=pictured)
            if self.config.screenshots in ("marks", "both") and seen.screenshot is not None:
                picture = await asyncio.to_thread(marked, seen.screenshot, seen.elements, seen.viewport)
                both = self.config.screenshots == "both"
                seen = replace(seen, marked=picture) if both else replace(seen, screenshot=picture)
            self.observation = seen
            self._note_change(seen)
            self.spend(observe=time.perf_counter() - begun)
            self.refuse(seen.blocked)
        return self.observation

    async def context(
        self, state: State, role: ModelRole = "policy", *, plan: bool = True, notes: bool = True
    ) -> StepContext:
        """What *role* may know at this step, secrets masked. *plan*, *notes*: whether the role sees them."""
        observation = await self.observe()  # before `history`: it completes the last action
        if role != "policy" and role not in self.components.pictured:
            observation = replace(observation, screenshot=None, marked=None)
        return StepContext(
            instruction=self.start.instruction,
            observation=observation,
            history=self.history,
            milestones=state.milestones if plan else (),
            z=state.z if plan else (),
            notes=self.notebook.notes if notes else (),
        )

    def _note_change(self, seen: Observation) -> None:
        """Notes whether the page changed by the last action, as *seen* after it."""
        if self.past and self.past[-1].changed is None:
            whether = changed(self.past[-1], self.previous, seen)
            self.past[-1] = replace(self.past[-1], changed=whether)
            self.history = (*self.history[:-1], replace(self.history[-1], changed=whether))

    def refuse(self, blocked: Sequence[BlockedOrigin]) -> None:
        """Counts refused requests; reports origins that are new in this episode."""
        new = news(blocked, self.blocked)
        self.blocked = merge_blocked_origins((*self.blocked, *blocked))
        if new:
            self.notify(RequestsRefused(self.identity.episode_id, len(self.steps) + 1, new))

    def acted(self, past: PastAction, intent: Intent, commit: Commit) -> None:
        """Records an executed action. The next `observe` observes the page again."""
        self.past.append(past)
        self.history = (*self.history, past.with_texts(self.trace.mask))
        self.steps.append((intent, commit))
        if self.batch is None or self.batch.place == 1:  # the rater compares with the page of the last turn
            self.previous = self.observation
        self.observation, self.proposal = None, None

    def spend(self, *, observe: float = 0.0, reflect: float = 0.0, act: float = 0.0, execute: float = 0.0) -> None:
        """Adds seconds to the parts of the current step."""
        t = self.timings
        self.timings = Timings(
            observe=round(t.observe + observe, 4),
            reflect=round(t.reflect + reflect, 4),
            act=round(t.act + act, 4),
            execute=round(t.execute + execute, 4),
        )

    def take_timings(self) -> Timings:
        taken, self.timings = self.timings, Timings()
        return taken

    def account(self, calls: Iterable[Call]) -> None:
        """Adds *calls* to the usage, and keeps them for the next trace line that can hold them."""
        new = tuple(calls)
        self.usage_tracker.add(new)
        self.calls.extend(new)

    @contextmanager
    def calling(self, role: Role) -> Generator[None]:
        """Limits model calls to the episode's remaining time and reports waits for their server."""

        def report(wait: Waiting) -> None:
            self.notify(ModelWaits(self.identity.episode_id, role, wait.reason, wait.seconds, wait.patience_s))

        with calls_end_at(self.judging_ends or self.ends_at), wait_listener(report):
            yield

    @contextmanager
    def paying(self, role: Role, spec: str) -> Generator[None]:
        """:meth:`calling` for one call. The usage of a call that raises is counted before the error is re-raised."""
        try:
            with self.calling(role):
                yield
        except ModelError as error:
            self.failed_role = role
            if error.usage is not None:
                reply = empty_reply(error, error.usage, spec)
                self.account([call_record(role, reply, error=f"{type(error).__name__}: {error}")])
            raise

    @property
    def session(self) -> BrowserSession | None:
        """The browser session of the environment; None where another process has the browser."""
        return self.environment.session

    @property
    def ends_at(self) -> float | None:
        """Deadline of the episode on the monotonic clock; None without a limit."""
        limit = self.config.limits.max_seconds
        return self.began - self.usage_tracker.seconds_before + limit if limit > 0 else None

    def begin_judging(self) -> None:
        """Extends the deadline for the judging, which also happens after the time limit."""
        if self.ends_at is not None:
            grace = min(JUDGING_S, self.config.limits.max_seconds)
            self.judging_ends = max(self.ends_at, time.monotonic() + grace)

    def keep_notes(self, proposal: ActionProposal) -> None:
        """Applies the changes of notes in an answer. Remarks of the answer before are dropped: they were shown."""
        before = self.notebook.read()
        self.notebook_changed = bool(proposal.note_edits)
        edits, most = proposal.note_edits, self.config.max_notes
        self.notebook = edited(before.notes, edits, most, self.trace.mask) if edits else before

    def take_notebook(self) -> Notebook | None:
        """Returns the notes for the next trace line, where the last answer changed them."""
        changed, self.notebook_changed = self.notebook_changed, False
        return self.notebook if changed else None

    def take_calls(self) -> tuple[Call, ...]:
        taken = tuple(self.calls)
        self.calls.clear()
        return taken

    def take_declined(self) -> int:
        taken, self.declined_requests = self.declined_requests, 0
        return taken

    def totals(self, steps: int) -> Totals:
        return self.usage_tracker.totals(steps, time.monotonic() - self.began)

    def note(
        self,
        step: int,
        name: str,
        detail: str = "",
        notebook: Notebook | None = None,
        *,
        config: dict[str, Any] | None = None,
    ) -> None:
        """Appends an event to the trace. *config*: see :attr:`envs.core.trace.Event.config`."""
        self.trace.append(
            Event(
                step=step,
                name=name,
                detail=storable(detail),
                notebook=notebook,
                config=config,
                calls=self.take_calls(),
                at=now(),
            )
        )

    def degrade(self, role: Literal["planner", "rater"], step: int, error: ModelError) -> None:
        """Records an error of planner or rater, without whose answer the episode continues."""
        self.note(step, f"{role}_error", f"{type(error).__name__}: {error}")
        self.degraded = self.degraded.plus(role)

    def add_summary(self, summary: StepSummary) -> None:
        self.summaries = [*self.summaries, summary][-self.components.replan_detector.window :]

    def drop_reflection(self) -> None:
        """Cancels a pending rating: its plan was replaced, or the episode is over. Its page counts as not rated."""
        if self.reflecting is not None:
            self.reflecting.cancel()
            self.reflecting, self.unrated = None, True

    def take_over(self, recovered: RecoveredEpisode) -> None:
        """Restores the state of an episode that an earlier process left unfinished."""
        self.past = recovered.past()
        self.history = tuple(self.past)
        self.notebook = recovered.notebook
        self.summaries = recovered.step_summaries(self.components.language)[-self.components.replan_detector.window :]
        self.steps = [(sent.intent, sent.commit) for sent in recovered.sent]
        self.blocked = merge_blocked_origins((*blocked_in(self.steps), *self.blocked))
        self.degraded = recovered.degraded
        self.planned_at, self.rating, self.usage_tracker = (
            recovered.planned_at,
            recovered.rating,
            recovered.usage_tracker,
        )

    def add_outcome(self, z: tuple[bool, ...], lost: tuple[str, ...], shown: str) -> None:
        """Adds the outcome of the last action to its step summary."""
        self.summaries[-1] = replace(self.summaries[-1], z=z, lost=lost, shown=shown)

    async def save_state(self) -> None:
        """Saves the environment's state for a resume; environments that are replayed need none."""
        if self.environment.restore == "reopen":
            await self.environment.save_state(self.saved)

    def store_observation(self, observation: Observation) -> ObservationRecord:
        """Returns the observation as a trace record; its large parts are stored as blobs."""
        return ObservationRecord(
            url=storable(observation.url),
            title=storable(observation.title),
            digest=observation.digest,
            state=page_state(observation.url, observation.text),
            viewport=observation.viewport,
            text_blob=self.blobs.put_text(observation.text),
            keys_blob=self.blobs.put_json(keys_json(observation), unmasked_fields(ElementKeyRecord)),
            controls_total=observation.controls_total,
            screenshot_blob=None if observation.screenshot is None else self.blobs.put(observation.screenshot),
            marked_blob=None if observation.marked is None else self.blobs.put(observation.marked),
            tabs=len(observation.tabs),
            note=observation.note,
            blocked_requests=observation.blocked,
        )

    def policy_calls(self, calls: Sequence[ModelCall]) -> tuple[Call, ...]:
        return tuple(
            call_record("policy", call.reply, self.blobs.put_json(prompt_json(call.messages)), call.error)
            for call in calls
        )


def keys_json(observation: Observation) -> JsonValue:
    """The shown elements as a JSON list of :class:`envs.core.trace.ElementKeyRecord`, made without building records."""
    return [
        {"ref": e.ref, "frame": k.frame, "role": k.role, "name": k.name, "ordinal": k.ordinal, "digest": k.digest}
        for e in observation.elements
        if e.shown
        for k in (e.key,)
    ]


def key_row(ref: int, key: ElementKey) -> ElementKeyRecord:
    return ElementKeyRecord(
        ref=ref, frame=key.frame, role=key.role, name=key.name, ordinal=key.ordinal, digest=key.digest
    )


def call_record(role: Role, reply: ChatReply, prompt_blob: str | None = None, error: str | None = None) -> Call:
    usage = reply.usage
    return Call(
        role=role,
        model=reply.model,
        prompt_blob=prompt_blob,
        completion=storable(reply.text),
        prompt_token_ids=reply.prompt_token_ids,
        completion_token_ids=reply.completion_token_ids,
        logprobs=reply.logprobs,
        tokens_in=usage.tokens_in,
        tokens_cached=usage.tokens_cached,
        tokens_thinking=usage.tokens_thinking,
        tokens_out=usage.tokens_out,
        cost_usd=usage.cost_usd,
        seconds=round(reply.seconds, 4),
        attempts=reply.attempts,
        error=None if error is None else storable(error),
    )


def prompt_json(messages: Sequence[Message]) -> JsonValue:
    """The messages as a JSON list. Pictures are described by type and size; the screenshot has its own blob."""
    return [
        {"role": m.role, "text": m.text, "images": [f"{i.media_type}, {len(i.data)} bytes" for i in m.images]}
        for m in messages
    ]
