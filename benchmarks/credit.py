"""How well the advantages of each arm agree with the task's solver, step by step: no policy is trained.

    python -m benchmarks.credit runs/credit/* --out runs/credit-critics
    python -m benchmarks.credit runs/credit/* --out runs/credit-critics --arms mira,mira+targets.alpha=0.6 --json FILE

One set of rollouts (`benchmarks.credit_rollouts`), whose steps the solver has judged. Critics are trained as in the
first phase of `mira train mira`, once for all arms that have the same; then each arm's advantages and its selection of
rows are computed. `NAME+KEY=VALUE+…` is an arm with other settings. A step that the arm leaves out has the advantage 0;
an arm that clones gives each step that it keeps the advantage 1. Killed, the same command continues.

- AUROC: a right step's advantage is above a wrong one's, ties half; within a task, the mean over tasks.
- right, down: of the right steps, those that are pushed down. wrong, up: of the wrong steps, those that are pulled up.
- pressure: the part of all |A| that lies on steps where its sign is right; weighted as in the actor's loss.

Intervals resample tasks (names), whose episodes are alike; a difference of two arms is resampled as one number.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.credit_rollouts import RUN, labels_of
from envs.core.errors import BadInput
from judges.statistics import Estimate, average_ranks, clustered_mean, resampled
from training.data.cache import rows_digest
from training.data.rows import RowEncoder
from training.data.trajectories import Trajectory
from training.engine.checkpoints import load_tokenizer
from training.loop.advantage_columns import select_rows
from training.loop.critics import score_rows, train_critics
from training.loop.data import PhaseData, ReplayCounts, read_runs
from training.loop.parts import write_json
from training.loop.phase_context import PhaseContext
from training.loop.settings import LoopSettings, load_settings
from training.mira.credit import FailuresFrom, first_counted, step_weights
from training.mira.targets import row_advantages

ARMS = (
    "filtered_bc",
    "digirl",
    "digirl_shaped",
    "webrl_paper",
    "mira",
    "mira+targets.alpha=0.6",
    "mira_milestones",
    "mira_key_step",
    "mira_credit",
    "mira_last_milestone",
    "mira_undiscounted",
    "mira_per_trajectory",
    "mira_group",
    "mira_group_value",
    "digirl+value.milestones=true",
    "digirl_shaped+value.milestones=true+potential.milestones=true",
    "mira_milestones+actor.failures_from=last_milestone",
    "mira_milestones+actor.failures_from=key_step",
    "mira_milestones+targets.mix=0.8",
    "mira_milestones+targets.mix=0.8+targets.shape_failures=true+targets.alpha=0.6",
    "mira_milestones+targets.mix=0.8+targets.shape_failures=true+targets.alpha=0.6+actor.failures_from=last_milestone",
)
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Judged(NamedTuple):
    """The rows that a solver has judged, N of them."""

    places: tuple[int, ...]
    """Their indices among all rows."""
    right: Bools
    tasks: NDArray[np.str_]
    """Name of each row's task."""
    won: Bools
    """The row's episode succeeded."""


def read(folders: Sequence[Path], policy: Path, max_tokens: int) -> tuple[PhaseData, Judged]:
    """Raises BadInput where a folder holds no rollouts, or none of their steps is judged."""
    trajectories = read_runs([folder / RUN for folder in folders]).kept
    known = {(label.task, label.attempt, label.step): label.right for folder in folders for label in labels_of(folder)}
    encoded = RowEncoder(load_tokenizer(policy), max_tokens).encode(trajectories)
    zeros, allowed = (0.0,) * len(encoded.rows), (True,) * len(encoded.rows)
    data = PhaseData(trajectories, len(trajectories), encoded.rows, zeros, allowed, ReplayCounts())
    places: list[int] = []
    right: list[bool] = []
    for place, row in enumerate(encoded.rows):
        episode = trajectories[row.trajectory]
        label = known.get((episode.task.id, episode.attempt, episode.decisions[row.time].step))
        if label is not None:
            places.append(place)
            right.append(label)
    if not places:
        raise BadInput("no step of these rollouts is judged by a solver")
    owners = [trajectories[encoded.rows[place].trajectory] for place in places]
    names = np.array([owner.task.name for owner in owners])
    return data, Judged(tuple(places), np.array(right), names, np.array([owner.success for owner in owners]))


def settings_of(config: Path, arm: str) -> LoopSettings:
    """The settings of `NAME+KEY=VALUE+…`. Raises BadInput."""
    name, *changes = arm.split("+")
    return load_settings(config, [f"arm={name}", "compute.save_minutes=0.5", *changes])


