"""What the traces of a phase say about its tasks: which failed and how, which succeeded, how each was worded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from envs.core.record import Record
from envs.core.tasks import TaskRef
from envs.core.trace_store import Summary, Trace
from training.loop.curriculum.pool import order


class Failed(Record):
    """A task that the policy failed: one of the set F of Alg. 2."""

    task: TaskRef
    instruction: str
    category: str
    """The task's, e.g. `shop`."""
    failure: str
    """Category of the failure (MiRA paper, §4), e.g. `stuck_midway`; empty where it was not analysed."""


@dataclass(frozen=True, slots=True)
class PlayedTasks:
    """The judged episodes of some traces, by task. Broken and unfinished ones say nothing about the policy."""

    failed: tuple[Failed, ...]
    """Tasks of which an attempt failed, each once with its last failure, in the order of tasks."""
    succeeded: frozenset[TaskRef]
    """Tasks of which an attempt succeeded; of several attempts at one task, some may fail."""
    instructions: tuple[tuple[TaskRef, str], ...]
    """For :func:`training.loop.curriculum.worded`; of every trace, the broken ones too."""

    @property
    def seen(self) -> frozenset[TaskRef]:
        """Every task that was judged at least once."""
        return self.succeeded.union(one.task for one in self.failed)


def load_or_compute(failed: Iterable[Failed]) -> list[Failed]:
    """Each failed task once, in the order of tasks, whatever the order of *failed*."""
    ordered = sorted(failed, key=lambda one: (order(one.task), one.instruction, one.failure), reverse=True)
    return sorted({one.task: one for one in ordered}.values(), key=lambda one: order(one.task))


def played(traces: Iterable[Trace | Summary]) -> PlayedTasks:
    """Of *traces*, oldest first, only headers and footers are looked at: summaries are enough."""
    failed: dict[TaskRef, Failed] = {}
    succeeded: set[TaskRef] = set()
    instructions: dict[TaskRef, str] = {}
    for trace in traces:
        header, footer = trace.header, trace.footer
        instructions.setdefault(header.task, header.instruction)
        if footer is None:
            continue
        if footer.outcome == "success":
            succeeded.add(header.task)
        elif footer.outcome == "failure":
            failed[header.task] = Failed(
                task=header.task,
                instruction=header.instruction,
                category=header.category,
                failure=footer.failure.category if footer.failure else "",
            )
    in_order = sorted(failed.values(), key=lambda one: order(one.task))
    return PlayedTasks(tuple(in_order), frozenset(succeeded), tuple(instructions.items()))
