"""What a finished trace says about its milestones: the `z_i` and `y_i` of the MiRA paper, §5.1."""

from __future__ import annotations

from typing import Literal, NamedTuple

from envs.core.record import Record
from envs.core.trace import PlanRecord, Rating
from envs.core.trace_store import Trace

Source = Literal["checks", "rater"]
"""Whose word on the milestones: `checks`, the task's state checkers once more at the end; `rater`, the run's rater,
with whom a milestone once done stays done."""


class Observed(Record):
    """What one judged trace says about its milestones."""

    task: str
    """`suite/name`, without the seed."""
    milestones: tuple[str, ...]
    """Their ids, in order; at least one."""
    texts: tuple[str, ...]
    z: tuple[bool, ...]
    """Done at the end."""
    reached: tuple[int | None, ...]
    """After how many steps each was first done, 0 = from the start; None where the rater never saw it done."""
    steps: int
    success: bool

    @property
    def score(self) -> float:
        return sum(self.z) / len(self.z)

    def without_last(self) -> Observed | None:
        """Without the last milestone, which in a task's own list often is the outcome itself; None if it was alone."""
        if len(self.z) == 1:
            return None
        fields = ("milestones", "texts", "z", "reached")
        return self.model_copy(update={name: getattr(self, name)[:-1] for name in fields})


class Unfit(NamedTuple):
    """Why a trace says nothing about its milestones."""

    reason: Literal["unfinished", "broken", "unjudged", "judged by a model", "no milestones"]


def observe(trace: Trace, source: Source) -> Observed | Unfit:
    """What *trace* says; only the checker's word counts as the outcome."""
    header, footer = trace.header, trace.footer
    if footer is None:
        return Unfit("unfinished")
    if footer.outcome in ("broken", "unjudged"):
        return Unfit(footer.outcome)
    if footer.judged_by != "checker":
        return Unfit("judged by a model")
    if source == "checks":
        z = tuple(check.achieved for check in footer.milestone_checks or ())
        named = {m.id: m.text for m in header.reference_milestones}
    else:
        z = footer.rating.z if footer.rating else ()
        named = {m.id: m.text for m in trace.plans[-1].milestones} if trace.plans else {}
    if not z:
        return Unfit("no milestones")
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
    """After how many steps each milestone, by its id, was first seen done; 0 = from the start."""
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
