"""Arms of an experiment against each other: arms × training seeds × task instances × attempts.

An arm's success is the mean over its seeds of the mean over tasks of the mean over attempts: each seed and each task
counts once, however many attempts there are. All numbers of one table are over the same tasks, those judged at least
once in *every* arm and seed; the others are counted and named. So a difference is exactly that of the means beside it.

Three intervals of a difference, all at 95 %, answer different questions:

- `tasks`: other tasks of the same kind, the same trained models: bootstrap over tasks, which stay paired between arms;
- `seeds`: training again, the same tasks: Student's t over seeds, paired where both arms have the same seeds (they
  start from the same checkpoint), else Welch's; needs two seeds;
- `both`: tasks and seeds are drawn in each resample, crossed (the pigeonhole bootstrap, Owen 2007: it errs on the
  wide side; `benchmarks/interval_coverage.py` measures it). With one seed it is that of the tasks.

Tasks are drawn one instance at a time, or all instances of a template together (`cluster="template"`: the claim is
about new templates, and instances of one template are alike).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from envs.core.errors import BadInput
from envs.core.record import Record
from judges.statistics import Estimate, Floats, resampled
from training.loop.evaluation.reading import PlayedEpisode

Cluster = Literal["task", "template"]


class Trial(NamedTuple):
    """One episode of an experiment."""

    arm: str
    seed: int
    """Of training."""
    task: str
    """`TaskRef.id`: suite/name/seed of the instance."""
    attempt: int
    success: bool | None
    """None: broken or not judged, so nothing is known; counted apart, in no rate."""


class SeedResult(Record):
    """One training seed of an arm."""

    seed: int
    success: float
    """Mean over the common tasks."""


class Change(Record):
    """An arm minus the baseline, with the three intervals of the module."""

    value: float
    both: Estimate
    tasks: Estimate
    seeds: Estimate


class ArmResult(Record):
    """One arm."""

    arm: str
    phase: int | None = None
    """Of training, after which it was measured; None where nobody said."""
    seeds: tuple[SeedResult, ...]
    episodes: int
    unknown: int
    """Of them broken or not judged: in no rate."""
    success: Estimate
    """Mean over seeds; interval of tasks and seeds together."""
    change: Change | None
    """None for the baseline itself."""


class ArmsTable(Record):
    """The table of an experiment."""

    baseline: str
    cluster: Cluster
    tasks: int
    """Task instances that all numbers are over."""
    clusters: int
    left_out: tuple[str, ...]
    """Tasks that some arm and seed did not play, or that was never judged there."""
    arms: tuple[ArmResult, ...]
    """In the order in which they first come."""


class _Arm(NamedTuple):
    """What the draws are made over."""

    seeds: tuple[int, ...]
    means: Floats
    """(seeds,): success of each."""
    samples: Floats
    """(resamples,): the arm's success with tasks and seeds drawn."""
    task_samples: Floats
    """(resamples,): with tasks drawn alone."""


_Cells = dict[str, dict[int, dict[str, list[bool]]]]
"""Success of judged attempts by arm, seed, task."""


def compare_arms(
    trials: Iterable[Trial],
    *,
    baseline: str | None = None,
    cluster: Cluster = "task",
    resamples: int = 10_000,
    seed: int = 0,
    phases: Mapping[str, int | None] | None = None,
) -> ArmsTable:
    """Every arm, and its difference to *baseline* (default: the first arm); the same seed gives the same numbers.
    *phases*: after which phase of training each arm was measured.

    Raises ValueError where there is no trial, no such baseline, one attempt twice, or no task that is common to all.
    """
    rows = list(trials)
    cells = _cells(rows)
    base = baseline if baseline is not None else next(iter(cells), None)
    if base is None or base not in cells:
        raise ValueError(f"no arm {base!r} among {', '.join(cells) or 'no trials'}")
    tasks, left_out = _common(cells)
    names = [task.rpartition("/")[0] if cluster == "template" else task for task in tasks]
    clusters, places = np.unique(np.asarray(names), return_inverse=True)
    arms = _drawn(cells, tasks, places, resamples, seed)
    units = len(clusters)
    return ArmsTable(
        baseline=base,
        cluster=cluster,
        tasks=len(tasks),
        clusters=units,
        left_out=left_out,
        arms=tuple(
            ArmResult(
                arm=name,
                phase=(phases or {}).get(name),
                seeds=tuple(SeedResult(seed=s, success=float(m)) for s, m in zip(arm.seeds, arm.means, strict=True)),
                episodes=sum(row.arm == name for row in rows),
                unknown=sum(row.arm == name and row.success is None for row in rows),
                success=resampled(float(arm.means.mean()), arm.samples, units),
                change=None if name == base else _change(arm, arms[base], units),
            )
            for name, arm in arms.items()
        ),
    )


