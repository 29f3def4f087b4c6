"""`mira train`: the training loop, supervised fine-tuning, and the progress of training runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.options import Wide
from agent.cli.output import (
    EXIT_OK,
    print_json,
    print_problem,
    print_table,
    stderr,
    stdout,
)
from agent.cli.outputs import output_file, output_folder
from agent.cli.tables import Column, FittedTable
from agent.cli.wait_notices import Notices
from envs.core.errors import BadInput
from training.cli import grpo as group_policy
from training.cli.adagui import adagui_data
from training.cli.best import best
from training.cli.imitation import imitates_examples, sft_on_examples
from training.cli.loop_run import held_out_cell, number_cell, print_progress, run_loop
from training.cli.messages import (
    AsJson,
    Changes,
    Config,
    NamedConfig,
    Out,
    changes_option,
    importing,
    log,
    needs_extra,
    reporting_full_disk,
    stopping_if_diverged,
    watcher_of,
)
from training.cli.mgrpo import mgrpo
from training.cli.plan import plan
from training.cli.recipes import RecipeName, show_recipes

if TYPE_CHECKING:
    from training.engine.early_stopping import ValidationScore
    from training.loop.loop import Progress
    from training.loop.task_report import OutcomeStats

app = typer.Typer(help="Fine-tune and train policies: SFT, MiRA and its baselines, M-GRPO, GRPO.", no_args_is_help=True)
app.command("plan")(plan)
app.command("grpo")(group_policy.grpo)
app.command("mgrpo")(mgrpo)
app.command("examples")(group_policy.examples)
app.command("puzzles")(group_policy.puzzles)
app.command("adagui-data")(adagui_data)
app.command("recipes")(show_recipes)
app.command("best")(best)

AllowEvaluation = Annotated[bool, typer.Option("--allow-evaluation", help="Also learn from evaluation instances.")]


@app.command()
def mira(
    out: Out,
    config: NamedConfig = None,
    change: Annotated[Changes, changes_option("targets.alpha=0.1")] = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> int:
    """Run the training loop of MiRA or a baseline: play, train critics and actor, evaluate, select tasks, per phase."""
    needs_extra()
    from training.configs import config_file
    from training.loop.settings import load_settings

    settings = load_settings(None if config is None else config_file(config), change or (), log)
    return run_loop(settings, out, as_json=as_json)


@app.command()
def sft(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Runs, folders of runs, or traces to learn from; or files of examples.", metavar="RUN"),
    ],
    out: Annotated[Path, output_folder("Folder of the result; an interrupted run continues.")],
    start: Annotated[
        str, typer.Option(help="Checkpoint to start from: a folder, a GGUF file, or `embedded`.")
    ] = "embedded",
    validation: Annotated[
        list[Path] | None,
        typer.Option(help="Runs for early stopping: ends when the loss on them no longer falls.", metavar="RUN"),
    ] = None,
    recipe: RecipeName = None,
    config: Config = None,
    change: Annotated[Changes, changes_option("optimization.epochs=1")] = None,
    allow_evaluation: AllowEvaluation = False,
    wide: Wide = False,
    as_json: AsJson = False,
) -> int:
    """Fine-tune a checkpoint on the successes of runs, or on the correct answers of examples, and write it to
    OUT/model."""
    needs_extra()
    if imitates_examples(runs, recipe):
        if validation:
            raise BadInput("--validation takes runs, and these are files of examples: leave it out")
        return sft_on_examples(runs, start, out, recipe, config, change, as_json=as_json)
    from agent.cli.display import RunDisplay

    with reporting_full_disk(out), RunDisplay(stderr, None if as_json else stderr) as display:
        importing("torch", "TRL")
        from training.loop.sft import SupervisedSettings, fine_tune

        settings = SupervisedSettings.load(config, change or ())
        with stopping_if_diverged():
            result = fine_tune(
                runs,
                start,
                out,
                settings,
                log,
                validation=validation or (),
                allow_evaluation=allow_evaluation,
                watch=watcher_of(display),
            )
    if as_json:
        print_json(result.model_dump(mode="json"))
        return EXIT_OK
    print_table(result.data.table())
    if result.first_loss is not None and result.last_loss is not None:
        stdout.print(f"loss per token {result.first_loss:.3f} → {result.last_loss:.3f}", highlight=False)
    if result.validation:
        print_table(_validation_table(result.validation))
    stdout.print(shlex.join(result.play), highlight=False, markup=False, soft_wrap=True)
    return EXIT_OK


def _validation_table(scores: Sequence[ValidationScore]) -> FittedTable:
    from training.engine.early_stopping import best_epoch

    table = FittedTable(
        Column("validation"), Column("loss per token", right=True), Column("exact answers", right=True), Column("kept")
    )
    best = best_epoch(scores)
    for epoch, score in enumerate(scores):
        name = f"epoch {epoch}" if epoch else "the start"
        table.row(name, f"{score.loss:.3f}", f"{score.exact:.1%}", "yes" if score is best else "")
    return table


@app.command()
def show(
    runs: Annotated[
        list[str],
        typer.Argument(help="Folder of a training run, or NAME=FOLDER; several runs are compared.", metavar="RUN"),
    ],
    phase: Annotated[int | None, typer.Option("--phase", help="Show this phase by task.", min=1)] = None,
    rescore: Annotated[
        bool, typer.Option("--rescore", help="With --phase: score the phase's actions again with the trained actor.")
    ] = False,
    groups: Annotated[
        bool, typer.Option("--groups", help="For mgrpo: show by task how many groups had different rewards.")
    ] = False,
    out: Annotated[Path | None, output_file("Write learning curves of the runs to this .svg file.")] = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> int:
    """Show the progress of training runs by phase (mira) or update (grpo), or one phase by task."""
    needs_extra()
    if groups:
        if len(runs) > 1 or out is not None or phase is not None:
            raise BadInput("--groups shows all phases of one run: leave out further runs, --phase and --out")
        return _show_groups(Path(runs[0]), as_json)
    if phase is not None:
        if len(runs) > 1 or out is not None:
            raise BadInput("--phase shows one phase of one run: leave out further runs and --out")
        return _show_phase(Path(runs[0]) / f"phase-{phase}", rescore, as_json)
    if rescore:
        raise BadInput("--rescore needs --phase")
    return _show_runs(runs, out, as_json)


def _show_runs(runs: Sequence[str], out: Path | None, as_json: bool) -> int:
    """Shows one run by phase, or compares several; with *out* it also draws them. Raises BadInput."""
    from training.loop.evaluation.curves import FORMATS, phase_curve, write_curves
    from training.loop.evaluation.drawing import check_target

    if out is not None:
        check_target(out, FORMATS)
    named = [_named(word) for word in runs]
    grouped = [group_policy.is_group_run(folder) for _, folder in named]
    if any(grouped):
        if not all(grouped):
            raise BadInput(
                "runs of `mira train grpo` and of `mira train mira` have different metrics: show them separately"
            )
        group_policy.show_group_runs(named, out, as_json=as_json)
        return EXIT_OK
    with Notices(None if as_json else stderr):
        progress = [_progress(name, folder) for name, folder in named]
    if odd := _first_incomparable([folder for _, folder in named]):
        print_problem(
            f"{odd} was measured on other tasks than {named[0][1]}: their held-out numbers are not comparable; show the"
            " runs separately"
        )
    if out is not None:
        write_curves([phase_curve(run.arm, run.seed, run.phases) for run in progress], out)
    if len(progress) == 1:
        print_progress(progress[0], as_json)
    elif as_json:
        print_json([run.model_dump(mode="json") for run in progress])
    else:
        print_table(_comparison_table(progress))
    if out is not None and not as_json:
        stdout.print(f"curves: {out}", highlight=False, markup=False)
    return EXIT_OK


def _named(word: str) -> tuple[str, Path]:
    """Parses NAME=FOLDER or FOLDER; the name is empty without NAME."""
    name, equals, place = word.partition("=")
    return (name, Path(place)) if equals and not Path(word).is_dir() else ("", Path(word))


def _progress(name: str, folder: Path) -> Progress:
    """Reads the progress of the run in *folder*; *name*, if any, replaces its arm. Raises BadInput."""
    if not (folder / "progress.json").exists():
        raise BadInput(f"{str(folder)!r} holds no training run with an evaluation of its start")
    importing("torch")
    from training.loop.loop import Progress
    from training.loop.parts import read_record

    result = read_record(folder / "progress.json", Progress)
    return result.model_copy(update={"arm": name}) if name else result


def _first_incomparable(folders: Sequence[Path]) -> Path | None:
    """The first folder whose evaluation settings differ from those of the first one."""

    def evaluation_of(folder: Path) -> dict[str, Any] | None:
        try:
            settings: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))["evaluation"]
        except (OSError, ValueError, KeyError):
            return None
        return {name: value for name, value in settings.items() if name != "every"}

    first = evaluation_of(folders[0])
    different = (
        folder for folder in folders[1:] if None not in (first, other := evaluation_of(folder)) and other != first
    )
    return next(different, None)


def _comparison_table(runs: Sequence[Progress]) -> FittedTable:
    """A table with one row per run: success on held-out tasks by phase. The first and last phase are always shown."""
    phases = sorted({phase.phase for run in runs for phase in run.phases if phase.evaluation})
    ends = {phases[0], phases[-1]} if phases else set[int]()
    numbers = (Column(str(phase), right=True, wrap=8, drop=0 if phase in ends else 1 + phase) for phase in phases)
    title = "success on held-out tasks by phase (95 %)"
    table = FittedTable(Column("run", wrap=10), Column("seed", right=True, drop=1), *numbers, title=title)
    for run in runs:
        cells = {phase.phase: held_out_cell(phase) for phase in run.phases}
        table.row(run.arm, str(run.seed), *(cells.get(phase, "") for phase in phases))
    return table


def _show_phase(folder: Path, rescore: bool, as_json: bool) -> int:
    from training.loop.task_report import by_task

    lines = by_task(folder, rescore=rescore)
    if as_json:
        print_json([line.model_dump(mode="json") for line in lines])
        return EXIT_OK
    table = FittedTable(Column("task", wrap=16), *_PHASE_COLUMNS, title=str(folder))
    for line in lines:
        table.row(
            line.task.rpartition("/")[2],
            f"{line.solved}/{line.episodes}",
            *_critic_cells(line.on_successes),
            *_critic_cells(line.on_failures),
            number_cell(line.auroc),
        )
    print_table(table)
    return EXIT_OK


def _show_groups(folder: Path, as_json: bool) -> int:
    from training.loop.group_report import groups_by_task

    lines = groups_by_task(folder)
    if as_json:
        print_json([line.model_dump(mode="json") for line in lines])
        return EXIT_OK
    table = FittedTable(Column("task", wrap=16), *_GROUP_COLUMNS, title=f"groups by task: {folder}")
    for line in lines:
        counts = line.counts
        table.row(
            line.task.rpartition("/")[2],
            *map(str, (counts.groups, counts.informative, counts.all_solved, counts.all_failed)),
            number_cell(line.first_reward),
            number_cell(line.last_reward),
        )
    print_table(table)
    return EXIT_OK


def _critic_cells(scores: OutcomeStats | None) -> tuple[str, ...]:
    return (
        ("", "", "")
        if scores is None
        else (number_cell(scores.value), number_cell(scores.advantage), number_cell(scores.gain))
    )


_PHASE_COLUMNS = (
    Column("solved", right=True),
    Column("V\nwon", right=True, drop=4),
    Column("A\nwon", right=True, drop=2),
    Column("gain\nwon", right=True, drop=6),
    Column("V\nlost", right=True, drop=5),
    Column("A\nlost", right=True, drop=3),
    Column("gain\nlost", right=True, drop=7),
    Column("AUROC\nof V", right=True, drop=1),
)
_GROUP_COLUMNS = (
    Column("groups", right=True),
    Column("different\nrewards", right=True),
    Column("all\nsolved", right=True, drop=2),
    Column("all\nfailed", right=True, drop=1),
    Column("reward\nfirst half", right=True, drop=4),
    Column("reward\nsecond half", right=True, drop=3),
)
