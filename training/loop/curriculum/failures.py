"""Reads from the traces of a phase which tasks failed and how, which succeeded, and their instructions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from envs.core.record import Record
from envs.core.tasks import TaskRef
from envs.core.trace_store import Summary, Trace
from training.loop.curriculum.pool import order


class Failed(Record):
    """A task that the policy failed: an element of the set F of Alg. 2."""

    task: TaskRef
    instruction: str
    category: str
    """The task's, e.g. `shop`."""
    failure: str
    """Category of the failure (MiRA paper, §4), e.g. `stuck_midway`; empty without an analysis."""


@dataclass(frozen=True, slots=True)
class PlayedTasks:
    """The judged episodes of some traces, by task. Broken and unfinished episodes are ignored."""

    failed: tuple[Failed, ...]
    """Tasks with a failed attempt, each once with its last failure, in the order of tasks."""
    succeeded: frozenset[TaskRef]
    """Tasks with a successful attempt; other attempts at the same task may have failed."""
    instructions: tuple[tuple[TaskRef, str], ...]
    """For :func:`training.loop.curriculum.with_instructions`; of every trace, including broken ones."""

    @property
    def seen(self) -> frozenset[TaskRef]:
        """Every task that was judged at least once."""
        return self.succeeded.union(failure.task for failure in self.failed)


def deduplicated(failed: Iterable[Failed]) -> list[Failed]:
    """Each failed task once, in the order of tasks. The result does not depend on the order of *failed*."""
    ordered = sorted(failed, key=lambda item: (order(item.task), item.instruction, item.failure), reverse=True)
    return sorted({item.task: item for item in ordered}.values(), key=lambda item: order(item.task))


def played_tasks(traces: Iterable[Trace | Summary]) -> PlayedTasks:
    """Collects the tasks of *traces*, oldest first. Only headers and footers are read, so summaries are enough."""
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
    in_order = sorted(failed.values(), key=lambda failure: order(failure.task))
    return PlayedTasks(tuple(in_order), frozenset(succeeded), tuple(instructions.items()))
