"""SSL against binary and continuous rewards on puzzles: every arm and seed from one start; resumable.

    python -m benchmarks.grpo_puzzles play --kind sudoku --out runs/grpo
    python -m benchmarks.grpo_puzzles table --kind sudoku --out runs/grpo --write docs/results/grpo_sudoku

The start is a Llama of a million parameters that has cloned right answers until a quarter or so of its own are right.
An arm learns from 1,000 puzzles by 200 updates of 16 prompts x 8 completions, and is measured on 300 others, greedily.
One core, beside another program: 1.4 s an update of sudoku, 1.2 s of maze, with what is measured.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent.cli.options import parse_seeds
from benchmarks.grpo_arms import Sets, Setting, play, read_results, table
from benchmarks.toy_models.puzzles import fresh_model, puzzle_tokenizer, reference_rows
from envs.core.errors import BadInput
from training.engine.settings import Compute, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.grpo.examples import Example
from training.grpo.puzzles import Kind, make_puzzles, parse_puzzle_kind

ARMS: Final[dict[str, dict[str, Any]]] = {
    "binary": {"reward": {"proximity": "none"}},
    "continuous": {"reward": {"proximity": "continuous"}},
    "ssl": {},
    "ssl_k2": {"reward": {"zones": 2}},
    "ssl_k8": {"reward": {"zones": 8}},
    "ssl_paths": {"reward": {"maze_cells": "paths"}},
}
"""What each changes of SSL's recipe."""
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


class Puzzles(NamedTuple):
    """One kind of puzzle."""

    size: int
    cloned: int
    """Puzzles whose answers the start has cloned."""
    epochs: int


KINDS: Final[dict[Kind, Puzzles]] = {
    "maze": Puzzles(size=5, cloned=4_000, epochs=2),
    "sudoku": Puzzles(size=4, cloned=1_500, epochs=3),
}
LEARNED, MEASURED = 1_000, 300


def parse_kind(name: str) -> Kind:
    """Raises BadInput for a kind that this benchmark does not have."""
    kind = parse_puzzle_kind(name)
    if kind not in KINDS:
        raise BadInput(f"--kind {kind}: there are {', '.join(KINDS)}")
    return kind


def sets_of(kind: Kind) -> tuple[tuple[Example, ...], tuple[Example, ...], tuple[Example, ...]]:
    """(cloned, learned from, measured on): none is in two of them."""
    puzzles = KINDS[kind]
    cloned = make_puzzles(kind, puzzles.cloned, seed=1_000, size=puzzles.size)
    learned = make_puzzles(kind, LEARNED, seed=2_000, size=puzzles.size, apart_from=cloned)
    return cloned, learned, make_puzzles(kind, MEASURED, seed=7, size=puzzles.size, apart_from=(*cloned, *learned))


def start_of(kind: Kind, out: Path, epochs: int) -> Path:
    """The checkpoint in *out* that every arm begins from, fine-tuned in *epochs*; made where it is not there."""
    folder = out / "start"
    if not (folder / "model").exists():
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "fresh").exists():
            fresh_model(folder / "fresh")
        optimization = Optimization(learning_rate=1e-3, schedule="cosine", warmup=0.05, epochs=epochs, batch_rows=32)
        job = SupervisedJob(
            start=folder / "fresh", optimization=optimization, compute=Compute(threads=1, max_tokens=512)
        )
        supervised(job, reference_rows(sets_of(kind)[0], puzzle_tokenizer()), folder)
    return folder / "model"


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["play", "table"])
    parser.add_argument("--kind", required=True)
    parser.add_argument("--arms", default="binary,continuous,ssl,ssl_k2,ssl_k8")
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument(
        "--start-epochs", type=int, help="epochs of the start's fine-tuning, whose runs get a folder of their own"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--earlier", type=Path, help="JSON file of a table whose runs are added")
    parser.add_argument("--baseline", default="binary", help="arm that the differences are to (%(default)s)")
    given = parser.parse_args()
    try:
        kind = parse_kind(given.kind)
        _, learned, measured = sets_of(kind)
        epochs = given.start_epochs or KINDS[kind].epochs
        out = given.out / (kind if epochs == KINDS[kind].epochs else f"{kind}-{epochs}")
        if given.what == "play":
            setting = Setting(start_of(kind, out, epochs), Sets(learned, measured), BASE, ARMS, out)
            play(setting, given.arms.split(","), parse_seeds(given.seeds))
        else:
            results = read_results(out, measured, given.earlier, order=ARMS)
            table(results, given.write or out / "table", baseline=given.baseline)
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
