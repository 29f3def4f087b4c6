"""What a trace says about an episode that was cut off, and how it goes on.

The trace is the truth about the world: a committed step happened and is never sent again. The LangGraph checkpoint
says how far the graph had come; it may lag one node behind, or be gone, and decides nothing here: the graph's state
is rebuilt from the trace and written as if the last committed `execute` had just run.

An intent without a commit is an action that may or may not have happened:

* `reopen` worlds (the state lives on a server): it is *uncertain*. It is not sent again; the step counts, and the
  policy is told to look before it repeats anything.
* `replay` worlds (the state died with the page): it is *void*. The world is rebuilt without it, and the step is free
  to be chosen again.

An episode whose footer is `resumable` goes on in the same way. Where a model broke it in the middle, the next step is
chosen; where it had ended and only its verdict is missing, it is judged again and nothing else is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.episode.approval import MAX_DECLINES
from agent.episode.prompts import one_line
from agent.episode.state import State, rows_of
from agent.run.limits import UsageTracker
from envs.core.action_languages import Language
from envs.core.actions import Action, Status, Stop
from envs.core.observation import ElementKey
from envs.core.past_actions import PastAction
from envs.core.tasks import Milestone
from envs.core.trace import Commit, EndedBy, Event, Footer, Header, Intent, Line, PlanRecord, Rating
from envs.core.trace_store import has_header, iter_lines
from planners.anchors import carry_over
from planners.replan_triggers import StepSummary

UNCERTAIN = (
    "the run was cut off while this action was sent, so it may or may not have happened: {action}. "
    "Look at the page first and do not repeat it blindly."
)


NOT_REPLAYED = frozenset({None, Status.BLOCKED, Status.STOPPED, Status.CRASHED, Status.TIMEOUT})
"""How an action ended that is left out when a world is rebuilt."""


@dataclass(frozen=True, slots=True)
class Sent:
    """An action that was sent and counts as a step."""

    intent: Intent
    commit: Commit | None
    """None: uncertain, the process died before it knew what came of it."""
    declined: bool = False
    """A person said no to it, so it never reached the world."""

    @property
    def target(self) -> ElementKey | None:
        row = self.intent.target
        return None if row is None else row.key

    @property
    def status(self) -> Status | None:
        return None if self.commit is None else self.commit.result.status

    @property
    def past(self) -> PastAction:
        return PastAction(self.intent.action, self.target, None if self.commit is None else self.commit.result)


@dataclass(slots=True)
class RecoveredEpisode:
    """An unfinished episode as its trace tells it; built by :func:`recover`."""

    header: Header
    sent: list[Sent] = field(default_factory=list[Sent])
    open: Intent | None = None
    """The last intent, if nothing in the trace says what became of it."""
    planned: bool = False
    plan: tuple[Milestone, ...] = ()
    z: tuple[bool, ...] = ()
    rating: Rating = field(default_factory=lambda: Rating(z=()))
    replans: int = 0
    planned_at: int = 0
    declines: int = 0
    refused: int = 0
    """The last step that a person declined; 0 if none was."""
    parse_errors: int = 0
    """In a row, after the last intent."""
    ledger: UsageTracker = field(default_factory=UsageTracker)
    ended: Footer | None = None
    """The last footer after the last intent, in force or not."""

    @property
    def ended_by(self) -> EndedBy | None:
        """How the episode had ended before only its verdict failed; None where it goes on."""
        return None if self.ended is None or self.ended.ended_by == "error" else self.ended.ended_by

    @property
    def step(self) -> int:
        """The last step that counts; 0 before the first."""
        return self.sent[-1].intent.step if self.sent else 0

    def decide(self, *, happened: bool) -> None:
        """What becomes of the open intent: it counts as a step of unknown result, or it never was."""
        if self.open is not None and happened:
            self.sent.append(Sent(self.open, None))
        self.open = None

    def replayable(self) -> tuple[Action, ...]:
        """The actions that a replayed world is rebuilt from: those that reached it and left it standing."""
        return tuple(s.intent.action for s in self.sent if s.status not in NOT_REPLAYED)

    def past(self) -> list[PastAction]:
        return [sent.past for sent in self.sent]

    def ticks(self, language: Language) -> list[StepSummary]:
        """What the watch knew, but for milestones that were lost."""
        return [
            StepSummary(
                s.intent.step, language.show(s.intent.action), s.intent.seen.digest, s.status, s.intent.rating.z
            )
            for s in self.sent
        ]


def read_unfinished(path: Path) -> RecoveredEpisode | None:
    """What is left of an episode; None where it never got as far as a header. Raises TraceError."""
    return recover(tuple(iter_lines(path))) if has_header(path) else None


def recover(lines: Sequence[Line]) -> RecoveredEpisode:
    """Reads the lines of a trace, the header first."""
    header = lines[0]
    if not isinstance(header, Header):
        raise ValueError(f"a trace begins with a header, not {header.kind!r}")
    found = RecoveredEpisode(header)
    for line in lines[1:]:
        _fold(found, line)
    return found


def _fold(found: RecoveredEpisode, line: Line) -> None:
    match line:
        case Intent():
            found.open, found.rating, found.parse_errors, found.ended = line, line.rating, 0, None
            if len(line.rating.z) == len(found.plan):
                found.z = line.rating.z
            found.ledger.add(line.calls)
        case Commit():
            if found.open is not None and found.open.step == line.step:
                found.sent.append(Sent(found.open, line, declined=line.step == found.refused))
            found.open = None
            found.ledger.seconds_before += line.timings.total
        case Event(name="uncertain"):
            found.decide(happened=True)
        case Event():
            if line.name == "void":
                found.decide(happened=False)
            if line.name in ("declined", "approved"):  # asked again after a kill, a person may say otherwise
                found.refused = line.step if line.name == "declined" else 0
            found.declines += line.name == "declined"
            found.parse_errors += line.name == "parse_error"
            found.replans += line.name == "planner_error" and found.planned
            found.ledger.add(line.calls)
        case PlanRecord():
            found.z = carry_over(found.plan, found.z, line.milestones)
            found.plan, found.planned, found.planned_at = line.milestones, True, line.step - 1
            found.replans += line.cause != "initial"
            if line.call is not None:
                found.ledger.add((line.call,))
                found.ledger.seconds_before += line.call.seconds
        case Footer():
            found.ended = line
            found.ledger.add(line.calls)
        case Header():
            pass


def rebuilt_state(found: RecoveredEpisode) -> State:
    """The graph's state after the last step that counts. An open intent must have been decided before."""
    last = found.sent[-1] if found.sent else None
    stopped = last is not None and isinstance(last.intent.action, Stop) and last.status is Status.STOPPED
    declined = last is not None and last.declined and found.declines >= MAX_DECLINES
    return State(
        step=found.step,
        plan=rows_of(found.plan),
        z=found.z,
        next_milestone=next((i for i, achieved in enumerate(found.z) if not achieved), None),
        replans=found.replans,
        parse_errors=found.parse_errors,
        declines=found.declines,
        problems=_problems(last),
        ended_by="stop" if stopped else "declined" if declined else found.ended_by,
        answer=last.intent.action.answer if last is not None and isinstance(last.intent.action, Stop) else None,
    )


def _problems(last: Sent | None) -> list[str]:
    """What the policy is told first: the doubt about the last action, or what Find or Expand answered."""
    if last is None:
        return []
    if last.commit is None:
        return [UNCERTAIN.format(action=one_line(last.past.log_line()))]
    return [last.commit.result.output] if last.commit.result.output else []
