"""What the GRPO benchmarks share: arms and seeds from one start, and their table."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

from benchmarks.percentages import points, share
from envs.core.errors import BadInput
from envs.core.plain_values import merged
from training.grpo.examples import Example
from training.grpo.results import HeldOutEvaluation, read_held_out
from training.grpo.run import train_grpo
from training.grpo.settings import parse_settings
from training.loop.evaluation import Trial, compare_arms
from training.loop.evaluation.arms import ArmResult
from training.loop.evaluation.curves import Curve, write_curves


class Sets(NamedTuple):
    """Examples."""

    learned: Sequence[Example]
    measured: Sequence[Example]


class Setting(NamedTuple):
    """What the runs of one table share."""

    start: Path
    sets: Sets
    base: Mapping[str, Any]
    """Settings of every arm."""
    arms: Mapping[str, Mapping[str, Any]]
    """What each changes of them. An arm `NAME@40` learns from the first 40 % of the examples."""
    out: Path


Run = tuple[str, int, tuple[HeldOutEvaluation, ...]]
"""Arm, seed, measurements."""


def play(setting: Setting, arms: Sequence[str], seeds: Sequence[int]) -> None:
    """Seed after seed, so that a table of few seeds is whole early. Raises BadInput."""
    for arm in arms:
        if arm.partition("@")[0] not in setting.arms:
            raise BadInput(f"unknown arm {arm!r}; there are {', '.join(setting.arms)}")
    for seed in seeds:
        for arm in arms:
            name, _, share = arm.partition("@")
            begun = time.monotonic()
            print(f"{arm}, seed {seed}", flush=True)
            learned = setting.sets.learned[: len(setting.sets.learned) * int(share or 100) // 100]
            result = train_grpo(
                learned,
                str(setting.start),
                setting.out / arm / f"seed-{seed}",
                parse_settings(merged(merged(setting.base, setting.arms[name]), {"seed": seed}), arm),
                held_out=setting.sets.measured,
                log=lambda line: print(f"  {line}", flush=True),
            )
            took = time.monotonic() - begun
            print(f"  {took:.0f} s, {result.held_out[-1].measured.correct}", flush=True)


def completed_runs(out: Path) -> Iterator[Run]:
    """Every run that has ended."""
    for path in sorted(out.glob("*/seed-*/model")):
        yield path.parent.parent.name, int(path.parent.name.removeprefix("seed-")), read_held_out(path.parent)


def stored_runs(path: Path) -> Iterator[Run]:
    """The runs of a table's JSON file."""
    for row in json.loads(path.read_text(encoding="utf-8")):
        yield row["arm"], row["seed"], tuple(HeldOutEvaluation.model_validate(one) for one in row["held_out"])


def table(
    out: Path, write: Path, measured: Sequence[Example], baseline: str = "binary", earlier: Path | None = None
) -> None:
    """Writes WRITE.md, .json and .svg; differences are to the arm *baseline*, if it is there. *earlier*: the JSON file
    of a table whose runs are added, played from the same examples elsewhere; a run in *out* replaces one of them.
    Raises BadInput where nothing has ended."""
    by_name = {(arm, seed): (arm, seed, run) for arm, seed, run in (stored_runs(earlier) if earlier else ())}
    by_name |= {(arm, seed): (arm, seed, run) for arm, seed, run in completed_runs(out)}
    runs = [by_name[name] for name in sorted(by_name)]
    if not runs:
        raise BadInput(f"no run in {str(out)!r} has ended")
    names = [example.name for example in measured]
    trials: dict[tuple[str, int, str], Trial] = {}
    for arm, seed, run in runs:
        for label, at in (("start", 0), (arm, -1)):
            solved = set(run[at].measured.solved)
            trials |= {(label, seed, name): Trial(label, seed, name, 1, name in solved) for name in names}
    arms = {one.arm for one in trials.values()}
    made = compare_arms(list(trials.values()), baseline=baseline if baseline in arms else None)
    text = "\n".join([*_header(made.baseline), *(_row(one, runs) for one in made.arms)]) + "\n"
    rows = [
        {"arm": arm, "seed": seed, "held_out": [one.model_dump(mode="json") for one in run]} for arm, seed, run in runs
    ]
    write.parent.mkdir(parents=True, exist_ok=True)
    write.with_suffix(".json").write_text(json.dumps(rows, separators=(",", ":")) + "\n", encoding="utf-8")
    write.with_suffix(".md").write_text(text, encoding="utf-8")
    write_curves([_curve(*run) for run in runs], write.with_suffix(".svg"), "update")
    print(text)


def _curve(arm: str, seed: int, run: Sequence[HeldOutEvaluation]) -> Curve:
    return Curve(
        arm,
        seed,
        {
            "held out, solved": {one.update: one.measured.correct.value or 0.0 for one in run},
            "held out, proximity": {one.update: one.measured.proximity for one in run},
            "held out, wrong and near": {one.update: one.measured.near_misses for one in run},
        },
    )


_COLUMNS: Final = (
    "arm",
    "seeds",
    "solved",
    "to {}",
    "proximity",
    "wrong and near",
    "answer tokens",
    "of a thought",
    "by seed",
)


def _header(baseline: str) -> tuple[str, str]:
    names = " | ".join(_COLUMNS).format(baseline)
    return f"| {names} |", f"|{' --- |' * len(_COLUMNS)}"


def _row(one: ArmResult, runs: Sequence[Run]) -> str:
    ends = [run[0 if one.arm == "start" else -1].measured for arm, _, run in runs if one.arm in (arm, "start")]
    cells = (
        one.arm,
        str(len(one.seeds)),
        share(one.success.value or 0),
        "" if one.change is None else points(one.change.both),
        f"{fmean(end.proximity for end in ends):.2f}",
        share(fmean(end.near_misses for end in ends)),
        f"{fmean(end.answer_tokens for end in ends):.1f}",
        f"{fmean(end.thought_tokens for end in ends):.1f}",
        ", ".join(share(seed.success) for seed in one.seeds),
    )
    return f"| {' | '.join(cells)} |"