def critics_of(settings: LoopSettings, data: PhaseData, out: Path) -> tuple[Sequence[float], Sequence[float]]:
    """(P, V) of every row; critics that were trained on the same rows with the same settings below *out* are used
    again."""
    both = settings.model_copy(update={"arm": "mira", "targets": settings.targets.model_copy(update={"alpha": 0.3})})
    learned = {
        "value": both.value.model_dump(),
        "potential": both.potential.model_dump(),
        "discount": 1.0 if both.targets.value_target == "outcome" else both.targets.gamma,
        "start": both.start,
        "rows": rows_digest(data.rows),
        "outcomes": [[episode.success, *episode.done] for episode in data.trajectories],
    }
    key = hashlib.sha256(json.dumps(learned, sort_keys=True).encode()).hexdigest()[:12]
    stored = out / key / "scores.json"
    if not stored.exists():
        context = PhaseContext(both, 1, out / key, Path(both.start), {}, Path(both.start), ())
        with context.running():
            potential, value = score_rows(context, data, train_critics(context, data))
        write_json(stored, {"potential": potential, "value": value})
    scores = json.loads(stored.read_text(encoding="utf-8"))
    return scores["potential"], scores["value"]


def effective(settings: LoopSettings, data: PhaseData, out: Path) -> tuple[Floats, Floats]:
    """(advantage of every row as the arm's actor uses it, its weight in the loss)."""
    potential, value = critics_of(settings, data, out) if settings.needs_value else ([0.0] * len(data.rows),) * 2
    advantages = row_advantages(data.trajectories, data.rows, potential, value, settings.targets)
    actor = settings.actor
    kept = select_rows(actor.keep, data.rows, data.trajectories, advantages, value, failures_from=actor.failures_from)
    weights = step_weights([data.rows[place] for place in kept], actor.normalizer)
    result, weight = np.zeros(len(data.rows)), np.ones(len(data.rows))
    result[kept] = 1.0 if actor.objective.kind == "cloning" else np.array(advantages)[kept]
    weight[kept] = 1.0 if weights is None else np.array(weights)
    return result, weight


def auroc(scores: Floats, right: Bools) -> float:
    """NaN without both right and wrong steps."""
    count = int(right.sum())
    if count in (0, len(right)):
        return float("nan")
    ranks = average_ranks(scores.tolist())[right]
    return float((ranks.sum() - count * (count + 1) / 2) / (count * (len(right) - count)))


class Columns(NamedTuple):
    """What is measured of one arm, N judged rows."""

    advantage: Floats
    weight: Floats
    right: Bools
    tasks: NDArray[np.str_]


Measure = Callable[[Columns], float]


def _within(one: Columns) -> float:
    found = [auroc(one.advantage[one.tasks == name], one.right[one.tasks == name]) for name in np.unique(one.tasks)]
    known = [value for value in found if not np.isnan(value)]
    return fmean(known) if known else float("nan")


def _pressure(one: Columns) -> float:
    force = np.abs(one.advantage) * one.weight
    agrees = (one.advantage > 0) == one.right
    return float(force[agrees].sum() / force.sum()) if force.sum() else float("nan")


def _share(of: Bools, holds: Bools) -> float:
    return float(holds[of].mean()) if of.any() else float("nan")


MEASURES: dict[str, Measure] = {
    "AUROC": lambda one: auroc(one.advantage, one.right),
    "AUROC within a task": _within,
    "right, down": lambda one: _share(one.right, one.advantage < 0),
    "wrong, up": lambda one: _share(~one.right, one.advantage > 0),
    "pressure": _pressure,
}


def over_tasks(measure: Measure, one: Columns, resamples: int, less: Columns | None = None) -> Estimate:
    """*measure* with the percentile bootstrap's interval over tasks; a task that is drawn twice counts as two.

    *less*: another arm's columns of the same rows, whose measure is subtracted in every resample.
    """
    if less is not None:
        both = _stacked(one, less)
        return over_tasks(lambda rows: measure(_half(rows, 0)) - measure(_half(rows, 1)), both, resamples)
    draw, names = np.random.default_rng(0), np.unique(one.tasks)
    places = {name: np.flatnonzero(one.tasks == name) for name in names}
    samples: list[float] = []
    for _ in range(resamples):
        drawn = draw.choice(names, size=len(names))
        chosen = np.concatenate([places[name] for name in drawn])
        labels = np.concatenate([np.full(len(places[name]), f"{name} {i}") for i, name in enumerate(drawn)])
        samples.append(measure(Columns(one.advantage[chosen], one.weight[chosen], one.right[chosen], labels)))
    known = np.array([value for value in samples if not np.isnan(value)])
    value = measure(one)
    if np.isnan(value) or not len(known):
        return Estimate(value=None, why_not="nothing to measure")
    return resampled(value, known, len(names))


