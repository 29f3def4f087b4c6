"""`mira train`: the loop, one stage of supervised learning, and what a run has come to."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.options import Wide
from agent.cli.output import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    print_json,
    print_problem,
    print_table,
    stderr,
    stdout,
)
from agent.cli.tables import Column, FittedTable
from envs.core.errors import BadInput
from training.cli import grpo as group_policy
from training.cli.messages import (
    AsJson,
    Changes,
    Config,
    NamedConfig,
    Out,
    importing,
    needs_extra,
    room_for,
    tell,
    watcher_of,
)

if TYPE_CHECKING:
    from training.loop.loop import Progress
    from training.loop.metrics import PhaseMetrics
    from training.loop.task_report import Told

app = typer.Typer(help="Makes a local policy better from traces.", no_args_is_help=True)
app.command("grpo")(group_policy.grpo)
app.command("examples")(group_policy.examples)
app.command("puzzles")(group_policy.puzzles)

AllowEvaluation = Annotated[
    bool, typer.Option("--allow-evaluation", help="Learn from instances that policies are measured on, too.")
]


@app.command()
def mira(
    out: Out, config: NamedConfig = None, change: Changes = None, wide: Wide = False, as_json: AsJson = False
) -> int:
    """Plays, trains critics and actor, measures, chooses the next tasks: phase after phase (MiRA and its baselines)."""
    needs_extra()
    from agent.cli.display import RunDisplay
    from training.configs import config_file
    from training.loop.settings import load_settings

    settings = load_settings(None if config is None else config_file(config), change or ())
    with room_for(out), RunDisplay(stderr, None if as_json else stderr) as display:
        importing("torch", "accelerate")
        from training.engine.trainer import TrainingDiverged
        from training.loop.loop import Loop
        from training.loop.rollouts import Interrupted

        loop = Loop.open(out, settings, (display,), tell, watcher_of(display))
        try:
            progress = asyncio.run(loop.run())
        except Interrupted as stopped:
            print_problem(f"{stopped}; continue with the same command")
            return EXIT_INTERRUPTED
        except TrainingDiverged as stopped:
            print_problem(str(stopped))
            return EXIT_FAILED
    _print(progress, as_json)
    return EXIT_OK


@app.command()
def sft(
    runs: Annotated[list[Path], typer.Argument(help="Runs, folders of runs or traces to learn from.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the result; one that was broken off goes on.")],
    start: Annotated[str, typer.Option(help="Checkpoint to start from: a folder, or `embedded`.")] = "embedded",
    config: Config = None,
    change: Changes = None,
    allow_evaluation: AllowEvaluation = False,
    wide: Wide = False,
    as_json: AsJson = False,
) -> int:
    """Supervised fine-tuning on the successes of runs (TRL). The result lies in OUT/model."""
    needs_extra()
    from agent.cli.display import RunDisplay

    with room_for(out), RunDisplay(stderr, None if as_json else stderr) as display:
        importing("torch", "TRL")
        from training.loop.sft import SupervisedSettings, fine_tune

        settings = SupervisedSettings.load(config, change or ())
        found = fine_tune(
            runs, start, out, settings, tell, allow_evaluation=allow_evaluation, watch=watcher_of(display)
        )
    if as_json:
        print_json(found.model_dump(mode="json"))
        return EXIT_OK
    print_table(found.data.table())
    if found.first_loss is not None and found.last_loss is not None:
        stdout.print(f"loss a token {found.first_loss:.3f} → {found.last_loss:.3f}", highlight=False)
    stdout.print(shlex.join(found.play), highlight=False, markup=False, soft_wrap=True)
    return EXIT_OK


@app.command()
def show(
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Folder of a training run, or NAME=FOLDER; several are set beside each other.", metavar="RUN"
        ),
    ],
    phase: Annotated[int | None, typer.Option("--phase", help="One phase, task by task.", min=1)] = None,
    rescore: Annotated[bool, typer.Option("--rescore", help="With --phase: what the actor made of it.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Draw the runs' curves, phase by phase: a file .svg.")
    ] = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> int:
    """What training runs have come to, by phase (mira) or update (grpo), or one phase of one of them task by task."""
    needs_extra()
    if phase is not None:
        if len(runs) > 1 or out is not None:
            raise BadInput("--phase tells of one phase of one run, as a table: leave further runs and --out away")
        return _show_phase(Path(runs[0]) / f"phase-{phase}", rescore, as_json)
    if rescore:
        raise BadInput("--rescore needs --phase")
    from training.loop.evaluation.curves import FORMATS, phase_curve, write_curves
    from training.loop.evaluation.drawing import check_target

    if out is not None:
        check_target(out, FORMATS)
    named = [_named(word) for word in runs]
    grouped = [group_policy.is_group_run(folder) for _, folder in named]
    if any(grouped):
        if not all(grouped):
            raise BadInput("runs of `mira train grpo` and of `mira train mira` are not measured alike: show them apart")
        group_policy.show_group_runs(named, out, as_json=as_json)
        return EXIT_OK
    found = [_progress(name, folder) for name, folder in named]
    if odd := _measured_otherwise([folder for _, folder in named]):
        print_problem(f"{odd} was measured on other tasks than {named[0][1]}: their held-out numbers do not compare")
    if out is not None:
        write_curves([phase_curve(one.arm, one.seed, one.phases) for one in found], out)
    if len(found) == 1:
        _print(found[0], as_json)
    elif as_json:
        print_json([one.model_dump(mode="json") for one in found])
    else:
        print_table(_beside(found))
    if out is not None and not as_json:
        stdout.print(f"curves: {out}", highlight=False, markup=False)
    return EXIT_OK


def _named(word: str) -> tuple[str, Path]:
    """(name, folder) of a run; the name is empty where *word* gives none."""
    name, equals, place = word.partition("=")
    return (name, Path(place)) if equals and not Path(word).is_dir() else ("", Path(word))


def _progress(name: str, folder: Path) -> Progress:
    """Of the run in *folder*; a *name* is told in place of its arm. Raises BadInput."""
    from training.loop.loop import Progress
    from training.loop.parts import read_record

    if not (folder / "progress.json").exists():
        raise BadInput(f"{str(folder)!r} holds no training run whose start is measured")
    found = read_record(folder / "progress.json", Progress)
    return found.model_copy(update={"arm": name}) if name else found


def _measured_otherwise(folders: Sequence[Path]) -> Path | None:
    """The first that says it was measured in another way than the first one was."""

    def measured(folder: Path) -> dict[str, Any] | None:
        try:
            told: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))["evaluation"]
        except (OSError, ValueError, KeyError):
            return None
        return {name: value for name, value in told.items() if name != "every"}

    first = measured(folders[0])
    apart = (one for one in folders[1:] if None not in (first, now := measured(one)) and now != first)
    return next(apart, None)


def _beside(found: Sequence[Progress]) -> FittedTable:
    """A row a run: success on held-out tasks, by phase. The first phase and the last one are always shown."""
    phases = sorted({one.phase for run in found for one in run.phases if one.evaluation})
    ends = {phases[0], phases[-1]} if phases else set[int]()
    numbers = (Column(str(one), right=True, wrap=8, drop=0 if one in ends else 1 + one) for one in phases)
    title = "success on held-out tasks by phase (95 %)"
    table = FittedTable(Column("run", wrap=10), Column("seed", right=True, drop=1), *numbers, title=title)
    for run in found:
        cells = {one.phase: _held_out(one) for one in run.phases}
        table.row(run.arm, str(run.seed), *(cells.get(phase, "") for phase in phases))
    return table


def _print(progress: Progress, as_json: bool) -> None:
    if as_json:
        print_json(progress.model_dump(mode="json"))
        return
    table = FittedTable(*_COLUMNS, title=f"{progress.arm}, seed {progress.seed}")
    for one in progress.phases:
        table.row(*_cells(one))
    print_table(table)


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
            *_told(line.on_successes),
            *_told(line.on_failures),
            _number(line.auroc),
        )
    print_table(table)
    return EXIT_OK


def _told(told: Told | None) -> tuple[str, ...]:
    return ("", "", "") if told is None else (_number(told.value), _number(told.advantage), _number(told.gain))


_COLUMNS = (
    Column("phase", right=True),
    Column("held out\n(95 %)", right=True),
    Column("roll-\nouts", right=True, drop=1),
    Column("replayed", right=True, drop=4),
    Column("rows", right=True, drop=3),
    Column("A on\nwins", right=True, drop=5),
    Column("P\nerror", right=True, drop=6),
    Column("actor\nloss", right=True, drop=2),
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


def _cells(one: PhaseMetrics) -> tuple[str, ...]:
    own = one.rollouts if one.rollouts and one.rollouts.judged else None
    return (
        str(one.phase),
        _held_out(one),
        f"{own.rate:.0%}" if own else "",
        str(one.replayed.chosen) if one.phase else "",
        str(one.actor_rows) if one.phase else "",
        _number(one.advantage_on_successes),
        _number(one.potential.absolute_error if one.potential else None),
        f"{one.actor_loss.first:.2f}→{one.actor_loss.last:.2f}" if one.actor_loss else "",
    )


def _held_out(one: PhaseMetrics) -> str:
    held = one.evaluation
    if held is None or not held.judged:
        return ""
    return f"{held.rate:.0%} ({100 * held.interval.low:.0f}-{100 * held.interval.high:.0f})"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
