"""The next phase's tasks: those most like what failed, variants for categories that the pool hardly covers, and a few
that were drawn blindly (MiRA paper, Alg. 2, lines 11-13).

A pure function of its arguments: neither the order of failures and pool nor anything outside decides. Every task that
is listed says why it is there.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from training.loop.curriculum.failures import Failed, load_or_compute
from training.loop.curriculum.pool import Candidate, order, text_of
from training.loop.curriculum.settings import CurriculumSettings
from training.loop.curriculum.similarity import Similarity
from training.loop.curriculum.task_list import Counts, Explored, Listed, Rare, Retried, Selection, Similar
from training.loop.curriculum.trainable import check_trainable
from training.loop.curriculum.variants import Variant

SCORE_DIGITS = 6
"""Scores that agree to so many digits are equal: sums of floats may differ by their order."""


def next_tasks(
    failed: Sequence[Failed],
    seen: Collection[TaskRef],
    pool: Sequence[Candidate],
    similarity: Similarity,
    settings: CurriculumSettings,
    *,
    size: int,
    seed: int,
    variants: Sequence[Variant] = (),
    succeeded: Collection[TaskRef] | None = None,
) -> Selection:
    """At most *size* different tasks, in a fixed order: similar ones, rare ones, explored ones, retries.

    *seen*: tasks played before; only retries are listed again. *variants*: synthesised tasks for rare categories
    (:func:`training.loop.curriculum.variants_of`); without them rare categories are filled from the rest of the pool.
    *succeeded*: tasks solved at least once; with it, a category that never saw a success is a rare one, too.

    A share that finds no tasks goes to the similar ones and then to exploration, never to tasks that were seen: where
    all of the pool was played, the selection is smaller than *size*, and `counts.missing` says by how much.

    Raises BadInput where the pool, the variants or the failures hold a task that may not be trained on, or *size* is
    below 1.
    """
    if size < 1:
        raise BadInput(f"a phase needs at least one task, not {size}")
    _check(one.task for one in failed)
    _check(one.ref for one in pool)
    _check(one.candidate.ref for one in variants)
    rng = random.Random(f"curriculum {seed}")
    failures = load_or_compute(failed)
    rng.shuffle(failures)
    retried = failures[: math.floor(settings.retry_share * size)]
    new = min(size - len(retried), settings.max_new)
    explore, rare = math.floor(settings.explore_share * new), math.floor(settings.rare_share * new)

    chosen = _Chosen(set(seen).union(one.task for one in failed))
    fresh = unplayed(pool, chosen.taken)
    near = _nearest(failures, fresh, similarity, settings)
    chosen.add(near, upto=new - explore - rare)
    categories = _rare_categories(failures, pool, chosen.listed, settings, succeeded)
    chosen.add(_rare(categories, failures, fresh, variants, chosen.taken), upto=len(chosen.listed) + rare)
    chosen.add(near, upto=new - explore)
    chosen.add((_listed(one, Explored()) for one in rng.sample(fresh, len(fresh))), upto=new)
    tasks = (*chosen.listed, *(_retry(one) for one in retried))
    return Selection(tasks=tasks, counts=_counts(tasks, size), failures=len(failures), rare_categories=categories)


class _Chosen:
    """The list as it grows: nothing that was played, nothing twice."""

    def __init__(self, taken: set[TaskRef]) -> None:
        self.taken = taken
        self.listed: list[Listed] = []

    def add(self, tasks: Iterable[Listed], *, upto: int) -> None:
        """Adds of *tasks*, in their order, until *upto* are listed in all."""
        rest = (one for one in tasks if one.task not in self.taken)
        while len(self.listed) < upto and (one := next(rest, None)) is not None:
            self.taken.add(one.task)
            self.listed.append(one)


def _check(refs: Iterable[TaskRef]) -> None:
    for ref in refs:
        check_trainable(ref)


def unplayed(pool: Sequence[Candidate], played: Collection[TaskRef]) -> list[Candidate]:
    """The pool's tasks that are not among *played*, each once, in the order of tasks."""
    gone = set(played)
    return sorted({one.ref: one for one in pool if one.ref not in gone}.values(), key=lambda one: order(one.ref))


def _nearest(
    failures: Sequence[Failed], fresh: Sequence[Candidate], similarity: Similarity, settings: CurriculumSettings
) -> list[Listed]:
    """Round after round, every failure names its next most similar task, at most `top_k` in all.

    So a budget that is too small for all is spread over the failures. A task that was named before is not listed again:
    with `overlap` the failure's turn is over, without it the failure goes on to its next one.
    """
    lines = [iter(line) for line in _ranked(failures, fresh, similarity, settings)]
    first: dict[int, tuple[Failed, float, int]] = {}
    named_by: Counter[int] = Counter()
    for rank in range(1, settings.top_k + 1):
        for failure, line in zip(failures, lines, strict=True):
            for place, score in line:
                named_by[place] += 1
                new = place not in first
                if new:
                    first[place] = (failure, score, rank)
                if new or settings.overlap:
                    break
    return [
        _listed(fresh[place], Similar(failure=failure.task, score=score, rank=rank, named_by=named_by[place]))
        for place, (failure, score, rank) in first.items()
    ]


