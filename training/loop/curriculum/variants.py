"""Synthesised tasks: perturbations of failed ones, each with the checker that its suite ships.

The paper lets a large model write new instructions (App. A.3) and a model judge them; nothing then says that such a
task can be done, or when it is done. Here a perturbation stays inside the template of the failed task: the same task in
other words, or the next instance of the same template. So every synthesised task has a checker and an oracle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from envs.core.tasks import TaskRef
from training.loop.curriculum.failures import Failed, load_or_compute
from training.loop.curriculum.pool import Candidate
from training.loop.curriculum.trainable import check_trainable, training_seeds

if TYPE_CHECKING:
    from envs.suites.sites.suite import Drawer

How = Literal["wording", "instance"]


@dataclass(frozen=True, slots=True)
class Variant:
    """A task made from a failed one."""

    candidate: Candidate
    of: TaskRef
    """The failed task."""
    how: How
    """`wording`: the same parameters in other words. `instance`: the same template with other parameters."""


async def variants_of(
    failed: Sequence[Failed], taken: Collection[TaskRef], *, each: int = 2, drawer: Drawer | None = None
) -> tuple[Variant, ...]:
    """Up to *each* variants of every failed task, none of them in *taken* (seen, or in the pool) and none twice.

    Other wordings come first, then further instances. A template that is used up gives fewer. Raises BadInput where a
    failed task is held out: then its failure should not have been looked at, either.
    """
    from envs.suites.sites.suite import Drawer

    drawer = drawer or Drawer()
    seeds: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for ref in taken:
        seeds[ref.suite, ref.name].add(ref.seed)
    found: list[Variant] = []
    for one in load_or_compute(failed):
        check_trainable(one.task)
        used = seeds[one.task.suite, one.task.name]
        made = await _sites(one, used, drawer, each) if one.task.suite == "sites" else _miniwob(one, used, each)
        used.update(variant.candidate.ref.seed for variant in made)
        found += made
    return tuple(found)


async def _sites(one: Failed, used: Collection[int], drawer: Drawer, each: int) -> list[Variant]:
    """None of the seeds in *used*. Seeds below `distinct` are different tasks, `seed + n·distinct` the n-th other
    wording of one of them."""
    from envs.suites.sites.catalog import template

    of = template(one.task.name)
    distinct, wordings = len(await drawer.candidates(of)), len(of.wordings)
    check_trainable(one.task, distinct)
    said, base = divmod(one.task.seed, distinct)
    first = training_seeds("sites").start
    reworded: list[tuple[int, How]] = [(base + (said + n) % wordings * distinct, "wording") for n in range(1, wordings)]
    others: list[tuple[int, How]] = [(seed, "instance") for seed in (*range(base + 1, distinct), *range(first, base))]
    found: list[Variant] = []
    for seed, how in reworded + others:
        if seed not in used and len(found) < each:
            ref = one.task.model_copy(update={"seed": seed})
            drawn = await drawer.instance(ref)
            found.append(Variant(Candidate(ref, drawn.instruction, of.category), one.task, how))
    return found


def _miniwob(one: Failed, used: Collection[int], each: int) -> list[Variant]:
    """Seeds above every one that the task was ever played with: a page is drawn from its seed alone."""
    after = max((*used, one.task.seed)) + 1
    refs = [one.task.model_copy(update={"seed": seed}) for seed in range(after, after + each)]
    return [Variant(Candidate(ref, "", one.category, known=False), one.task, "instance") for ref in refs]
