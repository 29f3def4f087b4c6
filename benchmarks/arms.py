"""The table of arms: every arm × seed of one configuration, one after the other, resumable, results as they come.

    python -m benchmarks.arms play -c training/configs/tiny-miniwob.toml --arms mira,awr --seeds 0-2 --out runs/arms
    python -m benchmarks.arms table --out runs/arms --write docs/results/training_miniwob

`play` can be killed at any point and started again. Arms of one seed share what they would all play alike: the
evaluation of the start and the rollouts of the first phase. `table` reads what there is, writes FILE.json (every
episode of every evaluation, so that the table can be made again without the traces), FILE.md, and FILE.svg with the
curves of the runs that were measured as far. `--add FILE.json` adds what such a file holds of runs that are not under
`--out`: a table can be played on several machines. `--stride ARM=N` counts N phases of an arm as one, for an arm whose
phases are shorter (`mgrpo` in `mgrpo-miniwob.toml`: 4). `--variant NAME=FOLDER` adds what was played with other
settings (`play --set …`) into a folder of its own, as arms `ARM NAME`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from agent.cli.options import parse_seeds
from agent.cli.output import EXIT_INTERRUPTED
from agent.run.discover_traces import discover_traces
from benchmarks.percentages import points, rate, share
from envs.core.errors import BadInput
from training.loop.evaluation import ArmsTable, Trial, compare_arms
from training.loop.evaluation.curves import phase_curve, write_curves
from training.loop.evaluation.phases import is_finished
from training.loop.loop import Loop, Progress
from training.loop.metrics import PhaseMetrics
from training.loop.parts import read_record, run_location
from training.loop.settings import load_settings

START = "start"
"""The arm that learns nothing: the checkpoint from which all begin."""


class Learned(NamedTuple):
    """A run of the loop, phase by phase."""

    arm: str
    seed: int
    phases: Sequence[PhaseMetrics]


def play(config: Path, arms: Sequence[str], seeds: Sequence[int], out: Path, changes: Sequence[str]) -> None:
    """Seed after seed, so that a table of few seeds is whole early."""
    for seed in seeds:
        for arm in arms:
            folder = out / arm / f"seed-{seed}"
            shared = f'shared="{(out / "shared").resolve()}"'
            settings = load_settings(config, [*changes, f"arm={arm}", f"seed={seed}", shared])
            begun = time.monotonic()
            print(f"{arm}, seed {seed}", flush=True)
            folder.mkdir(parents=True, exist_ok=True)
            loop = Loop.open(folder, settings, (), lambda line: print(f"  {line}", flush=True))
            progress = asyncio.run(loop.run())
            rates = [f"{one.phase}: {share(one.evaluation.rate)}" for one in progress.phases if one.evaluation]
            print(f"  {', '.join(rates)}  ({time.monotonic() - begun:.0f} s)", flush=True)


def trials(out: Path, variant: str = "") -> Iterator[tuple[int, Trial]]:
    """(phase, trial) of every evaluation that was finished; the start counts once for each seed."""
    for path in sorted(out.glob("*/seed-*/phase-*/evaluation.json")):
        arm, seed = f"{path.parts[-4]}{variant}", int(path.parts[-3].removeprefix("seed-"))
        phase = int(path.parts[-2].removeprefix("phase-"))
        run = run_location(path)
        for file in discover_traces([run]) if is_finished(run) else ():
            trace = file.read()
            if trace.footer is None:
                continue
            known = trace.footer.outcome in ("success", "failure")
            success = trace.footer.outcome == "success" if known else None
            yield phase, Trial(arm, seed, trace.header.task.id, trace.header.attempt, success)


def table(
    out: Path,
    write: Path,
    last: int | None,
    rival: str,
    *,
    added: Sequence[Path] = (),
    variants: Sequence[str] = (),
    strides: Sequence[str] = (),
    heading: str = "",
) -> None:
    """*heading*: Markdown that FILE.md begins with. Raises BadInput where there is nothing to compare, or *rival* was
    not played as far."""
    measured, curves = list(trials(out)), list(_curves(out))
    names = [variant.partition("=")[0] for variant in variants]
    if twice := sorted(name for name, times in Counter(names).items() if times > 1):
        raise BadInput(f"--variant names {', '.join(twice)} twice: what was played would count twice")
    for variant in variants:
        name, _, folder = variant.partition("=")
        played = list(trials(Path(folder), f" {name}")) if folder else []
        if not played:
            raise BadInput(f"--variant {variant!r} is no NAME=FOLDER of a folder that `play` wrote evaluations into")
        measured += played
        curves += _curves(Path(folder), f" {name}")
    notes = "".join(_stride_notes(curves, strides))
    measured, curves = _in_strides(measured, curves, strides)
    for file in added:
        _add(file, measured, curves)
    if not measured:
        raise BadInput(f"{str(out)!r} holds no evaluation of any arm: `play` writes them")
    final = last if last is not None else max(phase for phase, _ in measured)
    done = Counter((one.arm, one.seed) for phase, one in measured if phase == final)
    if rival not in (arms := sorted({arm for arm, _ in done})):
        raise BadInput(f"no seed of --rival {rival} was measured after phase {final}, those of {', '.join(arms)} were")
    starts = {(one.seed, one.task, one.attempt): one._replace(arm=START) for phase, one in measured if phase == 0}
    seeds = {seed for _, seed in done}
    rows = [one for one in starts.values() if one.seed in seeds]
    rows += [one for phase, one in measured if phase == final]
    made = compare_arms(rows, baseline=START)
    rivals = compare_arms(rows, baseline=rival)
    curves.sort(key=lambda one: (one.arm, one.seed))
    tasks = sorted({one.task for _, one in measured})
    episodes = {name: [cell.get(task, "") for task in tasks] for name, cell in _cells(measured).items()}
    write.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "phase": final,
        "table": made.model_dump(mode="json"),
        "rivals": rivals.model_dump(mode="json"),
        "curves": [_curve_record(curve) for curve in curves],
        "tasks": tasks,
        "episodes": episodes,
    }
    write.with_suffix(".json").write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")
    text = heading + notes + markdown(made, rivals, curves, final) + "\n" + "\n".join(_by_task(rows)) + "\n"
    write.with_suffix(".md").write_text(text, encoding="utf-8")
    write_curves([phase_curve(*one) for one in curves if (one.arm, one.seed) in done], write.with_suffix(".svg"))
    print(text)


def _stride_notes(curves: Iterable[Learned], strides: Sequence[str]) -> Iterator[str]:
    """A paragraph for each arm of *strides* that was played."""
    played = {curve.arm: curve for curve in curves}
    for arm, _, number in (stride.partition("=") for stride in strides):
        if arm in played:
            phases = [phase for phase in played[arm].phases if phase.rollouts]
            rollouts = max((phase.rollouts.episodes for phase in phases if phase.rollouts), default=0)
            yield (
                f"`{arm}` plays {len(phases)} phases of {rollouts} rollouts; {number} of them count as one phase of "
                "the other arms.\n\n"
            )


def _in_strides(
    measured: Iterable[tuple[int, Trial]], curves: Iterable[Learned], strides: Sequence[str]
) -> tuple[list[tuple[int, Trial]], list[Learned]]:
    """The runs that were played, with N phases of each arm of *strides*, `ARM=N`, counted as one. Raises BadInput."""
    by_arm: dict[str, int] = {}
    for stride in strides:
        arm, _, number = stride.partition("=")
        if not number.isdecimal() or not int(number):
            raise BadInput(f"--stride {stride!r} is no ARM=N with a number of phases from 1")
        by_arm[arm] = int(number)

    def within(arm: str, phase: int) -> bool:
        return phase % by_arm.get(arm, 1) == 0

    return [(phase // by_arm.get(one.arm, 1), one) for phase, one in measured if within(one.arm, phase)], [
        curve._replace(
            phases=[
                phase.model_copy(update={"phase": phase.phase // by_arm.get(curve.arm, 1)})
                for phase in curve.phases
                if within(curve.arm, phase.phase)
            ]
        )
        for curve in curves
    ]


def _cells(measured: Sequence[tuple[int, Trial]]) -> dict[str, dict[str, str]]:
    """By arm, seed and phase the attempts at each task: 1 solved, 0 failed, ? not known."""
    cells: dict[str, dict[str, str]] = {}
    for phase, one in measured:
        attempts = cells.setdefault(f"{one.arm} seed {one.seed} phase {phase}", {})
        attempts[one.task] = attempts.get(one.task, "") + {True: "1", False: "0", None: "?"}[one.success]
    return cells


def _curve_record(curve: Learned) -> dict[str, Any]:
    return {**curve._asdict(), "phases": [phase.model_dump(mode="json") for phase in curve.phases]}


def _add(file: Path, measured: list[tuple[int, Trial]], curves: list[Learned]) -> None:
    """The runs of a table written before that are not among *curves* yet. Raises BadInput where it is no such file."""
    known = {(one.arm, one.seed) for one in curves}
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        read = [
            Learned(one["arm"], one["seed"], [PhaseMetrics.model_validate(phase) for phase in one["phases"]])
            for one in record["curves"]
        ]
        for name, cells in record["episodes"].items():
            arm, _, seed, _, phase = name.rsplit(" ", 4)
            if (arm, int(seed)) in known:
                continue
            for task, attempts in zip(record["tasks"], cells, strict=True):
                for attempt, cell in enumerate(attempts):
                    success = {"1": True, "0": False, "?": None}[cell]
                    measured.append((int(phase), Trial(arm, int(seed), task, attempt, success)))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"--add {str(file)!r} is no table that `table --write` made: {error}") from None
    curves += [one for one in read if (one.arm, one.seed) not in known]


def _curves(out: Path, variant: str = "") -> Iterator[Learned]:
    for path in sorted(out.glob("*/seed-*/progress.json")):
        progress = read_record(path, Progress)
        yield Learned(f"{progress.arm}{variant}", progress.seed, progress.phases)


def markdown(made: ArmsTable, rivals: ArmsTable, curves: Sequence[Learned], phase: int) -> str:
    """*rivals*: the same arms, compared with another baseline."""
    lines = [
        f"Success on {made.tasks} held-out task instances after phase {phase}; differences to `{made.baseline}` and to "
        f"`{rivals.baseline}` in points, with 95 % intervals over tasks and seeds together.",
        "",
        f"| arm | seeds | success | to `{made.baseline}` | to `{rivals.baseline}` | by seed |",
        "|---|---|---|---|---|---|",
    ]
    for arm, rival in zip(made.arms, rivals.arms, strict=True):
        by_seed = ", ".join(share(one.success) for one in arm.seeds)
        changes = " | ".join(points(one.change.both) if one.change is not None else "" for one in (arm, rival))
        lines.append(f"| {arm.arm} | {len(arm.seeds)} | {rate(arm.success)} | {changes} | {by_seed} |")
    lines += [
        "",
        "By phase: solved of the held-out instances, where it was measured; success in rollouts (sampled, training "
        "tasks that the curriculum chose, more and more of those that failed), and how many of all ended Stuck Midway.",
        "",
        "| arm | seed | held out | rollouts | stuck midway |",
        "|---|---|---|---|---|",
    ]
    for curve in curves:
        solved = ", ".join(f"{one.phase}: {one.evaluation.successes}" for one in curve.phases if one.evaluation)
        played = [one.rollouts for one in curve.phases if one.rollouts]
        rates = ", ".join(share(one.rate) for one in played)
        stuck = ", ".join(share(one.failures.get("stuck_midway", 0) / max(1, one.episodes)) for one in played)
        lines.append(f"| {curve.arm} | {curve.seed} | {solved} | {rates} | {stuck} |")
    return "\n".join(lines) + "\n"


def _by_task(rows: Sequence[Trial]) -> Iterator[str]:
    """Lines of a table: each task's share of successes, of all seeds, arm beside arm."""
    won: dict[str, dict[str, list[bool]]] = {}
    for one in rows:
        if one.success is not None:
            won.setdefault(one.task.rpartition("/")[0], {}).setdefault(one.arm, []).append(one.success)
    arms = [START, *sorted({one.arm for one in rows} - {START})]
    yield f"| task | {' | '.join(arms)} |"
    yield "|---" * (len(arms) + 1) + "|"
    for task, cells in sorted(won.items()):
        yield f"| {task} | {' | '.join(share(fmean(cells[arm])) if arm in cells else '' for arm in arms)} |"


