"""Synthetic tasks that keep the checker of their suite: variants within the template of a failed task.

A variant is another wording, or the next instance of the same template, so it has a checker and an oracle. Instructions
that a model writes, as in the paper (App. A.3), are made by :mod:`training.loop.curriculum.writing`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from envs.core.tasks import TaskRef
from training.loop.curriculum.failures import Failed, deduplicated
from training.loop.curriculum.pool import Candidate
from training.loop.curriculum.trainable import check_trainable, training_seeds

if TYPE_CHECKING:
    from envs.suites.sites.suite import InstanceSampler

How = Literal["wording", "instance", "written"]


@dataclass(frozen=True, slots=True)
class Variant:
    """A task made from a failed one."""

    candidate: Candidate
    of: TaskRef
    """The failed task."""
    how: How
    """`wording`: the same parameters in other words. `instance`: the same template with other parameters. `written`:
    an instruction that a model wrote (:mod:`training.loop.curriculum.writing`)."""


async def variants_of(
    failed: Sequence[Failed], taken: Collection[TaskRef], *, each: int = 2, sampler: InstanceSampler | None = None
) -> tuple[Variant, ...]:
    """Up to *each* variants of every failed task, without duplicates and without tasks in *taken* (seen or pooled).

    Other wordings come first, then further instances. A template that is used up gives fewer. Raises BadInput where a
    failed task is held out.
    """
    from envs.suites.sites.suite import InstanceSampler

    sampler = sampler or InstanceSampler()
    seeds: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for ref in taken:
        seeds[ref.suite, ref.name].add(ref.seed)
    variants: list[Variant] = []
    for failure in deduplicated(failed):
        task = failure.task
        check_trainable(task)
        used = seeds[task.suite, task.name]
        own = await _sites(task, used, sampler, each) if task.suite == "sites" else _instances(failure, used, each)
        used.update(variant.candidate.ref.seed for variant in own)
        variants += own
    return tuple(variants)


async def _sites(task: TaskRef, used: Collection[int], sampler: InstanceSampler, each: int) -> list[Variant]:
    """Variants with seeds outside *used*. Seeds below `distinct` are distinct tasks; `seed + n·distinct` is the n-th
    other wording of one of them."""
    from envs.suites.sites.catalog import template

    own = template(task.name)
    distinct, wordings = len(await sampler.candidates(own)), len(own.wordings)
    check_trainable(task, distinct)
    wording, base = divmod(task.seed, distinct)
    first = training_seeds("sites").start
    reworded: list[tuple[int, How]] = [
        (base + (wording + n) % wordings * distinct, "wording") for n in range(1, wordings)
    ]
    others: list[tuple[int, How]] = [(seed, "instance") for seed in (*range(base + 1, distinct), *range(first, base))]
    variants: list[Variant] = []
    for seed, how in reworded + others:
        if seed not in used and len(variants) < each:
            ref = task.model_copy(update={"seed": seed, "written": ""})
            drawn = await sampler.instance(ref)
            variants.append(Variant(Candidate(ref, drawn.instruction, own.category), task, how))
    return variants


def _instances(failure: Failed, used: Collection[int], each: int) -> list[Variant]:
    """Variants with seeds above all that were played: an instance, as a MiniWoB++ page, depends on its seed only."""
    allowed = training_seeds(failure.task.suite)
    after = max((*used, failure.task.seed)) + 1 - allowed.start
    seeds = allowed[after : after + each]
    refs = [failure.task.model_copy(update={"seed": seed, "written": ""}) for seed in seeds]
    return [Variant(Candidate(ref, "", failure.category, known=False), failure.task, "instance") for ref in refs]
