"""`mira eval steps`: how often a checkpoint repeats the recorded actions of successes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.output import EXIT_OK, print_json, print_table, stderr, stdout
from agent.cli.tables import Column, FittedTable
from training.cli.messages import importing, log, needs_extra, watcher_of
from training.loop.evaluation.drawing import percent

if TYPE_CHECKING:
    from training.step_accuracy.recorded_steps import RecordedAccuracy


def evaluate_steps(
    runs: Annotated[
        list[Path], typer.Argument(help="Runs, folders of runs, or traces with the actions to repeat.", metavar="RUN")
    ],
    checkpoint: Annotated[
        str,
        typer.Option("--checkpoint", "-m", help="Checkpoint to evaluate: a folder, a GGUF file, or `embedded`."),
    ],
    max_tokens: Annotated[
        int, typer.Option(min=16, help="Longest row, prompt and answer together; a longer prompt loses its middle.")
    ] = 2_048,
    bf16: Annotated[
        bool, typer.Option("--bf16", help="Multiply in bfloat16; faster on a CPU with AVX-512 BF16 and on a GPU.")
    ] = False,
    cpu: Annotated[bool, typer.Option("--cpu", help="Use the CPU even if there is a GPU.")] = False,
    threads: Annotated[int, typer.Option(min=1, help="Number of PyTorch's threads on a CPU.")] = 2,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Evaluate a checkpoint on the steps of recorded successes: exact actions, whole tasks, first wrong argument.

    Needs no browser: the checkpoint sees what the recorded policy saw."""
    from agent.cli.display import RunDisplay

    needs_extra()
    with RunDisplay(stderr, None if as_json else stderr) as display:
        importing("torch")
        from training.engine.settings import Compute
        from training.step_accuracy.recorded_steps import recorded_accuracy

        compute = Compute(max_tokens=max_tokens, bf16=bf16, cpu=cpu, threads=threads)
        result = recorded_accuracy(checkpoint, runs, compute, log, watcher_of(display))
    if as_json:
        print_json(result.model_dump(mode="json"))
    else:
        _print(result)
    return EXIT_OK


def _print(result: RecordedAccuracy) -> None:
    table = FittedTable(
        Column("recorded steps", wrap=24), Column("n", right=True), Column("exact (95 %)", right=True, wrap=24)
    )
    table.row("steps, resampled by task", str(result.steps), percent(result.exact.by_episode))
    table.row("whole tasks", str(len(result.tasks)), percent(result.whole_tasks))
    print_table(table)
    for line in _notes(result):
        stdout.print(line, highlight=False, markup=False, soft_wrap=True)


def _notes(result: RecordedAccuracy) -> list[str]:
    lines = [f"loss per token {result.loss:.3f}"]
    if result.first_wrong:
        shares = ", ".join(f"{name} {count}" for name, count in result.first_wrong.items())
        lines.append(f"first wrong token in: {shares}")
    counts = (
        (result.failures, "failed episodes left out"),
        (result.too_long, "episodes left out, because a row is too long"),
        (result.cut, "prompts lost their middle"),
    )
    lines += [f"{count} {text}" for count, text in counts if count]
    return lines
