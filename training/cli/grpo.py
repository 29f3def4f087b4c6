"""`mira train grpo`, and the commands that make examples for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.options import Wide
from agent.cli.output import EXIT_OK, print_json, print_problem, print_table, stderr, stdout
from agent.cli.outputs import output_file
from agent.cli.tables import Column, FittedTable
from envs.core.errors import BadInput
from models.vision.grounding import AnswerShape
from training.cli.messages import (
    AsJson,
    Changes,
    Config,
    Out,
    changes_option,
    importing,
    log,
    needs_extra,
    reporting_full_disk,
    stopping_if_diverged,
    watcher_of,
)
from training.cli.question_options import Coordinates, Resolution, Think
from training.cli.recipes import RecipeName, with_recipe

if TYPE_CHECKING:
    from training.grpo.examples import Example
    from training.grpo.puzzles import ArcKind
    from training.grpo.report import TrainingReport
    from training.grpo.results import HeldOutEvaluation

Examples = Annotated[list[Path], typer.Argument(help="JSON Lines files of examples.", metavar="EXAMPLES")]
File = Annotated[Path, output_file("Output file, e.g. train.jsonl.")]


def _refuse_episodes(value: str | None) -> None:
    """Raises BadInput where an option of `mira train mgrpo` is given."""
    if value is not None:
        raise BadInput(
            "`mira train grpo` trains on files of examples and has no --suite and --tasks; to train on episodes of a "
            "suite: mira train mgrpo --suite NAME"
        )


def _option_of_mgrpo(name: str) -> typer.models.OptionInfo:
    """The option *name* in the place of an unknown one: it is refused before a missing argument is."""
    return typer.Option(
        name, help="Refused; of `mira train mgrpo`.", hidden=True, is_eager=True, callback=_refuse_episodes
    )


def grpo(
    examples: Examples,
    out: Out,
    start: Annotated[
        str, typer.Option(help="Checkpoint to start from: a folder, a GGUF file, or `embedded`.")
    ] = "embedded",
    held_out: Annotated[Path | None, typer.Option("--held-out", help="File of examples for evaluation only.")] = None,
    recipe: RecipeName = None,
    config: Config = None,
    change: Annotated[Changes, changes_option("group=4")] = None,
    suite: Annotated[str | None, _option_of_mgrpo("--suite")] = None,
    tasks: Annotated[str | None, _option_of_mgrpo("--tasks")] = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> int:
    """Train on single answers with group-relative policy optimization (TRL): SSL, GuirlVG, AdaGUI-R1, LPO."""
    needs_extra()
    from agent.cli.display import RunDisplay
    from training.grpo.examples import read_example_files, read_examples
    from training.grpo.settings import load_settings

    settings = load_settings(config, with_recipe(recipe, change))
    learned = read_example_files(examples)
    measured = () if held_out is None else read_examples(held_out)
    with reporting_full_disk(out), RunDisplay(stderr, None if as_json else stderr) as display:
        importing("torch", "TRL")
        from training.grpo.run import train_grpo

        with stopping_if_diverged():
            result = train_grpo(learned, start, out, settings, held_out=measured, log=log, watch=watcher_of(display))
    if as_json:
        print_json(result.model_dump(mode="json"))
        return EXIT_OK
    if result.held_out:
        print_table(measured_table(result.held_out))
    if result.first_reward is not None and result.last_reward is not None:
        stdout.print(f"reward {result.first_reward:.3f} → {result.last_reward:.3f}", highlight=False)
    if result.equal_groups:
        stdout.print(f"{result.equal_groups} groups had equal rewards and no gradient", highlight=False)
    if result.nonfinite_rows:
        line = f"{result.nonfinite_rows} rows were left out: their rewards are NaN or infinite"
        stdout.print(line, highlight=False)
    stdout.print(f"model: {result.model}", highlight=False, markup=False)
    return EXIT_OK


def puzzles(
    kind: Annotated[str, typer.Argument(help="Kind of puzzle: maze, sudoku, pattern, arc-1 or arc-2.", metavar="KIND")],
    out: File,
    count: Annotated[
        int | None, typer.Option(help="Number of puzzles; default: 1000, or all tasks of ARC.", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the puzzles.")] = 0,
    size: Annotated[
        list[int] | None,
        typer.Option(
            help="Cells per side; default: maze 7, sudoku 9 (or 4), pattern 3. Repeatable: equally many of each. ARC: "
            "the longest side of a grid, default 30.",
            min=1,
        ),
    ] = None,
    generator: Annotated[
        str | None,
        typer.Option(
            help="Generator of maze-dataset for mazes (extra `mazes`): dfs, wilson, kruskal, recursive_division, "
            "percolation or dfs_percolation; default: Mira's own mazes."
        ),
    ] = None,
    percolation: Annotated[
        float | None,
        typer.Option(help="Probability that percolation or dfs_percolation opens a wall; default: 0.4."),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Tasks of ARC (extra `arc`): training (default) or evaluation.")
    ] = None,
    apart_from: Annotated[
        list[Path] | None,
        typer.Option("--apart-from", help="Exclude the puzzles, and the tasks of ARC, of this file; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Make grid puzzles as examples for `mira train grpo`, the reasoning tasks of SSL."""
    from training.grpo.examples import read_example_files, write_examples
    from training.grpo.puzzles import (
        ARC_RELEASES,
        KINDS,
        arc_kind,
        make_puzzles_of_sizes,
        parse_maze_generator,
        parse_puzzle_kind,
    )

    known = read_example_files(apart_from) if apart_from else ()
    if arc := arc_kind(kind):
        if generator is not None or percolation is not None:
            raise BadInput(f"--generator and --percolation are for mazes, not {kind}")
        made = _arc(arc, split, count, seed, size or (), known)
    else:
        if kind not in KINDS:
            raise BadInput(f"unknown puzzle {kind!r}; there are {', '.join((*KINDS, *ARC_RELEASES))}")
        if split is not None:
            raise BadInput(f"--split is for {' and '.join(ARC_RELEASES)}, not {kind}: use another --seed")
        made = make_puzzles_of_sizes(
            parse_puzzle_kind(kind),
            count or 1_000,
            seed=seed,
            sizes=size,
            apart_from=known,
            generator=None if generator is None else parse_maze_generator(generator),
            percolation=percolation,
        )
    write_examples(out, made)
    if as_json:
        print_json({"file": str(out), "examples": len(made)})
    else:
        stdout.print(f"{len(made)} puzzles: {out}", highlight=False, markup=False)
    return EXIT_OK