def _heading(title: str) -> str:
    """Title, date, and the command of this process."""
    command = shlex.join(["python", "-m", "benchmarks.arms", *sys.argv[1:]])
    return f"# {title}\n\nWritten on {datetime.now(UTC):%Y-%m-%d} by:\n\n```sh\n{command}\n```\n\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    playing = commands.add_parser("play")
    playing.add_argument("-c", "--config", type=Path, required=True)
    playing.add_argument("--arms", required=True)
    playing.add_argument("--seeds", default="0-2")
    playing.add_argument("--set", action="append", default=[])
    telling = commands.add_parser("table")
    telling.add_argument("--write", type=Path, required=True)
    telling.add_argument("--title", default="Arms", help="heading of FILE.md")
    telling.add_argument("--phase", type=int, default=None)
    telling.add_argument("--add", type=Path, action="append", default=[], help="FILE.json of a table made before")
    telling.add_argument(
        "--variant",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="what was played into another --out, with other settings: its arms are called `ARM NAME`",
    )
    telling.add_argument(
        "--stride", action="append", default=[], metavar="ARM=N", help="N phases of ARM count as one, except in --add"
    )
    telling.add_argument("--rival", default="filtered_bc", help="an arm that all others are compared with, too")
    for one in (playing, telling):
        one.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    try:
        if args.command == "play":
            play(args.config, args.arms.split(","), parse_seeds(args.seeds), args.out, args.set)
        else:
            table(
                args.out,
                args.write,
                args.phase,
                args.rival,
                added=args.add,
                variants=args.variant,
                strides=args.stride,
                heading=_heading(args.title),
            )
    except BadInput as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        print("stopped; the same command continues", file=sys.stderr)
        return EXIT_INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
