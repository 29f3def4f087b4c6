"""`mira train grpo` and what makes examples for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.options import Wide
from agent.cli.output import EXIT_FAILED, EXIT_OK, print_json, print_problem, print_table, stderr, stdout
from agent.cli.tables import Column, FittedTable
from envs.core.errors import BadInput
from training.cli.messages import AsJson, Changes, Config, importing, needs_extra, room_for, tell, watcher_of

if TYPE_CHECKING:
    from training.grpo.report import Reported
    from training.grpo.run import HeldOut

Examples = Annotated[list[Path], typer.Argument(help="Files of examples, one JSON object a line.", metavar="EXAMPLES")]
File = Annotated[Path, typer.Option("--out", "-o", help="The file to write, e.g. train.jsonl.")]


def grpo(
    examples: Examples,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the run; one that was broken off goes on.")],
    start: Annotated[str, typer.Option(help="Checkpoint to start from: a folder, or `embedded`.")] = "embedded",
    held_out: Annotated[
        Path | None, typer.Option("--held-out", help="Examples to measure on, none of which is learned from.")
    ] = None,
    config: Config = None,
    change: Changes = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> int:
    """Group-relative policy optimization (TRL) on single answers: SSL, GuirlVG, AdaGUI-R1, LPO."""
    needs_extra()
    from agent.cli.display import RunDisplay
    from training.grpo.examples import gather_examples, read_examples
    from training.grpo.settings import load_settings

    settings = load_settings(config, change or ())
    learned = gather_examples(examples)
    measured = () if held_out is None else read_examples(held_out)
    with room_for(out), RunDisplay(stderr, None if as_json else stderr) as display:
        importing("torch", "TRL")
        from training.engine.trainer import TrainingDiverged
        from training.grpo.run import improve

        try:
            found = improve(learned, start, out, settings, held_out=measured, tell=tell, watch=watcher_of(display))
        except TrainingDiverged as stopped:
            print_problem(str(stopped))
            return EXIT_FAILED
    if as_json:
        print_json(found.model_dump(mode="json"))
        return EXIT_OK
    if found.held_out:
        print_table(measured_table(found.held_out))
    if found.first_reward is not None and found.last_reward is not None:
        stdout.print(f"reward {found.first_reward:.3f} → {found.last_reward:.3f}", highlight=False)
    if found.equal_groups:
        stdout.print(f"{found.equal_groups} groups had equal rewards: nothing was learned from them", highlight=False)
    if found.nonfinite_rows:
        told = f"{found.nonfinite_rows} rows were left out, their rewards are NaN or infinite"
        stdout.print(told, highlight=False)
    stdout.print(f"model: {found.model}", highlight=False, markup=False)
    return EXIT_OK


def puzzles(
    kind: Annotated[str, typer.Argument(help="maze, sudoku or pattern.", metavar="KIND")],
    out: File,
    count: Annotated[int, typer.Option(help="How many.", min=1)] = 1_000,
    seed: Annotated[int, typer.Option(help="Another seed makes other puzzles.")] = 0,
    size: Annotated[int | None, typer.Option(help="Cells along a side: maze 7, sudoku 9 (or 4), pattern 3.")] = None,
    apart_from: Annotated[
        list[Path] | None, typer.Option("--apart-from", help="Examples that must not be among them.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Puzzles on grids as examples for `mira train grpo`: the reasoning tasks of SSL."""
    from training.grpo.examples import gather_examples, write_examples
    from training.grpo.puzzles import kind_of, make_puzzles

    if out.is_dir():
        raise BadInput(f"{str(out)!r} is a folder, and --out names a file")
    known = gather_examples(apart_from) if apart_from else ()
    made = make_puzzles(kind_of(kind), count, seed=seed, size=size, apart_from=known)
    write_examples(out, made)
    if as_json:
        print_json({"file": str(out), "examples": len(made)})
    else:
        stdout.print(f"{len(made)} puzzles: {out}", highlight=False, markup=False)
    return EXIT_OK


