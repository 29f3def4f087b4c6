"""Builds the pool: the task instances that a phase may play, in a fixed order, without held-out ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from training.loop.curriculum.trainable import check_name, names_of, task_info, training_seeds

if TYPE_CHECKING:
    from envs.suites.sites.suite import InstanceSampler


@dataclass(frozen=True, slots=True)
class Candidate:
    """One task instance that can be played."""

    ref: TaskRef
    instruction: str
    """The instruction. Where it is unknown before the task runs, that of another seed, or "" if there is none yet."""
    category: str
    known: bool = True
    """The instruction is that of this instance."""


async def build_pool(
    suite: str, *, names: Sequence[str] | None, seeds: range, size: int, sampler: InstanceSampler | None = None
) -> tuple[Candidate, ...]:
    """At most *size* training tasks, always the same: one instance of each name per round, with rising seeds.

    *names*: None for all that may be trained on. *seeds*: the part of :func:`training.loop.curriculum.training_seeds`
    to draw from; a site's templates with fewer distinct tasks drop out of later rounds. *sampler*: reuses the site
    instances that it has already drawn.

    Raises BadInput for an evaluation seed, a held-out or unknown name, and a suite without training tasks; ResetFailed
    where a site cannot be built.
    """
    allowed = training_seeds(suite)
    if size < 1 or seeds.step < 1 or not seeds:
        raise BadInput(f"a pool needs a size of at least 1 and rising seeds, not {size} and {seeds}")
    if seeds.start not in allowed or seeds[-1] not in allowed:
        raise BadInput(f"a pool of {suite} may hold seeds from {allowed.start} to {allowed[-1]}, not {seeds}")
    chosen = tuple(dict.fromkeys(names)) if names is not None else names_of(suite)
    for name in chosen:
        check_name(suite, name)
    if suite == "sites":
        return await _sites(chosen, seeds, size, sampler)
    return _unopened(suite, chosen, seeds, size)


def task_text(ref: TaskRef, instruction: str) -> str:
    """The text of a task for comparisons: its name in words and its instruction, for failed and pool tasks alike.

    The name describes the task, and is all that is known where the instruction is unknown before the task runs.
    """
    name = ref.name.replace("-", " ").replace("_", " ")
    return f"{name}: {instruction}" if instruction else name


def with_instructions(pool: Sequence[Candidate], recorded: Iterable[tuple[TaskRef, str]]) -> tuple[Candidate, ...]:
    """Fills in instructions *recorded* in traces: the instance's own, else that of the task's lowest recorded seed.

    Known instructions are kept; those that a model wrote are not the instance's own.
    """
    own: dict[TaskRef, str] = {}
    samples: dict[tuple[str, str], str] = {}
    for ref, instruction in sorted(recorded, key=lambda pair: (order(pair[0]), pair[1])):
        if ref.written:
            continue
        own.setdefault(ref, instruction)
        samples.setdefault((ref.suite, ref.name), instruction)

    def filled(candidate: Candidate) -> Candidate:
        ref = candidate.ref
        if candidate.known:
            return candidate
        if ref in own:
            return replace(candidate, instruction=own[ref], known=True)
        return replace(candidate, instruction=samples.get((ref.suite, ref.name), candidate.instruction))

    return tuple(filled(candidate) for candidate in pool)


def order(ref: TaskRef) -> tuple[str, str, int, str]:
    """Sort key of tasks: suite, name, seed as a number, and the written instruction if any."""
    return ref.suite, ref.name, ref.seed, ref.written


async def _sites(
    names: Sequence[str], seeds: range, size: int, sampler: InstanceSampler | None
) -> tuple[Candidate, ...]:
    from envs.suites.sites.catalog import template
    from envs.suites.sites.suite import InstanceSampler

    sampler = sampler or InstanceSampler()
    offered = {name: len(await sampler.candidates(template(name))) for name in names}
    rounds = (seed for seed in range(seeds.start, min(seeds.stop, max(offered.values(), default=0)), seeds.step))
    refs = (TaskRef(suite="sites", name=name, seed=seed) for seed in rounds for name in names if seed < offered[name])
    drawn = [(ref, await sampler.instance(ref)) for ref in islice(refs, size)]
    return tuple(Candidate(ref, task.instruction, task.template.category) for ref, task in drawn)


def _unopened(suite: str, names: Sequence[str], seeds: range, size: int) -> tuple[Candidate, ...]:
    """Tasks of which only the description is known before they are opened."""
    refs = (TaskRef(suite=suite, name=name, seed=seed) for seed in seeds for name in names)
    infos = {name: task_info(suite, name) for name in names}
    return tuple(
        Candidate(ref, infos[ref.name].sample, infos[ref.name].category, known=False) for ref in islice(refs, size)
    )
