"""Reads milestones and outcome of a finished trace: the `z_i` and `y_i` of the MiRA paper, §5.1."""

from __future__ import annotations

from typing import Literal, NamedTuple

from envs.core.record import Record
from envs.core.trace import PlanRecord, Rating
from envs.core.trace_store import Trace

Source = Literal["checks", "rater"]
"""Source of `z`: `checks`, the task's state checkers at the end; `rater`, the run's AutoRater, for which an achieved
milestone stays achieved."""


class Observed(Record):
    """Milestones and outcome of one judged trace."""

    task: str
    """`suite/name`, without the seed."""
    milestones: tuple[str, ...]
    """Their ids, in order; at least one."""
    texts: tuple[str, ...]
    z: tuple[bool, ...]
    """Done at the end."""
    reached: tuple[int | None, ...]
    """Number of steps after which the rater first saw each achieved, 0 = from the start; None if never."""
    steps: int
    success: bool

    @property
    def score(self) -> float:
        return sum(self.z) / len(self.z)

    def without_last(self) -> Observed | None:
        """Without the last milestone, which often is the outcome itself; None if there is only one."""
        if len(self.z) == 1:
            return None
        fields = ("milestones", "texts", "z", "reached")
        return self.model_copy(update={name: getattr(self, name)[:-1] for name in fields})


class UnusableTrace(NamedTuple):
    """Why a trace cannot be used to measure milestones."""

    reason: Literal["unfinished", "broken", "unjudged", "judged by a model", "no milestones"]


def observe(trace: Trace, source: Source) -> Observed | UnusableTrace:
    """Milestones and outcome of *trace*. Only outcomes of a checker count."""
    header, footer = trace.header, trace.footer
    if footer is None:
        return UnusableTrace("unfinished")
    if footer.outcome in ("broken", "unjudged"):
        return UnusableTrace(footer.outcome)
    if footer.judged_by != "checker":
        return UnusableTrace("judged by a model")
    if source == "checks":
        z = tuple(check.achieved for check in footer.milestone_checks or ())
        named = {m.id: m.text for m in header.reference_milestones}
    else:
        z = footer.rating.z if footer.rating else ()
        named = {m.id: m.text for m in trace.plans[-1].milestones} if trace.plans else {}
    if not z:
        return UnusableTrace("no milestones")
    ids = tuple(named) if len(named) == len(z) else tuple(str(k) for k in range(1, len(z) + 1))
    reached = reached_after(trace)
    return Observed(
        task=f"{header.task.suite}/{header.task.name}",
        milestones=ids,
        texts=tuple(named.get(one, "") for one in ids),
        z=z,
        reached=tuple(reached.get(one) for one in ids),
        steps=len(trace.steps),
        success=footer.outcome == "success",
    )


def reached_after(trace: Trace) -> dict[str, int]:
    """By milestone id, the number of steps after which it was first achieved; 0 = from the start."""
    reached: dict[str, int] = {}
    plans = sorted(trace.plans, key=lambda plan: plan.step)
    for done, (intent, _) in enumerate(trace.steps):
        in_force = [plan for plan in plans if plan.step <= intent.step]
        _note(reached, in_force[-1] if in_force else None, intent.rating, done)
    if trace.footer is not None and trace.footer.rating is not None:
        _note(reached, plans[-1] if plans else None, trace.footer.rating, len(trace.steps))
    return reached


def _note(reached: dict[str, int], plan: PlanRecord | None, rating: Rating, done: int) -> None:
    if plan is None or len(plan.milestones) != len(rating.z):
        names = [str(k) for k in range(1, len(rating.z) + 1)]
    else:
        names = [milestone.id for milestone in plan.milestones]
    for name, held in zip(names, rating.z, strict=True):
        if held:
            reached.setdefault(name, done)