def examples(
    runs: Annotated[list[Path], typer.Argument(help="Runs, folders of runs or traces.")],
    out: File,
    ask: Annotated[
        str,
        typer.Option(
            help="element: where is this element? goal: where to click for this goal? Both show the screenshot. "
            "step: what to do, with the prompt that the policy was sent, and its screenshot where there is one."
        ),
    ] = "step",
    think: Annotated[bool, typer.Option("--think", help="Ask for a thought before the answer.")] = False,
    resolution: Annotated[bool, typer.Option("--resolution", help="Say how large the screenshot is.")] = False,
    screenshots: Annotated[
        bool,
        typer.Option(
            "--screenshots/--no-screenshots",
            help="Of step: show what screenshots there are and ask clicks by place, or ask in words alone.",
        ),
    ] = True,
    allow_evaluation: Annotated[
        bool, typer.Option("--allow-evaluation", help="Instances that policies are measured on, too: to measure.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """What was done right in runs, as examples for `mira train grpo`."""
    needs_extra()
    import asyncio

    from agent.run.discover_traces import discover_traces
    from training.grpo.examples import write_examples
    from training.grpo.from_traces import Asking, examples_of
    from training.loop.curriculum import held_out

    if ask not in ("element", "goal", "step"):
        raise BadInput(f"--ask {ask!r}: there are element, goal and step")
    if ask != "step" and not screenshots:
        raise BadInput(f"--ask {ask} shows the screenshot: leave --no-screenshots away")
    if out.is_dir():
        raise BadInput(f"{str(out)!r} is a folder, and --out names a file")
    traces = [(one.read(), one.blobs) for one in discover_traces(runs)]
    held = {} if allow_evaluation else asyncio.run(held_out(trace.header.task for trace, _ in traces))
    asking = Asking(ask, think, resolution, frozenset(held), screenshots)
    found = examples_of(traces, asking, out.parent / f"{out.stem}-images")
    for notice in found.provenance.notices():
        tell(notice)
    for why, count in found.left_out.items():
        tell(f"{count} steps left out: {why.value}")
    if not found.examples:
        raise BadInput("no step of these runs can be asked")
    write_examples(out, found.examples)
    if as_json:
        left = {why.value: count for why, count in found.left_out.items()}
        print_json({"file": str(out), "examples": len(found.examples), "left_out": left})
    else:
        stdout.print(f"{len(found.examples)} examples: {out}", highlight=False, markup=False)
    return EXIT_OK


def is_group_run(folder: Path) -> bool:
    """Whether *folder* holds a run of `mira train grpo`."""
    return (folder / "grpo.json").is_file()


def show_group_runs(named: Sequence[tuple[str, Path]], out: Path | None, *, as_json: bool) -> None:
    """What runs have come to so far; *out*: their curves, by update. Raises BadInput."""
    from training.grpo.report import read_reported
    from training.grpo.run import Begun, read_held_out
    from training.loop.evaluation.curves import Curve, write_curves
    from training.loop.parts import read_record

    begun = [read_record(folder / "grpo.json", Begun) for _, folder in named]
    if odd := next((i for i, one in enumerate(begun) if one.held_out != begun[0].held_out), None):
        print_problem(f"{named[odd][1]} was measured on other examples than {named[0][1]}: they do not compare")
    names = [name or folder.name for name, folder in named]
    found = [read_held_out(folder) for _, folder in named]
    reported = [read_reported(folder) for _, folder in named]
    if out is not None:
        lines = [_lines(run, trained) for run, trained in zip(found, reported, strict=True)]
        if not any(points for drawn in lines for points in drawn.values()):
            raise BadInput("--out: nothing was measured on held-out examples, and no report says how many are right")
        write_curves(
            [Curve(name, one.settings.seed, drawn) for name, one, drawn in zip(names, begun, lines, strict=True)],
            out,
            "update",
        )
    if as_json:
        told = [
            {
                "name": name,
                "held_out": [one.model_dump(mode="json") for one in run],
                "training": [one.model_dump(mode="json") for one in trained],
            }
            for name, run, trained in zip(names, found, reported, strict=True)
        ]
        print_json(told[0] if len(told) == 1 else told)
        return
    for name, run, trained in zip(names, found, reported, strict=True):
        if run:
            print_table(measured_table(run, name))
        if trained:
            print_table(reported_table(trained, f"{name}, sampled while training"))
        if not run and not trained:
            stdout.print(f"{name}: nothing was reported yet", highlight=False, markup=False)
    if out is not None:
        stdout.print(f"curves: {out}", highlight=False, markup=False)


def _lines(run: Sequence[HeldOut], reported: Sequence[Reported]) -> dict[str, dict[int, float]]:
    """What is drawn of a run."""
    from training.grpo.report import put_together

    lines = {
        "held out, solved": {one.update: one.measured.correct.value or 0.0 for one in run},
        "held out, wrong and near": {one.update: one.measured.near_misses for one in run},
        "sampled, right": {one.last: one.correct for one in put_together(reported) if one.correct is not None},
    }
    return {title: points for title, points in lines.items() if points or title != "sampled, right"}


def reported_table(reports: Sequence[Reported], name: str) -> FittedTable:
    """A row for some updates each, means over them; without the columns that the reward says nothing of."""
    from training.grpo.report import put_together

    rows = put_together(reports)
    columns: dict[str, list[str]] = {
        "updates": [f"{one.first}-{one.last}" if one.first < one.last else str(one.last) for one in rows],
        "reward": ["" if one.reward is None else f"{one.reward:.3f}" for one in rows],
        "right": ["" if one.correct is None else f"{one.correct:.1%}" for one in rows],
        "proximity": ["" if one.proximity is None else f"{one.proximity:.2f}" for one in rows],
        "KL": ["" if one.kl is None else f"{one.kl:.2g}" for one in rows],
        "tokens": ["" if one.tokens is None else f"{one.tokens:.1f}" for one in rows],
        "equal\ngroups": [f"{one.equal_groups}/{one.groups}" if one.equal_groups else "" for one in rows],
        "nonfinite\nrows": [str(one.nonfinite_rows) if one.nonfinite_rows else "" for one in rows],
    }
    reported = {title: cells for title, cells in columns.items() if any(cells)}
    ranked = (Column(title, right=True, drop=max(0, place - 1)) for place, title in enumerate(reported))
    table = FittedTable(*ranked, title=name)
    for cells in zip(*reported.values(), strict=True):
        table.row(*cells)
    return table


def measured_table(found: Sequence[HeldOut], name: str = "held-out examples") -> FittedTable:
    """A row a measurement."""
    columns = ("update", "solved (95 %)", "proximity", "near\nmisses", "answer\ntokens", "thought\ntokens")
    ranked = (Column(column, right=True, drop=max(0, place - 1)) for place, column in enumerate(columns))
    table = FittedTable(*ranked, title=name)
    for one in found:
        table.row(str(one.update), *_cells(one))
    return table


def _cells(one: HeldOut) -> tuple[str, ...]:
    told = one.measured
    rate = told.correct
    return (
        f"{rate.value or 0:.1%} ({100 * (rate.low or 0):.0f}-{100 * (rate.high or 0):.0f})",
        f"{told.proximity:.2f}",
        f"{told.near_misses:.0%}",
        f"{told.answer_tokens:.1f}",
        f"{told.thought_tokens:.1f}",
    )
