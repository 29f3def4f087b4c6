"""AdaGUI-R1's thought rewards in miniature: on which puzzles does a policy think, and what does it cost? Resumable.

    python -m benchmarks.grpo_thoughts play --out runs/thoughts
    python -m benchmarks.grpo_thoughts table --out runs/thoughts --write docs/results/grpo_thoughts

Sudokus of 4 x 4 with two to ten empty cells. A thought has the grids on the way: in each, every cell is filled in that
has one candidate in the grid before; easy puzzles need none. The start is a Llama of a million parameters that has
cloned right answers to 8,000 puzzles, half of them with a thought and half with an empty one, so it thinks at random.
Arms learn from 1,000 puzzles by 200 updates of 8 prompts x 16 completions, and are measured on 300 others, greedily.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, Final

from agent.cli.options import parse_seeds
from benchmarks.grpo_arms import Sets, Setting, completed_runs, play, read_results, table
from benchmarks.percentages import share
from benchmarks.toy_models.puzzles import fresh_model, puzzle_tokenizer, reference_answer, reference_rows
from envs.core.errors import BadInput
from training.engine.settings import Compute, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.grpo.evaluation import measure
from training.grpo.examples import Example
from training.grpo.puzzles.sudoku import candidates, sudoku
from training.grpo.rewards import SudokuTarget
from training.grpo.run import load_start
from training.grpo.settings import parse_settings

SIZE: Final = 4
EMPTY: Final = (2, 4, 6, 8, 10)
"""Most empty cells of a puzzle; fewer where the solution would not be unique."""
CLONED, LEARNED, MEASURED = 8_000, 1_000, 300
EPOCHS: Final = 8
_ADAGUI: Final = {"kind": "adagui", "thought_tokens": 40}  # two grids
ARMS: Final[dict[str, dict[str, Any]]] = {
    "answer_only": {"reward": {"thought": "none"}},
    "uniform": {"reward": {"hard_above": 0.01}},
    "cosine": {},
    "delta": {"reward": {"thought": "delta"}},
    "accuracy": {"reward": {"thought": "accuracy"}},
    "success_only": {"reward": {"thought_for": "correct"}},
}
"""What each changes of AdaGUI-R1's reward. `uniform` rewards a long thought at every level of difficulty."""
BASE: Final[dict[str, Any]] = {
    "recipe": "adagui",
    "reward": _ADAGUI,
    "group": 16,
    "answer_tokens": 96,
    "micro_rows": 128,
    "steps": 200,
    "held_out_every": 50,
    "kl": 0.02,
    "optimization": {"learning_rate": 1e-4, "warmup": 0.05, "batch_rows": 128},
    "compute": {"max_tokens": 512, "threads": 1, "cpu": True, "lora": "none"},
}


def puzzles(count: int, seed: int, apart_from: Sequence[Example] = ()) -> tuple[Example, ...]:
    """Distinct sudokus of differing difficulty, without the prompts of *apart_from*."""
    rng, taken = Random(seed), {example.messages for example in apart_from}
    made: dict[str, Example] = {}
    while len(made) < count:
        text, target = sudoku(rng, SIZE, rng.choice(EMPTY) / SIZE**2)
        example = Example(name=f"sudoku-{seed}-{len(made)}", messages=(("user", text),), target=target)
        if example.messages not in taken:
            made.setdefault(text, example)
    return tuple(made.values())


def sudoku_of(example: Example) -> SudokuTarget:
    assert isinstance(example.target, SudokuTarget)
    return example.target


def empty_cells(example: Example) -> int:
    return sum(line.count("0") for line in sudoku_of(example).puzzle)


def _at_most(example: Example) -> int:
    """The least of `EMPTY` that is not below the example's empty cells."""
    return next(count for count in EMPTY if empty_cells(example) <= count)


def thought(target: SudokuTarget) -> str:
    """The grids on the way to the answer: in each, every cell with one candidate in the grid before is filled in."""
    grid, grids = [[int(digit) for digit in line] for line in target.puzzle], list[str]()
    while empty := [(row, column) for row in range(SIZE) for column in range(SIZE) if not grid[row][column]]:
        forced = [(row, column) for row, column in empty if len(candidates(grid, row, column)) == 1]
        for row, column in forced or empty:
            grid[row][column] = int(target.solution[row][column])
        grids.append("\n".join("".join(map(str, line)) for line in grid))
    return "\n\n".join(grids[:-1])