def _ranked(
    failures: Sequence[Failed], fresh: Sequence[Candidate], similarity: Similarity, settings: CurriculumSettings
) -> list[list[tuple[int, float]]]:
    """(place in *fresh*, score) for each failure, the most alike first, ties in the order of tasks; nothing that is not
    alike at all or was not compared. Equal texts are compared once."""
    asked = [text_of(one.task, one.instruction) for one in failures]
    offered = [text_of(one.ref, one.instruction) for one in fresh]
    rows, columns = sorted(set(asked)), sorted(set(offered))
    scores = similarity.scores(rows, columns).round(SCORE_DIGITS)
    column = {text: place for place, text in enumerate(columns)}
    places = np.array([column[text] for text in offered], dtype=np.intp)
    lines: dict[str, list[tuple[int, float]]] = {}
    for text, row in zip(rows, scores, strict=True):
        values = row[places]
        best = np.argsort(-values, kind="stable")
        best = best[values[best] > 0]  # NaN is not
        best = best[: settings.top_k] if settings.overlap else best
        lines[text] = list(zip(best.tolist(), values[best].tolist(), strict=True))
    return [lines[text] for text in asked]


def _rare_categories(
    failures: Sequence[Failed],
    pool: Sequence[Candidate],
    similar: Sequence[Listed],
    settings: CurriculumSettings,
    succeeded: Collection[TaskRef] | None,
) -> tuple[str, ...]:
    """Categories whose part of *similar* is below `rare_below` of their part of the failures, or that never succeeded;
    the one that lacks most first."""
    fails = Counter(one.category for one in failures)
    got = Counter(one.category for one in similar)
    due = {category: count * len(similar) / len(failures) for category, count in fails.items()}
    lacking = {category for category in fails if not similar or got[category] < settings.rare_below * due[category]}
    if succeeded is not None:
        solved = {(ref.suite, ref.name) for ref in succeeded}
        names = {(one.task.suite, one.task.name): one.category for one in failures}
        names |= {(one.ref.suite, one.ref.name): one.category for one in pool}
        lacking |= fails.keys() - {category for name, category in names.items() if name in solved}
    return tuple(sorted(lacking, key=lambda category: (got[category] - due[category], category)))


def _rare(
    categories: Sequence[str],
    failures: Sequence[Failed],
    fresh: Sequence[Candidate],
    variants: Sequence[Variant],
    taken: Collection[TaskRef],
) -> Iterator[Listed]:
    """One task of each rare category in turn, as long as there are any: variants of its failures, then of the pool.

    *taken* grows while the caller takes: a category whose next task is gone gives the one after it.
    """
    lines = [_line(category, failures, fresh, variants) for category in categories]
    while lines:
        for line in list(lines):
            found = next((one for one in line if one.task not in taken), None)
            if found is None:
                lines.remove(line)
            else:
                yield found


def _line(
    category: str, failures: Sequence[Failed], fresh: Sequence[Candidate], variants: Sequence[Variant]
) -> Iterator[Listed]:
    """For one rare category: the first variant of each failure, then the second …, then the pool's tasks."""
    own = [one for one in failures if one.category == category]
    made: Mapping[TaskRef, list[Variant]] = {one.task: [] for one in own}
    for variant in sorted(variants, key=lambda one: order(one.candidate.ref)):
        if variant.of in made:
            made[variant.of].append(variant)
    for turn in range(max((len(line) for line in made.values()), default=0)):
        for task in made:
            for variant in made[task][turn : turn + 1]:
                yield _listed(variant.candidate, Rare(category=category, failure=task, how=variant.how))
    for one in fresh:
        if one.category == category:
            yield _listed(one, Rare(category=category, failure=own[0].task, how="pool"))


def _listed(one: Candidate, reason: Similar | Rare | Explored) -> Listed:
    return Listed(task=one.ref, instruction=one.instruction, category=one.category, reason=reason)


def _retry(one: Failed) -> Listed:
    return Listed(
        task=one.task, instruction=one.instruction, category=one.category, reason=Retried(failure=one.failure)
    )


def _counts(tasks: Iterable[Listed], size: int) -> Counts:
    kinds = Counter(one.reason.kind for one in tasks)
    return Counts(
        similar=kinds["similar"],
        rare=kinds["rare"],
        explore=kinds["explore"],
        retry=kinds["retry"],
        missing=size - kinds.total(),
    )
