"""Selects the next phase's tasks: tasks similar to failed ones, variants for categories that the pool hardly covers,
and a few random ones (MiRA paper, Alg. 2, lines 11-13).

The selection is a pure function of its arguments and does not depend on the order of failures and pool. Every listed
task has the reason for its choice.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from training.loop.curriculum.failures import Failed, deduplicated
from training.loop.curriculum.pool import Candidate, order, task_text
from training.loop.curriculum.settings import CurriculumSettings
from training.loop.curriculum.similarity import Similarity
from training.loop.curriculum.task_list import Counts, Explored, Listed, Rare, Retried, Selection, Similar
from training.loop.curriculum.trainable import check_trainable
from training.loop.curriculum.variants import Variant

SCORE_DIGITS = 6
"""Scores are rounded to this number of digits: sums of floats can depend on their order."""


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

    *seen*: tasks played before; only retries are listed again. *variants*: synthetic tasks for rare categories
    (:func:`training.loop.curriculum.variants_of`); without them rare categories are filled from the rest of the pool.
    *succeeded*: tasks solved at least once; with it, a category without any success counts as rare, too.

    Unused shares go to similar tasks and then to exploration, never to tasks that were seen. If the whole pool was
    played, the selection is smaller than *size*, and `counts.missing` has the difference.

    Raises BadInput where the pool, the variants or the failures hold a task that may not be trained on, or *size* is
    below 1.
    """
    if size < 1:
        raise BadInput(f"a phase needs at least one task, not {size}")
    _check(failure.task for failure in failed)
    _check(candidate.ref for candidate in pool)
    _check(variant.candidate.ref for variant in variants)
    rng = random.Random(f"curriculum {seed}")
    failures = deduplicated(failed)
    rng.shuffle(failures)
    retried = failures[: math.floor(settings.retry_share * size)]
    new = min(size - len(retried), settings.max_new)
    explore, rare = math.floor(settings.explore_share * new), math.floor(settings.rare_share * new)

    chosen = _Chosen(set(seen).union(failure.task for failure in failed))
    fresh = unplayed(pool, chosen.taken)
    near = _nearest(failures, fresh, similarity, settings)
    chosen.add(near, upto=new - explore - rare)
    categories = _rare_categories(failures, pool, chosen.listed, settings, succeeded)
    chosen.add(_rare(categories, failures, fresh, variants, chosen.taken), upto=len(chosen.listed) + rare)
    chosen.add(near, upto=new - explore)
    chosen.add((_listed(candidate, Explored()) for candidate in rng.sample(fresh, len(fresh))), upto=new)
    tasks = (*chosen.listed, *(_retry(failure) for failure in retried))
    return Selection(tasks=tasks, counts=_counts(tasks, size), failures=len(failures), rare_categories=categories)


class _Chosen:
    """A growing list of tasks without played ones and without duplicates."""

    def __init__(self, taken: set[TaskRef]) -> None:
        self.taken = taken
        self.listed: list[Listed] = []

    def add(self, tasks: Iterable[Listed], *, upto: int) -> None:
        """Adds from *tasks*, in their order, until the list has *upto* entries."""
        rest = (task for task in tasks if task.task not in self.taken)
        while len(self.listed) < upto and (task := next(rest, None)) is not None:
            self.taken.add(task.task)
            self.listed.append(task)


def _check(refs: Iterable[TaskRef]) -> None:
    for ref in refs:
        check_trainable(ref)


def unplayed(pool: Sequence[Candidate], played: Collection[TaskRef]) -> list[Candidate]:
    """The pool's tasks that are not in *played*, deduplicated, in the order of tasks."""
    excluded = set(played)
    rest = {candidate.ref: candidate for candidate in pool if candidate.ref not in excluded}
    return sorted(rest.values(), key=lambda candidate: order(candidate.ref))


