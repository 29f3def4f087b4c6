"""SSL against binary and continuous rewards on puzzles: every arm and seed from one start; resumable.

    python -m benchmarks.grpo_puzzles play --kind sudoku --out runs/grpo
    python -m benchmarks.grpo_puzzles table --kind sudoku --out runs/grpo --write docs/results/grpo_sudoku

The start is a Llama of a million parameters that has cloned right answers until a quarter or so of its own are right.
An arm learns from 1,000 puzzles by 200 updates of 16 prompts x 8 completions, and is measured on 300 others, greedily.
One core: 1.1 s an update of sudoku, 0.7 s of maze.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

from agent.cli.options import parse_seeds
from envs.errors import BadInput
from envs.plain_values import merged
from judges.statistics import Estimate
from training.evaluation import Trial, compare_arms
from training.evaluation.arms import ArmResult
from training.evaluation.curves import Curve, write_curves
from training.grpo.examples import Example
from training.grpo.running import HeldOut, improve, read_held_out
from training.grpo.settings import GrpoSettings, parse_settings
from training.puzzles import Kind, kind_of, make_puzzles
from training.stages.settings import Compute, Optimization
from training.stages.sft import SupervisedJob, supervised
from training.starts.puzzles import fresh_model, puzzle_tokenizer, reference_rows

ARMS: Final[dict[str, dict[str, Any]]] = {
    "binary": {"proximity": "none"},
    "continuous": {"proximity": "continuous"},
    "ssl": {},
    "ssl_k2": {"zones": 2},
    "ssl_k8": {"zones": 8},
    "ssl_paths": {"maze_cells": "paths"},
}
"""What each changes of SSL's reward. An arm `NAME@40` learns from the first 40 % of the puzzles."""
BASE: Final[dict[str, Any]] = {
    "recipe": "ssl",
    "answer_tokens": 32,
    "micro_rows": 128,
    "steps": 200,
    "held_out_every": 25,
    "kl": 0.02,
    "optimization": {"learning_rate": 1e-4, "warmup": 0.05, "batch_rows": 128},
    "compute": {"max_tokens": 512, "threads": 1, "cpu": True},
}


class World(NamedTuple):
    """One kind of puzzle."""

    size: int
    cloned: int
    """Puzzles whose answers the start has cloned."""
    epochs: int


WORLDS: Final[dict[Kind, World]] = {
    "maze": World(size=5, cloned=4_000, epochs=4),
    "sudoku": World(size=4, cloned=1_500, epochs=3),
    "pattern": World(size=3, cloned=20_000, epochs=4),
}
LEARNED, MEASURED = 1_000, 300


def sets_of(kind: Kind) -> tuple[tuple[Example, ...], tuple[Example, ...], tuple[Example, ...]]:
    """(cloned, learned from, measured on): none is in two of them."""
    world = WORLDS[kind]
    cloned = make_puzzles(kind, world.cloned, seed=1_000, size=world.size)
    learned = make_puzzles(kind, LEARNED, seed=2_000, size=world.size, apart_from=cloned)
    return cloned, learned, make_puzzles(kind, MEASURED, seed=7, size=world.size, apart_from=(*cloned, *learned))


def start_of(kind: Kind, out: Path) -> Path:
    """The checkpoint that every arm begins from; made where it is not there."""
    folder = out / kind / "start"
    if not (folder / "model").exists():
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "fresh").exists():
            fresh_model(folder / "fresh")
        how = Optimization(
            learning_rate=1e-3, schedule="cosine", warmup=0.05, epochs=WORLDS[kind].epochs, batch_rows=32
        )
        job = SupervisedJob(start=folder / "fresh", optimization=how, compute=Compute(threads=1, max_tokens=512))
        supervised(job, reference_rows(sets_of(kind)[0], puzzle_tokenizer()), folder)
    return folder / "model"


def settings_of(arm: str, seed: int) -> GrpoSettings:
    """Raises BadInput."""
    name = arm.partition("@")[0]
    if name not in ARMS:
        raise BadInput(f"unknown arm {arm!r}; there are {', '.join(ARMS)}")
    return parse_settings(merged(BASE, {"reward": ARMS[name], "seed": seed}), arm)


