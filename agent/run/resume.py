"""Rebuilds the state of an unfinished episode from its trace, which is all that a resume needs.

A committed step happened and is never sent again. The graph's state is rebuilt from the trace and written as if the
last committed `execute` had just run.

An intent without a commit is an action that may or may not have happened:

* `reopen` environments (the state lives on a server): it is *uncertain*. It is not sent again; the step counts, and
  the policy is instructed to check the page before it repeats anything.
* `replay` environments (the state was lost with the page): it is *void*. The environment is rebuilt without it, and
  the step is chosen again.

An episode whose footer is `resumable` continues in the same way. If a model broke it in the middle, it continues with
the next step. If it had ended and only its verdict is missing, it is judged again and no action is sent. An episode
that a limit ended continues with its next step if that limit was raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent.episode.approval import MAX_DECLINES
from agent.episode.prompts import one_line
from agent.episode.state import State, rows_of
from agent.run.limits import UsageTracker
from envs.core.action_languages import Language
from envs.core.actions import Action, Status, Stop, UseTool
from envs.core.notes import Note, Notebook
from envs.core.observation import ElementKey
from envs.core.older_results import with_reason
from envs.core.past_actions import PageName, PastAction
from envs.core.tasks import Milestone
from envs.core.trace import LIMITS, Commit, Degraded, EndedBy, Event, Footer, Header, Intent, Line, PlanRecord, Rating
from envs.core.trace_store import has_header, iter_lines
from planners.anchors import carry_over
from planners.replan_triggers import StepSummary

UNCERTAIN = (
    "the run was cut off while this action was sent, so it may or may not have happened: {action}. "
    "Look at the page first and do not repeat it blindly."
)


DROPPED = "your last answer had {size} actions, and {done} of them {were} sent; the page is shown as it is now"

UNUSABLE_ANSWERS = frozenset({"parse_error", "grounding_error"})
"""Events of answers of the policy without an action that could be done."""
NOT_REPLAYED = frozenset({None, Status.BLOCKED, Status.STOPPED, Status.CRASHED, Status.TIMEOUT})
"""Statuses of actions that are left out when an environment is rebuilt."""


@dataclass(frozen=True, slots=True)
class SentAction:
    """An action that was sent and counts as a step."""

    intent: Intent
    commit: Commit | None
    """None if the result is unknown, because the process died first."""
    declined: bool = False
    """The action was not approved and therefore not sent to the page; or it was sent, and a request that it caused was
    held and not approved (`commit.result.held_requests`)."""
    notes: tuple[Note, ...] = ()
    """The policy's notes after the answer with this action."""
    changed: bool | None = None
    """See :attr:`envs.core.past_actions.PastAction.changed`; the next intent tells it."""

    @property
    def target(self) -> ElementKey | None:
        row = self.intent.target
        return None if row is None else row.key

    @property
    def status(self) -> Status | None:
        return None if self.commit is None else self.commit.result.status

    @property
    def past(self) -> PastAction:
        result = None if self.commit is None else with_reason(self.commit.result)
        seen = self.intent.seen
        page = PageName(seen.url, seen.title)
        described = tuple(grounding.description for grounding in self.intent.groundings)
        intent = self.intent
        return PastAction(intent.action, self.target, result, intent.place, page, self.changed, described, intent.notes)


@dataclass(slots=True)
class RecoveredEpisode:
    """An unfinished episode, read from its trace by :func:`recover`."""

    header: Header
    config: dict[str, Any]
    """The resolved run configuration of the last process."""
    sent: list[SentAction] = field(default_factory=list[SentAction])
    open: Intent | None = None
    """The last intent, if the trace does not resolve it."""
    planned: bool = False
    """There is a plan, or the episode went on without one because the planner did not answer."""
    plan: tuple[Milestone, ...] = ()
    z: tuple[bool, ...] = ()
    rating: Rating = field(default_factory=lambda: Rating(z=()))
    notebook: Notebook = field(default_factory=Notebook)
    """The policy's notes after the last answer that counts."""
    replans: int = 0
    planned_at: int = 0
    declines: int = 0
    refused: int = 0
    """The last step that a person declined; 0 if none."""
    parse_errors: int = 0
    """Consecutive parse errors after the last intent."""
    degraded: Degraded = field(default_factory=Degraded)
    usage_tracker: UsageTracker = field(default_factory=UsageTracker)
    ended: Footer | None = None
    """The last footer after the last intent, in force or not."""

    @property
    def ended_by(self) -> EndedBy | None:
        """How the episode ended, if only its verdict is missing; None if it continues."""
        return None if self.ended is None or self.ended.ended_by == "error" else self.ended.ended_by

    @property
    def step(self) -> int:
        """The last step that counts; 0 before the first."""
        return self.sent[-1].intent.step if self.sent else 0

    def note_change(self, following: Intent) -> None:
        """Notes whether the last action changed the page, which the intent after it tells."""
        if self.sent:
            self.sent[-1] = replace(self.sent[-1], changed=following.changed)

    def decide(self, *, happened: bool) -> None:
        """Resolves the open intent: it counts as a step with unknown result if it *happened*, else it is dropped."""
        if self.open is not None and happened:
            self.send(self.open, None)
        self.open = None

    def send(self, intent: Intent, commit: Commit | None, *, declined: bool = False) -> None:
        """Adds a step that counts, with the notes of its answer."""
        self.notebook = intent.notebook or self.notebook.read()
        self.sent.append(SentAction(intent, commit, declined=declined, notes=self.notebook.notes))

    def replayable(self) -> tuple[Action, ...]:
        """Actions that rebuild a `replay` environment: those that reached it and did not crash it. No tool is called
        again."""
        reached = (sent.intent.action for sent in self.sent if sent.status not in NOT_REPLAYED)
        return tuple(action for action in reached if not isinstance(action, UseTool))

    def past(self) -> list[PastAction]:
        """Past actions for the policy."""
        return [sent.past for sent in self.sent]

    def step_summaries(self, language: Language) -> list[StepSummary]:
        """Step summaries for the replan detector, without lost milestones."""
        return [
            StepSummary(
                sent.intent.step,
                language.show(sent.intent.action),
                sent.intent.seen.digest,
                sent.status,
                sent.intent.rating.z,
                state=sent.intent.seen.state,
                shown=sent.commit.result.output if sent.commit is not None else "",
            )
            for sent in self.sent
        ]


