"""Compares the arms of an experiment: arms × training seeds × task instances × attempts.

An arm's success is the mean over its seeds of the mean over tasks of the mean over attempts: each seed and each task
has equal weight, whatever the number of attempts. All numbers of one table cover the same tasks, those judged at least
once in *every* arm and seed; the others are listed. So a difference equals the difference of the displayed means.

Three intervals of a difference, all at 95 %, answer different questions:

- `tasks`: other tasks of the same kind, the same trained models: bootstrap over tasks, paired between arms;
- `seeds`: repeated training, the same tasks: Student's t over seeds, paired if both arms have the same seeds (they
  start from the same checkpoint), else Welch's; needs two seeds;
- `both`: tasks and seeds are resampled, crossed (the pigeonhole bootstrap, Owen 2007, which is conservative;
  `benchmarks/interval_coverage.py` measures its coverage). With one seed it equals that of the tasks.

Tasks are resampled one instance at a time, or all instances of a template together (`cluster="template"`: for claims
about new templates, since instances of one template are similar).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from agent.inspection.expert_steps import ExpertSteps
from envs.core.errors import BadInput
from envs.core.record import Record
from judges.statistics import Estimate, Floats, resampled
from models.optional import install_command
from training.loop.evaluation.reading import PlayedEpisode

Cluster = Literal["task", "template"]


class Trial(NamedTuple):
    """One episode of an experiment."""

    arm: str
    seed: int
    """Training seed."""
    task: str
    """`TaskRef.id`: suite/name/seed of the instance."""
    attempt: int
    success: bool | None
    """None: broken or not judged; counted separately and part of no rate."""


class SeedResult(Record):
    """One training seed of an arm."""

    seed: int
    success: float
    """Mean over the common tasks."""


class Change(Record):
    """An arm minus the baseline, with the three intervals of this module."""

    value: float
    both: Estimate
    tasks: Estimate
    seeds: Estimate


class ArmResult(Record):
    """One arm."""

    arm: str
    phase: int | None = None
    """The training phase after which it was evaluated; None if unknown."""
    seeds: tuple[SeedResult, ...]
    episodes: int
    unknown: int
    """Episodes that are broken or not judged: part of no rate."""
    expert: ExpertSteps | None = None
    """Steps of an expert in its judged episodes; None without an expert, or if unknown."""
    success: Estimate
    """Mean over seeds; interval over tasks and seeds together."""
    change: Change | None
    """None for the baseline itself."""


class ArmsTable(Record):
    """The table of an experiment."""

    baseline: str
    cluster: Cluster
    tasks: int
    """Number of common task instances, which all numbers cover."""
    clusters: int
    left_out: tuple[str, ...]
    """Tasks without a judged episode in some arm and seed."""
    arms: tuple[ArmResult, ...]
    """In the order of their first trial."""


class _Arm(NamedTuple):
    """An arm's means and bootstrap samples."""

    seeds: tuple[int, ...]
    means: Floats
    """(seeds,): success of each seed."""
    samples: Floats
    """(resamples,): the arm's success with resampled tasks and seeds."""
    task_samples: Floats
    """(resamples,): the arm's success with resampled tasks."""


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
    experts: Mapping[str, ExpertSteps | None] | None = None,
) -> ArmsTable:
    """Every arm with its difference to *baseline* (default: the first arm). Equal seeds give equal numbers.
    *phases*: the training phase after which each arm was evaluated. *experts*: an expert's steps in each arm.

    Raises ValueError without trials, for an unknown baseline, a duplicate attempt, or without common tasks.
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
                expert=(experts or {}).get(name),
                success=resampled(float(arm.means.mean()), arm.samples, units),
                change=None if name == base else _change(arm, arms[base], units),
            )
            for name, arm in arms.items()
        ),
    )


def trials_of(arm: str, seed: int, played: Iterable[PlayedEpisode]) -> Iterator[Trial]:
    """The episodes of one arm and training seed as trials. Attempts are renumbered, since several runs start at 1."""
    attempts: Counter[str] = Counter()
    for episode in played:
        task = episode.task.id
        attempts[task] += 1
        yield Trial(arm, seed, task, attempts[task], episode.success if episode.judged else None)


def _cells(rows: Sequence[Trial]) -> _Cells:
    cells: _Cells = {}
    seen: set[tuple[str, int, str, int]] = set()
    for row in rows:
        if row[:4] in seen:
            raise ValueError(f"attempt {row.attempt} at {row.task} twice in arm {row.arm!r}, seed {row.seed}")
        seen.add(row[:4])
        outcomes = cells.setdefault(row.arm, {}).setdefault(row.seed, {})
        if row.success is not None:
            outcomes.setdefault(row.task, []).append(row.success)
    return cells


def _common(cells: _Cells) -> tuple[list[str], tuple[str, ...]]:
    """(sorted tasks with an outcome in every arm and seed, the other tasks)."""
    parts = [set(tasks) for seeds in cells.values() for tasks in seeds.values()]
    common = set[str].intersection(*parts)
    if not common:
        raise ValueError("no task was judged in every arm and seed: nothing can be compared")
    return sorted(common), tuple(sorted(set(chain.from_iterable(parts)) - common))


def _drawn(cells: _Cells, tasks: Sequence[str], places: np.ndarray, resamples: int, seed: int) -> Mapping[str, _Arm]:
    """All arms with the same resampled tasks; arms with the same seeds have the same resampled seeds."""
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
    """Student's t on the differences by seed; Welch's if the arms have different seeds. Raises BadInput where scipy is
    needed but missing."""
    if min(len(arm.seeds), len(base.seeds)) < 2:
        return Estimate(value=value, why_not="needs two seeds in each arm")
    if arm.seeds == base.seeds:
        error = float(np.var(arm.means - base.means, ddof=1)) / len(arm.seeds)
        freedom = len(arm.seeds) - 1.0
    else:
        parts = [(float(np.var(side.means, ddof=1)) / len(side.seeds), len(side.seeds) - 1) for side in (arm, base)]
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
        raise BadInput(f"an interval over training seeds needs scipy: {install_command('training')}") from None
    return float(student.ppf(0.975, freedom))