def play(kind: Kind, arms: Sequence[str], seeds: Sequence[int], out: Path) -> None:
    """Seed after seed, so that a table of few seeds is whole early."""
    start, (_, learned, measured) = start_of(kind, out), sets_of(kind)
    for seed in seeds:
        for arm in arms:
            share = int(arm.partition("@")[2] or 100)
            begun = time.monotonic()
            print(f"{kind}, {arm}, seed {seed}", flush=True)
            found = improve(
                learned[: len(learned) * share // 100],
                str(start),
                out / kind / arm / f"seed-{seed}",
                settings_of(arm, seed),
                held_out=measured,
                tell=lambda line: print(f"  {line}", flush=True),
            )
            took = time.monotonic() - begun
            print(f"  {took:.0f} s, {found.held_out[-1].measured.correct}", flush=True)


def found_in(kind: Kind, out: Path) -> Iterator[tuple[str, int, tuple[HeldOut, ...]]]:
    """(arm, seed, measurements) of every run that has ended."""
    for path in sorted((out / kind).glob("*/seed-*/model")):
        yield path.parent.parent.name, int(path.parent.name.removeprefix("seed-")), read_held_out(path.parent)


def table(kind: Kind, out: Path, write: Path) -> None:
    """Writes WRITE.md, .json and .svg. Raises BadInput where nothing has ended."""
    runs = list(found_in(kind, out))
    if not runs:
        raise BadInput(f"no run of {kind!r} in {str(out)!r} has ended")
    names = [example.name for example in sets_of(kind)[2]]
    trials = [
        Trial(arm, seed, name, 1, name in run[at].measured.solved)
        for label, at in (("start", 0), ("", -1))
        for own, seed, run in runs
        for name in names
        for arm in (label or own,)
    ]
    firsts = {(one.arm, one.seed, one.task): one for one in trials}
    arms = dict.fromkeys(one.arm for one in firsts.values())
    made = compare_arms(list(firsts.values()), baseline="binary" if "binary" in arms else None)
    text = "\n".join([*HEADER, *(_row(one, runs) for one in made.arms)]) + "\n"
    told = [
        {"arm": arm, "seed": seed, "held_out": [one.model_dump(mode="json") for one in run]} for arm, seed, run in runs
    ]
    write.parent.mkdir(parents=True, exist_ok=True)
    write.with_suffix(".json").write_text(json.dumps(told, separators=(",", ":")) + "\n", encoding="utf-8")
    write.with_suffix(".md").write_text(text, encoding="utf-8")
    curves = [
        Curve(
            arm,
            seed,
            {
                f"{kind}: solved, held out": {one.update: one.measured.correct.value or 0.0 for one in run},
                f"{kind}: wrong and near": {one.update: one.measured.near_misses for one in run},
            },
        )
        for arm, seed, run in runs
    ]
    write_curves(curves, write.with_suffix(".svg"), "update")
    print(text)


HEADER: Final = (
    "| arm | seeds | solved | to binary (tasks and seeds drawn) | wrong and near | answer tokens | by seed |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)


def _row(one: ArmResult, runs: Sequence[tuple[str, int, tuple[HeldOut, ...]]]) -> str:
    ends = [run[0 if one.arm == "start" else -1].measured for arm, _, run in runs if one.arm in (arm, "start")]
    cells = (
        one.arm,
        str(len(one.seeds)),
        f"{one.success.value or 0:.1%}",
        "" if one.change is None else _points(one.change.both),
        f"{fmean(end.near_misses for end in ends):.0%}",
        f"{fmean(end.answer_tokens for end in ends):.1f}",
        ", ".join(f"{seed.success:.1%}" for seed in one.seeds),
    )
    return f"| {' | '.join(cells)} |"


def _points(found: Estimate) -> str:
    value = f"{100 * (found.value or 0):+.1f}"
    low, high = found.low, found.high
    return value if low is None or high is None else f"{value} ({100 * low:+.1f}..{100 * high:+.1f})"


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["play", "table"])
    parser.add_argument("--kind", required=True)
    parser.add_argument("--arms", default="binary,continuous,ssl,ssl_k2,ssl_k8")
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    try:
        kind = kind_of(given.kind)
        if given.what == "play":
            play(kind, given.arms.split(","), parse_seeds(given.seeds), given.out)
        else:
            table(kind, given.out, given.write or given.out / f"{kind}")
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
