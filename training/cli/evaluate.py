"""`mira eval`: evaluates policies from their runs; compares phases and arms."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from agent.cli import options
from agent.cli.default_command import GroupWithDefault
from agent.cli.output import EXIT_INTERRUPTED, EXIT_OK, counting, print_json, print_problem, print_table, stderr, stdout
from agent.cli.outputs import output_file
from agent.config import RunConfig
from agent.inspection.compare import PASS_AT
from agent.inspection.expert_steps import Assisted, ExpertSteps
from agent.run.discover_traces import EpisodeFile, discover_traces
from envs.core.errors import BadInput
from envs.core.tasks import TaskSelection
from training.cli import evaluation_tables as tables
from training.cli.evaluate_grids import evaluate_grids
from training.cli.evaluate_grounding import evaluate_grounding
from training.cli.evaluate_planning import evaluate_planning
from training.cli.evaluate_steps import evaluate_steps
from training.cli.evaluate_texts import evaluate_texts
from training.cli.value_curves import show_curves
from training.loop.evaluation.arms import ArmsTable, Cluster, Trial, compare_arms, trials_of
from training.loop.evaluation.drawing import Phase, check_target, write_phases
from training.loop.evaluation.phases import Group, parse_arms, parse_phases
from training.loop.evaluation.reading import Reading, read_played
from training.loop.evaluation.summary import Evaluation
from training.loop.evaluation.summary import evaluate as evaluate_runs

Runs = Annotated[
    list[Path] | None, typer.Argument(help="Runs, folders of runs, or traces to evaluate together.", metavar="RUN")
]
Phases = Annotated[
    list[str] | None,
    typer.Option(help="Compare the milestones of phases: a folder of `mira train`, or NAME=RUN; repeatable."),
]
Arms = Annotated[
    list[str] | None,
    typer.Option(
        "--arm",
        help="Compare arms on common tasks: NAME=RUN, NAME=a folder of `mira train` (its last phase), or "
        "NAME=FOLDER/phase-2; repeatable, the same NAME adds a seed.",
    ),
]
Baseline = Annotated[str | None, typer.Option(help="Arm to compare the others with; default: the first.")]
ClusterBy = Annotated[Cluster, typer.Option("--cluster", help="Unit of the bootstrap of --arm.")]
PassAt = Annotated[str, typer.Option("--k", help="Values of k for pass@k, comma-separated.")]
Resamples = Annotated[int, typer.Option(min=100, max=100_000, help="Number of bootstrap resamples.")]
DrawSeed = Annotated[int, typer.Option("--seed", min=0, help="Random seed of the bootstrap.")]
Curves = Annotated[
    Path | None,
    typer.Option(
        help="Show the critics' curves of one episode, V and P per step: its trace, or a run of one episode.",
        metavar="EPISODE",
    ),
]
Critics = Annotated[
    Path | None,
    typer.Option(help="Phase of `mira train` whose critics score --curves; default: the values stored with the run."),
]
Out = Annotated[
    Path | None,
    output_file("Write the heat maps of --phases (.svg, .html) or the drawing of --curves (.svg) to this file."),
]
Play = Annotated[bool, typer.Option("--play", help="First play tasks of --suite with --policy, like `mira run`.")]
PlayedInto = Annotated[Path, typer.Option("--runs", help="Folder in which --play creates its run.")]

app = typer.Typer(
    cls=GroupWithDefault,
    help="Evaluate runs: success, pass@k, failures, cost and milestones; compare phases and arms.\n\n"
    "`mira eval RUN` is short for `mira eval of-runs RUN`.",
)
"""`mira eval RUN…` and `mira eval grounding …`."""
app.command("grounding")(evaluate_grounding)
app.command("planning")(evaluate_planning)
app.command("grids")(evaluate_grids)
app.command("steps")(evaluate_steps)
app.command("texts")(evaluate_texts)

_KS = ",".join(map(str, PASS_AT))


@dataclass(frozen=True, slots=True)
class _Method:
    """How to compute the statistics."""

    ks: tuple[int, ...]
    cluster: Cluster
    resamples: int
    seed: int
    quiet: bool

    def read(self, files: Sequence[EpisodeFile]) -> Reading:
        with counting("traces", len(files), quiet=self.quiet) as progress:
            return read_played(files, progress)

    def evaluation(self, files: Sequence[EpisodeFile]) -> Evaluation:
        return evaluate_runs(self.read(files), ks=self.ks, resamples=self.resamples, seed=self.seed)


@app.command(GroupWithDefault.default_command, hidden=True)
def evaluate(
    runs: Runs = None,
    phases: Phases = None,
    arm: Arms = None,
    curves: Curves = None,
    critics: Critics = None,
    baseline: Baseline = None,
    cluster: ClusterBy = "task",
    k: PassAt = _KS,
    resamples: Resamples = 2000,
    seed: DrawSeed = 0,
    out: Out = None,
    play: Play = False,
    suite: options.SuiteName = None,
    tasks: options.Tasks = None,
    seeds: options.Seeds = "0",
    split: options.Split = None,
    policy: options.Policy = None,
    planner: options.Planner = None,
    judge: options.Judge = None,
    grounder: options.Grounder = None,
    attempts: options.Attempts = None,
    temperature: options.Temperature = None,
    workers: options.Workers = None,
    max_steps: options.MaxSteps = None,
    config: options.ConfigFile = None,
    played_into: PlayedInto = Path("runs"),
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Evaluate runs: success, pass@k, failures, cost and milestones; compare phases and arms.

    Single answers: `mira eval grounding`, `planning`, `grids`, `texts`. Recorded steps: `mira eval steps`."""
    method = _Method(parse_ks(k), cluster, resamples, seed, as_json)
    played_by = {
        "policy": policy,
        "planner": planner,
        "judge": judge,
        "grounder": grounder,
        "attempts": attempts,
        "temperature": temperature,
        "workers": workers,
        "limits": {"max_steps": max_steps},
    }
    if critics is not None and curves is None:
        raise BadInput("--critics are those of --curves: add --curves EPISODE")
    if curves is not None and (play or runs or phases or arm):
        raise BadInput("--curves shows one episode: leave out runs, --phases, --arm and --play")
    if curves is not None:
        return show_curves(curves, critics, out, as_json=as_json)
    if not (play or runs or phases or arm):
        raise BadInput("nothing to evaluate: use a run's folder, --phases, --arm, --curves, or --play with --suite")
    if not play and (suite or tasks or seeds != "0" or split or config or options.without_none(played_by)):
        raise BadInput("tasks and policy are options of --play: add --play")
    if out is not None and not phases:
        raise BadInput("--out is the file for the heat maps of --phases, which name no phase")
    if baseline is not None and not arm:
        raise BadInput("--baseline is one of the arms of --arm: add --arm")
    if out is not None:
        check_target(out)
    files = discover_traces(runs) if runs else ()
    phase_groups, arm_groups = parse_phases(phases or ()), parse_arms(arm or ())
    drawn = [Phase(group.name, method.evaluation(group.files)) for group in phase_groups]
    table = _compare(arm_groups, baseline, method) if arm_groups else None
    complete = True
    if play:
        settings, selection = options.build_config(config, played_by), _selection(suite, tasks, seeds, split)
        selection = options.solved_tasks(selection, settings, named=tasks is not None, split=split)
        played, complete = _play(settings, selection, played_into, as_json)
        files = (*files, *played)
    evaluation = method.evaluation(files) if files else None
    if out is not None:
        write_phases(drawn, out)
    _print_json(evaluation, drawn, table, out) if as_json else _print(evaluation, drawn, table, out)
    return EXIT_OK if complete else EXIT_INTERRUPTED