def read_unfinished(path: Path) -> RecoveredEpisode | None:
    """Reads an unfinished episode; None if its trace has no header. Raises TraceError."""
    return recover(tuple(iter_lines(path))) if has_header(path) else None


def recover(lines: Sequence[Line]) -> RecoveredEpisode:
    """Builds the unfinished episode from the lines of its trace. The first line must be the header."""
    header = lines[0]
    if not isinstance(header, Header):
        raise ValueError(f"a trace begins with a header, not {header.kind!r}")
    recovered = RecoveredEpisode(header, header.config)
    for line in lines[1:]:
        _fold(recovered, line)
    return recovered


def _fold(recovered: RecoveredEpisode, line: Line) -> None:
    match line:
        case Intent():
            recovered.note_change(line)
            recovered.open, recovered.rating, recovered.parse_errors, recovered.ended = line, line.rating, 0, None
            recovered.planned = True
            if len(line.rating.z) == len(recovered.plan):
                recovered.z = line.rating.z
            recovered.usage_tracker.add(line.calls)
        case Commit():
            if recovered.open is not None and recovered.open.step == line.step:
                recovered.send(recovered.open, line, declined=line.step == recovered.refused)
            recovered.open = None
            recovered.usage_tracker.seconds_before += line.timings.total
        case Event(name="uncertain"):
            recovered.decide(happened=True)
        case Event():
            _fold_event(recovered, line)
        case PlanRecord():
            recovered.z = carry_over(recovered.plan, recovered.z, line.milestones)
            recovered.plan, recovered.planned, recovered.planned_at = line.milestones, True, line.step - 1
            recovered.replans += line.cause != "initial"
            if line.call is not None:
                recovered.usage_tracker.add((line.call,))
                recovered.usage_tracker.seconds_before += line.call.seconds
        case Footer():
            recovered.ended = line
            recovered.usage_tracker.add(line.calls)
            if line.ended_by in LIMITS:  # its seconds were used up, those of a call without an answer included
                spent = recovered.usage_tracker
                spent.seconds_before = max(spent.seconds_before, line.totals.seconds)
        case Header():
            pass


def _fold_event(recovered: RecoveredEpisode, event: Event) -> None:
    if event.name == "void":
        recovered.decide(happened=False)
    # After a kill the person is asked again and may answer differently.
    if event.name in ("declined", "approved"):
        recovered.refused = event.step if event.name == "declined" else 0
    recovered.declines += event.name == "declined"
    recovered.parse_errors += event.name in UNUSABLE_ANSWERS
    recovered.notebook = event.notebook or recovered.notebook
    recovered.config = event.config or recovered.config
    recovered.replans += event.name == "planner_error" and recovered.planned
    if event.name in ("planner_error", "rater_error"):
        recovered.degraded = recovered.degraded.plus("planner" if event.name == "planner_error" else "rater")
    recovered.usage_tracker.add(event.calls)


def rebuilt_state(recovered: RecoveredEpisode) -> State:
    """Builds the graph's state after the last step that counts. An open intent must be resolved before."""
    last = recovered.sent[-1] if recovered.sent else None
    stopped = last is not None and isinstance(last.intent.action, Stop) and last.status is Status.STOPPED
    declined = last is not None and last.declined and recovered.declines >= MAX_DECLINES
    return State(
        step=recovered.step,
        plan=rows_of(recovered.plan),
        z=recovered.z,
        next_milestone=next((i for i, achieved in enumerate(recovered.z) if not achieved), None),
        replans=recovered.replans,
        parse_errors=recovered.parse_errors,
        declines=recovered.declines,
        problems=_problems(last),
        ended_by="stop" if stopped else "declined" if declined else recovered.ended_by,
        answer=last.intent.action.answer if last is not None and isinstance(last.intent.action, Stop) else None,
    )


def _problems(last: SentAction | None) -> list[str]:
    """Problems for the policy's next turn: an uncertain last action, or the output of Find or Expand."""
    if last is None:
        return []
    dropped = _dropped(last.intent)
    if last.commit is None:
        return [UNCERTAIN.format(action=one_line(last.past.full_line())), *dropped]
    found = "" if isinstance(last.intent.action, UseTool) else last.commit.result.output  # that has a part of its own
    return [found] if found else dropped


def _dropped(last: Intent) -> list[str]:
    """The problem line of a batch that was not completed. The rest is never continued: it was chosen for a
    page that is no longer shown."""
    if last.batch is None or last.batch.place == last.batch.size:
        return []
    done = last.batch.place
    return [DROPPED.format(done=done, were="was" if done == 1 else "were", size=last.batch.size)]