def start_of(out: Path) -> Path:
    """The checkpoint that every arm begins from; made where it is not there."""
    folder = out / "start"
    if not (folder / "model").exists():
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer = puzzle_tokenizer("<think>", "</think>")
        if not (folder / "fresh").exists():
            fresh_model(folder / "fresh", tokenizer=tokenizer)
        rng = Random(0)

        def answer(example: Example) -> str:
            inner = thought(sudoku_of(example)) if rng.random() < 0.5 else ""
            return f"<think>{inner}</think>{reference_answer(example)}"

        optimization = Optimization(learning_rate=1e-3, schedule="cosine", warmup=0.05, epochs=EPOCHS, batch_rows=32)
        job = SupervisedJob(
            start=folder / "fresh", optimization=optimization, compute=Compute(threads=1, max_tokens=512)
        )
        supervised(job, reference_rows(puzzles(CLONED, 1_000), tokenizer, answer), folder)
    return folder / "model"


def by_empty_cells(out: Path, measured: Sequence[Example]) -> Iterator[tuple[str, int, dict[int, tuple[float, float]]]]:
    """For the start and each arm and seed: by number of empty cells, what is solved and the tokens of a thought."""
    groups = {count: [one for one in measured if _at_most(one) == count] for count in EMPTY}
    models = {("start", 0): out / "start" / "model"}
    models |= {(run.arm, run.seed): out / run.arm / f"seed-{run.seed}" / "model" for run in completed_runs(out)}
    settings = parse_settings(BASE, "base")
    for (arm, seed), folder in models.items():
        cache = folder / "by_empty_cells.json"
        if not cache.exists():
            model, processor = load_start(folder, vision=False)
            found = {count: measure(model, processor, group, settings) for count, group in groups.items()}
            cells = {count: (one.correct.value, one.thought_tokens) for count, one in found.items()}
            cache.write_text(json.dumps(cells), encoding="utf-8")
        read: Mapping[str, list[float]] = json.loads(cache.read_text(encoding="utf-8"))
        yield arm, seed, {int(count): (solved, tokens) for count, (solved, tokens) in read.items()}


def difficulty_table(out: Path, measured: Sequence[Example]) -> str:
    """Markdown, means over seeds: share solved and thought tokens by number of empty cells."""
    arms: dict[str, list[dict[int, tuple[float, float]]]] = {}
    for arm, _, cells in by_empty_cells(out, measured):
        arms.setdefault(arm, []).append(cells)
    lines = [f"| arm | {' | '.join(f'{count} empty' for count in EMPTY)} |", f"|{' --- |' * (1 + len(EMPTY))}"]
    for arm, seeds in arms.items():
        cells = [
            f"{share(fmean(one[count][0] for one in seeds))}, {fmean(one[count][1] for one in seeds):.1f}"
            for count in EMPTY
        ]
        lines.append(f"| {arm} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["play", "table"])
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--earlier", type=Path, help="JSON file of a table whose runs are added")
    given = parser.parse_args()
    try:
        cloned = puzzles(CLONED, 1_000)
        learned = puzzles(LEARNED, 2_000, cloned)
        measured = puzzles(MEASURED, 7, (*cloned, *learned))
        if given.what == "play":
            setting = Setting(start_of(given.out), Sets(learned, measured), BASE, ARMS, given.out)
            play(setting, given.arms.split(","), parse_seeds(given.seeds))
            return
        write = given.write or given.out / "table"
        table(read_results(given.out, measured, given.earlier, order=ARMS), write, baseline="answer_only")
        if not (given.out / "start" / "model").exists():
            print(f"no table by empty cells: {given.out} has no models", file=sys.stderr)
            return
        text = difficulty_table(given.out, measured)
        with write.with_suffix(".md").open("a", encoding="utf-8") as file:
            file.write("\n" + text)
        print(text)
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