def parse_ks(text: str) -> tuple[int, ...]:
    """Parses --k: `1,2,4` is (1, 2, 4). Raises BadInput."""
    words = options.split_names(text)
    if not words or not all(word.isdecimal() and 1 <= int(word) <= 1000 for word in words):
        raise BadInput(f"--k {text!r} is not a list of numbers from 1 to 1000: write for example 1,2,4,8")
    return tuple(dict.fromkeys(int(word) for word in words))


def _selection(suite: str | None, tasks: str | None, seeds: str, split: str | None) -> TaskSelection:
    if suite is None:
        raise BadInput("--play needs --suite, for example --suite miniwob --tasks login-user")
    return options.select(suite, options.chosen_names(tasks, "--tasks") or (), options.parse_seeds(seeds), split)


def _play(
    config: RunConfig, selection: TaskSelection, into: Path, as_json: bool
) -> tuple[tuple[EpisodeFile, ...], bool]:
    """Plays a run; returns its episodes, and whether all of them were played."""
    from agent.cli.display import RunDisplay

    with RunDisplay(stderr) if as_json else RunDisplay(stdout, stderr) as display:
        from agent.run import runner  # imports LangGraph and Playwright, which reading does not need

        result = asyncio.run(runner.run_suite(config, selection, into, (display,)))
    if not result.complete:
        print_problem(
            f"{len(result.episodes)} of {result.planned} episodes; continue with: mira resume {result.folder}"
        )
    return discover_traces([result.folder]), result.complete


def _compare(groups: Sequence[Group], baseline: str | None, method: _Method) -> ArmsTable:
    trials: list[Trial] = []
    assisted: defaultdict[str, list[Assisted | None]] = defaultdict(list)
    for group in groups:
        assert group.seed is not None, "parse_arms gives each run one"
        played = method.read(group.files).played
        trials += trials_of(group.name, group.seed, played)
        assisted[group.name] += [episode.assisted for episode in played if episode.judged]
    try:
        return compare_arms(
            trials,
            baseline=baseline,
            cluster=method.cluster,
            resamples=method.resamples,
            seed=method.seed,
            phases={group.name: group.phase for group in groups},
            experts={name: ExpertSteps.of(episodes) for name, episodes in assisted.items()},
        )
    except ValueError as error:
        raise BadInput(f"--arm: {error}") from None


def _print_json(
    evaluation: Evaluation | None, phases: Sequence[Phase], table: ArmsTable | None, out: Path | None
) -> None:
    print_json(
        {
            "evaluation": evaluation.model_dump(mode="json") if evaluation else None,
            "phases": [{"name": one.name} | one.evaluation.model_dump(mode="json") for one in phases],
            "arms": table.model_dump(mode="json") if table else None,
            "out": str(out) if out else None,
        }
    )


def _print(evaluation: Evaluation | None, phases: Sequence[Phase], table: ArmsTable | None, out: Path | None) -> None:
    parts = [
        *(tables.evaluation(evaluation) if evaluation else ()),
        *(tables.phases(phases) if phases else ()),
        *(tables.arms(table) if table else ()),
    ]
    for part in parts:
        if isinstance(part, tables.FittedTable):
            print_table(part)
        else:
            stdout.print(part)
    if out is not None:
        stdout.print(f"heat maps  {out}", highlight=False, soft_wrap=True, markup=False)