def trials_of(arm: str, seed: int, played: Iterable[PlayedEpisode]) -> Iterator[Trial]:
    """The episodes of one arm and training seed. Attempts are numbered anew: several runs may each begin at 1."""
    attempts: Counter[str] = Counter()
    for one in played:
        attempts[one.task.id] += 1
        yield Trial(arm, seed, one.task.id, attempts[one.task.id], one.success if one.judged else None)


def _cells(rows: Sequence[Trial]) -> _Cells:
    cells: _Cells = {}
    seen: set[tuple[str, int, str, int]] = set()
    for row in rows:
        if row[:4] in seen:
            raise ValueError(f"attempt {row.attempt} at {row.task} twice in arm {row.arm!r}, seed {row.seed}")
        seen.add(row[:4])
        won = cells.setdefault(row.arm, {}).setdefault(row.seed, {})
        if row.success is not None:
            won.setdefault(row.task, []).append(row.success)
    return cells


def _common(cells: _Cells) -> tuple[list[str], tuple[str, ...]]:
    """Tasks that every arm and seed has an outcome of, sorted, and the rest."""
    parts = [set(tasks) for seeds in cells.values() for tasks in seeds.values()]
    common = set[str].intersection(*parts)
    if not common:
        raise ValueError("no task was judged in every arm and seed: nothing can be compared")
    return sorted(common), tuple(sorted(set(chain.from_iterable(parts)) - common))


def _drawn(cells: _Cells, tasks: Sequence[str], places: np.ndarray, resamples: int, seed: int) -> Mapping[str, _Arm]:
    """All arms over the same draws of tasks; arms with the same seeds over the same draws of seeds."""
    random = np.random.default_rng(seed)
    sizes = np.bincount(places)
    task_draws = random.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), size=resamples)
    drawn_tasks = task_draws @ sizes
    seed_draws: dict[tuple[int, ...], Floats] = {}
    arms: dict[str, _Arm] = {}
    for name, by_seed in cells.items():
        seeds = tuple(sorted(by_seed))
        shares = np.array([[np.mean(by_seed[s][task]) for task in tasks] for s in seeds])
        sums = np.array([np.bincount(places, weights=row) for row in shares])
        if seeds not in seed_draws:
            counts = random.multinomial(len(seeds), np.full(len(seeds), 1 / len(seeds)), size=resamples)
            seed_draws[seeds] = counts / len(seeds)
        by_draw = (task_draws @ sums.T) / drawn_tasks[:, None]
        both = (by_draw * seed_draws[seeds]).sum(axis=1)
        arms[name] = _Arm(seeds, shares.mean(axis=1), both, by_draw.mean(axis=1))
    return arms


def _change(arm: _Arm, base: _Arm, units: int) -> Change:
    value = float(arm.means.mean() - base.means.mean())
    return Change(
        value=value,
        both=resampled(value, arm.samples - base.samples, units),
        tasks=resampled(value, arm.task_samples - base.task_samples, units),
        seeds=_over_seeds(value, arm, base),
    )


def _over_seeds(value: float, arm: _Arm, base: _Arm) -> Estimate:
    """Student's t on the differences by seed; Welch's where the arms have other seeds. Raises BadInput where there is
    something to compute and scipy is missing."""
    if min(len(arm.seeds), len(base.seeds)) < 2:
        return Estimate(value=value, why_not="needs two seeds in each arm")
    if arm.seeds == base.seeds:
        error = float(np.var(arm.means - base.means, ddof=1)) / len(arm.seeds)
        freedom = len(arm.seeds) - 1.0
    else:
        parts = [(float(np.var(one.means, ddof=1)) / len(one.seeds), len(one.seeds) - 1) for one in (arm, base)]
        error = sum(part for part, _ in parts)
        freedom = error**2 / sum(part**2 / free for part, free in parts) if error else 1.0
    if error == 0:
        return Estimate(value=value, why_not="all seeds are the same")
    half = _student(freedom) * error**0.5
    return Estimate(value=value, low=value - half, high=value + half)


def _student(freedom: float) -> float:
    """The 97.5 % quantile of Student's t."""
    try:
        from scipy.stats import t as student
    except ModuleNotFoundError:
        raise BadInput("an interval over training seeds needs scipy: pip install 'mira-web[training]'") from None
    return float(student.ppf(0.975, freedom))