def _nearest(
    failures: Sequence[Failed], fresh: Sequence[Candidate], similarity: Similarity, settings: CurriculumSettings
) -> list[Listed]:
    """In each round every failure nominates its next most similar task, at most `top_k` in all.

    A budget that is too small is thus spread over the failures. A task that was nominated before is not listed again.
    With `overlap` the failure nominates nothing else in the round; without it, it nominates its next task.
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
    """(index in *fresh*, score) for each failure, the most similar first, ties in the order of tasks. Tasks without a
    positive score are left out. Equal texts are compared once."""
    queries = [task_text(failure.task, failure.instruction) for failure in failures]
    offered = [task_text(candidate.ref, candidate.instruction) for candidate in fresh]
    rows, columns = sorted(set(queries)), sorted(set(offered))
    scores = similarity.scores(rows, columns).round(SCORE_DIGITS)
    column = {text: place for place, text in enumerate(columns)}
    places = np.array([column[text] for text in offered], dtype=np.intp)
    lines: dict[str, list[tuple[int, float]]] = {}
    for text, row in zip(rows, scores, strict=True):
        values = row[places]
        best = np.argsort(-values, kind="stable")
        best = best[values[best] > 0]  # also drops NaN
        best = best[: settings.top_k] if settings.overlap else best
        lines[text] = list(zip(best.tolist(), values[best].tolist(), strict=True))
    return [lines[text] for text in queries]


def _rare_categories(
    failures: Sequence[Failed],
    pool: Sequence[Candidate],
    similar: Sequence[Listed],
    settings: CurriculumSettings,
    succeeded: Collection[TaskRef] | None,
) -> tuple[str, ...]:
    """Categories whose share of *similar* is below `rare_below` of their share of the failures, or without any success;
    the one with the largest gap first."""
    fails = Counter(failure.category for failure in failures)
    got = Counter(task.category for task in similar)
    due = {category: count * len(similar) / len(failures) for category, count in fails.items()}
    lacking = {category for category in fails if not similar or got[category] < settings.rare_below * due[category]}
    if succeeded is not None:
        solved = {(ref.suite, ref.name) for ref in succeeded}
        names = {(failure.task.suite, failure.task.name): failure.category for failure in failures}
        names |= {(candidate.ref.suite, candidate.ref.name): candidate.category for candidate in pool}
        lacking |= fails.keys() - {category for name, category in names.items() if name in solved}
    return tuple(sorted(lacking, key=lambda category: (got[category] - due[category], category)))


def _rare(
    categories: Sequence[str],
    failures: Sequence[Failed],
    fresh: Sequence[Candidate],
    variants: Sequence[Variant],
    taken: Collection[TaskRef],
) -> Iterator[Listed]:
    """Yields one task of each rare category in turn until all are used up: variants of its failures, then pool tasks.

    *taken* grows while the caller iterates; tasks in it are skipped.
    """
    lines = [_line(category, failures, fresh, variants) for category in categories]
    while lines:
        for line in list(lines):
            task = next((task for task in line if task.task not in taken), None)
            if task is None:
                lines.remove(line)
            else:
                yield task


def _line(
    category: str, failures: Sequence[Failed], fresh: Sequence[Candidate], variants: Sequence[Variant]
) -> Iterator[Listed]:
    """For one rare category: the first variant of each failure, then the second …, then the pool's tasks."""
    own = [failure for failure in failures if failure.category == category]
    by_failure: Mapping[TaskRef, list[Variant]] = {failure.task: [] for failure in own}
    for variant in sorted(variants, key=lambda item: order(item.candidate.ref)):
        if variant.of in by_failure:
            by_failure[variant.of].append(variant)
    for turn in range(max((len(line) for line in by_failure.values()), default=0)):
        for task in by_failure:
            for variant in by_failure[task][turn : turn + 1]:
                yield _listed(variant.candidate, Rare(category=category, failure=task, how=variant.how))
    for candidate in fresh:
        if candidate.category == category:
            yield _listed(candidate, Rare(category=category, failure=own[0].task, how="pool"))


def _listed(candidate: Candidate, reason: Similar | Rare | Explored) -> Listed:
    return Listed(task=candidate.ref, instruction=candidate.instruction, category=candidate.category, reason=reason)


def _retry(failure: Failed) -> Listed:
    return Listed(
        task=failure.task,
        instruction=failure.instruction,
        category=failure.category,
        reason=Retried(failure=failure.failure),
    )


def _counts(tasks: Iterable[Listed], size: int) -> Counts:
    kinds = Counter(task.reason.kind for task in tasks)
    return Counts(
        similar=kinds["similar"],
        rare=kinds["rare"],
        explore=kinds["explore"],
        retry=kinds["retry"],
        missing=size - kinds.total(),
    )