def _stacked(one: Columns, other: Columns) -> Columns:
    """Columns of N rows with two advantages and weights each, (N, 2)."""
    return one._replace(
        advantage=np.stack((one.advantage, other.advantage), 1), weight=np.stack((one.weight, other.weight), 1)
    )


def _half(both: Columns, place: int) -> Columns:
    return both._replace(advantage=both.advantage[:, place], weight=both.weight[:, place])


def columns_of(judged: Judged, advantage: Floats, weight: Floats, only: Bools | None = None) -> Columns:
    places = np.array(judged.places)
    some = np.ones(len(places), dtype=bool) if only is None else only
    return Columns(advantage[places][some], weight[places][some], judged.right[some], judged.tasks[some])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rollouts", type=Path, nargs="+", help="folders of benchmarks.credit_rollouts")
    parser.add_argument("-c", "--config", type=Path, default=Path("training/configs/tiny-miniwob-long.toml"))
    parser.add_argument("--out", type=Path, required=True, help="folder of the critics")
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--baseline", default="digirl", help="arm whose AUROC is subtracted from the others'")
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    try:
        arms = {arm: settings_of(args.config, arm) for arm in args.arms.split(",")}
        first = next(iter(arms.values()))
        data, judged = read(args.rollouts, Path(first.start), first.compute.max_tokens)
    except BadInput as error:
        parser.error(str(error))
    print(summary(data.trajectories, judged), flush=True)
    print(counted(data, judged, args.resamples), flush=True)
    print(f"| arm | {' | '.join(MEASURES)} | AUROC in failures | AUROC less {args.baseline} |")
    print("|---" * (len(MEASURES) + 3) + "|", flush=True)
    base = columns_of(judged, *effective(settings_of(args.config, args.baseline), data, args.out))
    record: dict[str, dict[str, dict[str, object]]] = {}
    for arm, settings in arms.items():
        advantage, weight = effective(settings, data, args.out)
        whole = columns_of(judged, advantage, weight)
        estimates = {name: over_tasks(measure, whole, args.resamples) for name, measure in MEASURES.items()}
        lost = columns_of(judged, advantage, weight, ~judged.won)
        estimates["AUROC in failures"] = over_tasks(MEASURES["AUROC"], lost, args.resamples)
        estimates["difference"] = over_tasks(MEASURES["AUROC"], whole, args.resamples, less=base)
        record[arm] = {name: value.model_dump() for name, value in estimates.items()}
        print(f"| {arm} | {' | '.join(map(cell, estimates.values()))} |", flush=True)
    if args.json is not None:
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def summary(trajectories: Sequence[Trajectory], judged: Judged) -> str:
    won = sum(trajectory.success for trajectory in trajectories)
    lost = judged.right[~judged.won]
    return (
        f"{len(trajectories)} episodes, {won} solved; {len(judged.right)} steps, {int(judged.right.sum())} right, "
        f"in failures {len(lost)}, {int(lost.sum())} right\n"
    )


def counted(data: PhaseData, judged: Judged, resamples: int) -> str:
    """A table: of failures' steps, how many are right before and from where `actor.failures_from` counts them."""
    lines = ["| failures' steps | steps | right, 95 % over tasks |", "|---|---|---|"]
    chosen: tuple[FailuresFrom, ...] = ("start", "key_step", "last_milestone")
    for failures_from in chosen:
        first = [first_counted(trajectory, failures_from) for trajectory in data.trajectories]
        rows = [data.rows[place] for place in judged.places]
        after = np.array([row.time >= first[row.trajectory] for row in rows])
        for name, some in (("left out", ~after & ~judged.won), ("counted", after & ~judged.won)):
            right = [float(value) for value in judged.right[some]]
            if right:
                estimate = clustered_mean(right, judged.tasks[some].tolist(), resamples=resamples, seed=0)
                lines.append(f"| `{failures_from}`: {name} | {len(right)} | {cell(estimate)} |")
    return "\n".join(lines) + "\n"


def cell(value: Estimate) -> str:
    if value.value is None:
        return ""
    return f"{value.value:.2f}" + ("" if value.low is None else f" ({value.low:.2f} to {value.high:.2f})")


if __name__ == "__main__":
    main()
