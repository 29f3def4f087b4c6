"""The pool: every task instance that a phase may play, in a fixed order, without a single held-out one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from training.loop.curriculum.trainable import check_name, names_of, training_seeds

if TYPE_CHECKING:
    from envs.suites.sites.suite import Drawer


@dataclass(frozen=True, slots=True)
class Candidate:
    """One task instance that can be played."""

    ref: TaskRef
    instruction: str
    """As worded; where the suite knows that only once the task runs, a sample, or "" until one was seen."""
    category: str
    known: bool = True
    """The instruction is this very instance's."""


async def pool_of(
    suite: str, *, names: Sequence[str] | None, seeds: range, size: int, drawer: Drawer | None = None
) -> tuple[Candidate, ...]:
    """At most *size* training tasks: round after round, one of each name, seeds rising; the same ones each time.

    *names*: None for all that may be trained on. *seeds*: the part of :func:`training.loop.curriculum.training_seeds`
    to draw from; a site's templates that offer fewer distinct tasks drop out of the later rounds. *drawer* saves
    drawing a site's tasks again where the caller has one.

    Raises BadInput for an evaluation seed, a held-out or unknown name, and a suite without training tasks; ResetFailed
    where a site cannot be built.
    """
    allowed = training_seeds(suite)
    if size < 1 or seeds.step < 1 or not seeds:
        raise BadInput(f"a pool needs a size of at least 1 and rising seeds, not {size} and {seeds}")
    if seeds.start not in allowed or seeds[-1] not in allowed:
        raise BadInput(f"a pool of {suite} may hold seeds from {allowed.start} to {allowed[-1]}, not {seeds}")
    wanted = tuple(dict.fromkeys(names)) if names is not None else names_of(suite)
    for name in wanted:
        check_name(suite, name)
    if suite == "sites":
        return await _sites(wanted, seeds, size, drawer)
    return _miniwob(wanted, seeds, size)


def text_of(ref: TaskRef, instruction: str) -> str:
    """What is compared of a task: its name in words and its instruction, the same for failed and pool tasks.

    The name is the suite's own word for what is to be done, and all there is of a task whose instruction is not known
    before it runs.
    """
    name = ref.name.replace("-", " ").replace("_", " ")
    return f"{name}: {instruction}" if instruction else name


def worded(pool: Sequence[Candidate], told: Iterable[tuple[TaskRef, str]]) -> tuple[Candidate, ...]:
    """*pool* with what traces *told* of instructions: an instance's own, or else that of the task's lowest seed told.

    Instructions that are known already stay as they are.
    """
    own: dict[TaskRef, str] = {}
    samples: dict[tuple[str, str], str] = {}
    for ref, instruction in sorted(told, key=lambda one: (order(one[0]), one[1])):
        own.setdefault(ref, instruction)
        samples.setdefault((ref.suite, ref.name), instruction)

    def said(one: Candidate) -> Candidate:
        if one.known:
            return one
        if one.ref in own:
            return replace(one, instruction=own[one.ref], known=True)
        return replace(one, instruction=samples.get((one.ref.suite, one.ref.name), one.instruction))

    return tuple(said(one) for one in pool)


def order(ref: TaskRef) -> tuple[str, str, int]:
    """Sorts tasks by suite, name and seed, the seed as a number."""
    return ref.suite, ref.name, ref.seed


async def _sites(names: Sequence[str], seeds: range, size: int, drawer: Drawer | None) -> tuple[Candidate, ...]:
    from envs.suites.sites.catalog import template
    from envs.suites.sites.suite import Drawer

    drawer = drawer or Drawer()
    offered = {name: len(await drawer.candidates(template(name))) for name in names}
    rounds = (seed for seed in range(seeds.start, min(seeds.stop, max(offered.values(), default=0)), seeds.step))
    refs = (TaskRef(suite="sites", name=name, seed=seed) for seed in rounds for name in names if seed < offered[name])
    drawn = [(ref, await drawer.instance(ref)) for ref in islice(refs, size)]
    return tuple(Candidate(ref, one.instruction, one.template.category) for ref, one in drawn)


def _miniwob(names: Sequence[str], seeds: range, size: int) -> tuple[Candidate, ...]:
    from envs.suites.miniwob.catalog import category

    refs = (TaskRef(suite="miniwob", name=name, seed=seed) for seed in seeds for name in names)
    return tuple(Candidate(ref, "", category(ref.name), known=False) for ref in islice(refs, size))