def _arc(
    kind: ArcKind, split: str | None, count: int | None, seed: int, sizes: Sequence[int], known: Sequence[Example]
) -> tuple[Example, ...]:
    from training.grpo.puzzles import arc_puzzles, parse_arc_split
    from training.grpo.puzzles.arc import LARGEST

    if len(sizes) > 1:
        raise BadInput("--size is the longest side of a grid of ARC: name one")
    limit = sizes[0] if sizes else LARGEST
    part = parse_arc_split("training" if split is None else split)
    return arc_puzzles(kind, part, count=count, seed=seed, size=limit, apart_from=known)


def examples(
    runs: Annotated[list[Path], typer.Argument(help="Runs, folders of runs, or traces.", metavar="RUN")],
    out: File,
    ask: Annotated[
        str,
        typer.Option(
            help="Question of an example. element: where is this element; description: where is what the policy of a "
            "run with a grounder described; goal: where to click for this goal; step: the next action, with the "
            "policy's prompt. All but step need screenshots."
        ),
    ] = "step",
    think: Think = False,
    resolution: Resolution = False,
    coordinates: Coordinates = "pixels",
    answer: Annotated[
        AnswerShape,
        typer.Option(help="Form of the answer to a question for a position; all but point are for GuirlVG's box rows."),
    ] = AnswerShape.POINT,
    screenshots: Annotated[
        bool,
        typer.Option(
            "--screenshots/--no-screenshots",
            help="With --ask step: include screenshots and ask for click coordinates, or use text only.",
        ),
    ] = True,
    allow_evaluation: Annotated[
        bool, typer.Option("--allow-evaluation", help="Also include evaluation instances, to measure with.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Convert the successes of runs to examples for `mira train grpo`."""
    needs_extra()
    import asyncio

    from agent.run.discover_traces import discover_traces
    from training.grpo.examples import write_examples
    from training.grpo.frames import parse_coordinates
    from training.grpo.from_traces import ExampleOptions, extract_examples
    from training.loop.curriculum import held_out

    if ask not in ("element", "description", "goal", "step"):
        raise BadInput(f"--ask {ask!r}: use element, description, goal or step")
    units = parse_coordinates(coordinates)
    if ask != "step" and not screenshots:
        raise BadInput(f"--ask {ask} needs screenshots: omit --no-screenshots")
    if ask == "step" and answer is not AnswerShape.POINT:
        raise BadInput(f"--answer {answer.value} is for questions for a position: --ask element, description or goal")
    traces = [(one.read(), one.blobs) for one in discover_traces(runs)]
    held = {} if allow_evaluation else asyncio.run(held_out(trace.header.task for trace, _ in traces))
    question = ExampleOptions(ask, think, resolution, frozenset(held), units, screenshots, answer)
    result = extract_examples(traces, question, out.parent / f"{out.stem}-images")
    for notice in result.provenance.notices():
        log(notice)
    for reason, count in result.left_out.items():
        log(f"{count} steps left out: {reason.value}")
    if not result.examples:
        raise BadInput("no step of these runs fits as an example; see the counts above, or try another --ask")
    write_examples(out, result.examples)
    if as_json:
        left = {reason.value: count for reason, count in result.left_out.items()}
        print_json({"file": str(out), "examples": len(result.examples), "left_out": left})
    else:
        stdout.print(f"{len(result.examples)} examples: {out}", highlight=False, markup=False)
    return EXIT_OK


def is_group_run(folder: Path) -> bool:
    """Whether *folder* holds a run of `mira train grpo`."""
    return (folder / "grpo.json").is_file()


def show_group_runs(named: Sequence[tuple[str, Path]], out: Path | None, *, as_json: bool) -> None:
    """Prints the progress of runs, and writes their curves by update to *out*. Raises BadInput."""
    from training.grpo.report import read_reports
    from training.grpo.results import read_held_out
    from training.grpo.run import GrpoInputs
    from training.loop.evaluation.curves import Curve, write_curves
    from training.loop.parts import read_record

    begun = [read_record(folder / "grpo.json", GrpoInputs) for _, folder in named]
    if odd := next((i for i, one in enumerate(begun) if one.held_out != begun[0].held_out), None):
        print_problem(f"{named[odd][1]} was measured on other examples than {named[0][1]}: they are not comparable")
    names = [name or folder.name for name, folder in named]
    evaluations = [read_held_out(folder) for _, folder in named]
    reported = [read_reports(folder) for _, folder in named]
    if out is not None:
        lines = [_lines(run, trained) for run, trained in zip(evaluations, reported, strict=True)]
        if not any(points for drawn in lines for points in drawn.values()):
            raise BadInput("--out: nothing was measured on held-out examples, and no training report has an accuracy")
        write_curves(
            [Curve(name, one.settings.seed, drawn) for name, one, drawn in zip(names, begun, lines, strict=True)],
            out,
            "update",
        )
    if as_json:
        rows = [
            {
                "name": name,
                "held_out": [one.model_dump(mode="json") for one in run],
                "training": [one.model_dump(mode="json") for one in trained],
            }
            for name, run, trained in zip(names, evaluations, reported, strict=True)
        ]
        print_json(rows[0] if len(rows) == 1 else rows)
        return
    for name, run, trained in zip(names, evaluations, reported, strict=True):
        if run:
            print_table(measured_table(run, name))
        if trained:
            print_table(reported_table(trained, f"{name}, sampled while training"))
        if not run and not trained:
            stdout.print(f"{name}: nothing was reported yet", highlight=False, markup=False)
    if out is not None:
        stdout.print(f"curves: {out}", highlight=False, markup=False)


def _lines(run: Sequence[HeldOutEvaluation], reported: Sequence[TrainingReport]) -> dict[str, dict[int, float]]:
    """The curves of a run, by title."""
    from training.grpo.report import merge_reports

    lines = {
        "held out, solved": {one.update: one.measured.correct.value or 0.0 for one in run},
        "held out, wrong and near": {one.update: one.measured.near_misses for one in run},
        "sampled, right": {one.last: one.correct for one in merge_reports(reported) if one.correct is not None},
    }
    return {title: points for title, points in lines.items() if points or title != "sampled, right"}


def reported_table(reports: Sequence[TrainingReport], name: str) -> FittedTable:
    """A table with means over groups of updates, without columns that the reward does not report."""
    from training.grpo.report import merge_reports

    rows = merge_reports(reports)
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


def measured_table(evaluations: Sequence[HeldOutEvaluation], name: str = "held-out examples") -> FittedTable:
    """A table with one row per evaluation."""
    columns = ("update", "solved (95 %)", "proximity", "near\nmisses", "answer\ntokens", "thought\ntokens")
    ranked = (Column(column, right=True, drop=max(0, place - 1)) for place, column in enumerate(columns))
    table = FittedTable(*ranked, title=name)
    for one in evaluations:
        table.row(str(one.update), *_cells(one))
    return table


def _cells(one: HeldOutEvaluation) -> tuple[str, ...]:
    from training.loop.evaluation.drawing import percent

    metrics = one.measured
    return (
        percent(metrics.correct),
        f"{metrics.proximity:.2f}",
        f"{metrics.near_misses:.0%}",
        f"{metrics.answer_tokens:.1f}",
        f"{metrics.thought_tokens:.1f}",
    )
