"""Real models on fixed task lists: success with intervals, calls, tokens, seconds, and unreadable answers by kind.

    python -m benchmarks.real_models play OUT --policy openai:qwen2.5-coder-1.5b --base-url http://127.0.0.1:8011/v1 \
        --list named --seeds 0-2 --arm free constrained=off --arm constrained constrained=on
    python -m benchmarks.real_models table OUT/results.json [--by-task] [--json]
    python -m benchmarks.real_models check OUT/results.json --least 0.6

Every arm has the settings of `mira run` that follow its name. It is one run for each seed, in OUT/NAME/seed-N, seed
after seed, so that few seeds of all arms are complete early. An interrupted run is continued. Each episode enters the
results file when it ends, unless it is broken (an outage of the model, for example). What the file has is not played
again, so that the file alone, without the traces, continues the experiment on another machine. The first arm is the
base of the paired differences: the same task and seed in both, with a bootstrap over whole tasks.

Every episode records the commit of Mira and its date. `play` and `table` warn in one line if a file mixes commits.
`check` exits 1 unless every file has all its episodes, enough of them are solved, and every answer could be read.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent import resume, run_suite
from agent.cli.options import parse_seeds, suite_tasks
from agent.cli.terminal import OutputClosed
from agent.config import RunConfig
from agent.episode.policy import REPEATS_NO_OP
from agent.progress import EpisodeEnded, Event
from agent.results import EpisodeResult
from envs.core.record import Record
from envs.core.tasks import TaskSelection
from envs.core.trace import Call, EndedBy
from envs.core.trace_store import Trace, read_trace
from envs.suites.miniwob.task_sets import LONGER_TASKS, NAMED_TASKS, PLANNING_TASKS
from judges.statistics import clustered_mean, proportion

ROOT: Final = Path(__file__).parents[1]
RESAMPLES: Final = 10_000
LISTS: Final = {"named": NAMED_TASKS, "long": LONGER_TASKS, "planning": PLANNING_TASKS}


class Row(Record):
    """One episode in numbers."""

    task: str
    seed: int
    success: bool
    ended_by: EndedBy
    steps: int
    milestones: float | None = None
    """Share of milestones reached; None without milestones."""
    calls: dict[str, int]
    """Calls of models by role; for the policy, answers that were not used are included."""
    unreadable: dict[str, int]
    """Answers of the policy without a valid action, by kind of error; quoted texts and numbers are left out."""
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    model_seconds: float
    seconds: float
    """Of the episode, models and browser together."""
    commit: str | None = None
    """Of Mira when it ended, as :func:`current_commit` names it; None: unknown, as in older files."""
    played_on: str | None = None
    """UTC, ISO 8601 date of its start; None in older files."""


class Arm(Record):
    """The settings of an arm and its episodes so far."""

    settings: dict[str, Any]
    rows: tuple[Row, ...] = ()


class Results(Record):
    """The results file."""

    policy: str
    tasks: tuple[str, ...]
    max_steps: int
    arms: dict[str, Arm]


class Figures(NamedTuple):
    """An arm over all of its episodes."""

    arm: str
    successes: int
    episodes: int
    success: str
    """Share of successes with Wilson's 95 % interval."""
    difference: str
    """Mean difference to the first arm over tasks and seeds of both, with a bootstrap over tasks; empty for it."""
    milestones: str
    """Mean share of milestones reached; empty without milestones."""
    calls: dict[str, float]
    """By role, in an episode."""
    tokens_in: float
    tokens_cached: float
    tokens_out: float
    """Tokens in an episode."""
    unreadable: dict[str, int]
    seconds: float
    """In an episode."""
    by_task: dict[str, float]


def current_commit() -> str:
    """The commit of this checkout, with `-dirty` if tracked files differ from it; the version of Mira without git."""
    command = ("git", "--no-optional-locks", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return metadata.version("mira-web")


def row_of(episode: EpisodeResult, commit: str | None = None) -> Row:
    """Reads the trace of an episode, which was played with *commit*."""
    trace = read_trace(episode.trace_path)
    calls = list(_calls(trace))
    errors = [call.error for call in calls if call.role == "policy" and call.error and call.error != REPEATS_NO_OP]
    return Row(
        task=episode.task.name,
        seed=episode.task.seed,
        success=episode.outcome == "success",
        ended_by=episode.ended_by,
        steps=episode.totals.steps,
        milestones=sum(episode.z) / len(episode.z) if episode.z else None,
        calls=dict(sorted(Counter(call.role for call in calls).items())),
        unreadable=dict(Counter(map(_kind, errors)).most_common()),
        tokens_in=sum(call.tokens_in for call in calls),
        tokens_cached=sum(call.tokens_cached for call in calls),
        tokens_out=sum(call.tokens_out for call in calls),
        model_seconds=round(sum(call.seconds for call in calls), 1),
        seconds=round(episode.totals.seconds, 1),
        commit=commit,
        played_on=trace.header.started_at[:10],
    )


def _calls(trace: Trace) -> Iterator[Call]:
    for step in trace.steps:
        yield from step.intent.calls
    for event in trace.events:
        yield from event.calls
    for plan in trace.plans:
        if plan.call is not None:
            yield plan.call
    if trace.footer is not None:
        yield from trace.footer.calls


def _kind(error: str) -> str:
    """The error without what it quotes, so that equal faults are counted together."""
    head = error.partition(". Expected")[0]
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'|\"[^\"]*\"", "…", head))[:80]


@dataclass(frozen=True, slots=True)
class Experiment:
    """Plays what the results file lacks."""

    results: Results
    file: Path
    """The results file."""
    out: Path
    """Folder of the runs."""
    common: Mapping[str, Any]
    """Settings of all arms."""
    commit: str
    """Of the episodes that are played."""

    def play(self, arms: Sequence[str], chosen: TaskSelection) -> None:
        """Plays the missing tasks of *chosen*, arm by arm within a seed."""
        for seed in chosen.seeds:
            for name in arms:
                missing = self._missing(name, seed)
                if missing:
                    print(f"{name}, seed {seed}: {len(missing)} episodes to play", file=sys.stderr)
                    self._play_run(name, replace(chosen, names=missing, seeds=(seed,)))
                    won = [row.success for row in self.results.arms[name].rows if row.seed == seed]
                    print(f"  {sum(won)} of {len(won)} solved", file=sys.stderr)

    def _missing(self, name: str, seed: int) -> tuple[str, ...]:
        played = {row.task for row in self.results.arms[name].rows if row.seed == seed}
        return tuple(task for task in self.results.tasks if task not in played)

    def _play_run(self, name: str, selection: TaskSelection) -> None:
        """Plays the run of an arm and a seed, or continues it."""
        (seed,) = selection.seeds
        folder = self.out / name / f"seed-{seed}"

        def listener(event: Event) -> None:
            if isinstance(event, EpisodeEnded):
                ended, totals = event.result, event.result.totals
                summary = f"{ended.outcome}, {totals.steps} steps, {totals.seconds:.0f} s"
                print(f"  {ended.task.name}: {summary}", file=sys.stderr)
                self._record(name, ended.model_copy(update={"folder": folder}), self.commit)

        before = self._commit_of(folder)
        if not (folder / "run.json").exists():
            config = RunConfig.model_validate({**self.common, **self.results.arms[name].settings})
            result = asyncio.run(run_suite(config, selection, folder.parent, [listener], run_id=folder.name))
        else:
            result = asyncio.run(resume(folder, [listener]))
            lacking = self._missing(name, seed)
            for episode in result.episodes:
                if episode.task.name in lacking:  # it ended before, so the listener did not get it
                    self._record(name, episode, before)
        if not result.complete:
            raise SystemExit(f"{folder}: interrupted; the same command continues")
        if broken := [episode.task.name for episode in result.episodes if episode.outcome == "broken"]:
            raise SystemExit(f"{folder}: broken: {', '.join(broken)}; the same command plays them again")
        if self._missing(name, seed):
            raise SystemExit(f"{folder} is a run of other tasks: remove it to play those that {self.file} lacks")

    def _commit_of(self, folder: Path) -> str | None:
        """The commit with which *folder* was played before, and notes this one: a results file may be lost, and the
        run's folder has no commit. None: none is noted, or several."""
        noted = folder.with_name(f"{folder.name}.commits")
        before = noted.read_text(encoding="utf-8").split() if noted.exists() else []
        if self.commit not in before:
            noted.parent.mkdir(parents=True, exist_ok=True)
            noted.write_text("".join(f"{commit}\n" for commit in (*before, self.commit)), encoding="utf-8")
        return before[0] if len(before) == 1 else None

    def _record(self, name: str, episode: EpisodeResult, commit: str | None) -> None:
        """Puts the row of *episode* in place of an earlier one of its task and seed, and writes the file. A broken
        episode says nothing about the policy and gets no row."""
        if episode.outcome == "broken":
            return
        arm, row = self.results.arms[name], row_of(episode, commit)
        others = (one for one in arm.rows if (one.task, one.seed) != (row.task, row.seed))
        self.results.arms[name] = arm.model_copy(update={"rows": (*others, row)})
        self.file.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.file.with_suffix(".partial")
        scratch.write_text(self.results.model_dump_json(indent=1) + "\n", encoding="utf-8")
        scratch.replace(self.file)


def figures(results: Results) -> list[Figures]:
    base, *_ = results.arms.values()
    return [_figures(name, arm, None if arm is base else base) for name, arm in results.arms.items() if arm.rows]


def _figures(name: str, arm: Arm, base: Arm | None) -> Figures:
    rows, won = arm.rows, sum(one.success for one in arm.rows)
    reached = [one.milestones for one in rows if one.milestones is not None]
    calls = sum((Counter(one.calls) for one in rows), Counter[str]())
    return Figures(
        arm=name,
        successes=won,
        episodes=len(rows),
        success=str(proportion(won, len(rows))),
        difference="" if base is None else difference(base.rows, rows),
        milestones=f"{sum(reached) / len(reached):.3f}" if reached else "",
        calls={role: round(count / len(rows), 2) for role, count in sorted(calls.items())},
        tokens_in=round(sum(one.tokens_in for one in rows) / len(rows), 1),
        tokens_cached=round(sum(one.tokens_cached for one in rows) / len(rows), 1),
        tokens_out=round(sum(one.tokens_out for one in rows) / len(rows), 1),
        unreadable=dict(sum((Counter(one.unreadable) for one in rows), Counter[str]()).most_common()),
        seconds=round(sum(one.seconds for one in rows) / len(rows), 1),
        by_task={task: _share(rows, task) for task in sorted({one.task for one in rows})},
    )


def _share(rows: Sequence[Row], task: str) -> float:
    own = [one.success for one in rows if one.task == task]
    return round(sum(own) / len(own), 3)


def difference(base: Sequence[Row], rows: Sequence[Row]) -> str:
    """Mean difference in success over the tasks and seeds of both."""
    before = {(one.task, one.seed): one.success for one in base}
    pairs = [
        (one.task, float(one.success) - float(before[one.task, one.seed]))
        for one in rows
        if (one.task, one.seed) in before
    ]
    return str(clustered_mean([value for _, value in pairs], [task for task, _ in pairs], resamples=RESAMPLES, seed=0))


def table(results: Results, *, by_task: bool = False) -> str:
    rows = figures(results)
    lines = ["| arm | solved | share | difference | milestones | calls | tokens in (cached) / out | unreadable | s |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for one in rows:
        calls = ", ".join(f"{role} {count:g}" for role, count in one.calls.items())
        tokens = f"{one.tokens_in:,.0f} ({one.tokens_cached:,.0f}) / {one.tokens_out:,.0f}"
        lines.append(
            f"| {one.arm} | {one.successes} of {one.episodes} | {one.success} | {one.difference} | {one.milestones} "
            f"| {calls} | {tokens} | {sum(one.unreadable.values())} | {one.seconds:.1f} |"
        )
    if by_task and rows:
        lines += ["", f"| task | {' | '.join(one.arm for one in rows)} |", f"|---|{'---|' * len(rows)}"]
        for task in results.tasks:
            shares = " | ".join(f"{one.by_task[task]:.2f}" if task in one.by_task else "" for one in rows)
            lines.append(f"| {task} | {shares} |")
    return "\n".join(lines)


def settings_of(words: Sequence[str]) -> dict[str, Any]:
    """`key=value` words as nested settings; a value is TOML, or text without quotes."""
    settings: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        try:
            parsed: Any = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            parsed = value
        *outer, last = key.split(".")
        place = settings
        for name in outer:
            place = place.setdefault(name, {})
        place[last] = parsed
    return settings


def mixed_commits(rows: Iterable[Row], *commits: str) -> str:
    """Says which commits *rows* are of, beside *commits*, and of how many episodes each; empty if they are of one."""
    counts = Counter([row.commit for row in rows])
    counts.update(dict.fromkeys(commits, 0))
    if len(counts) < 2:
        return ""
    listed = ", ".join(f"{commit or 'unknown'} ({count})" for commit, count in counts.items())
    return f"episodes of several commits of Mira, so prompts may differ: {listed}"


def _warn_if_mixed(file: Path, results: Results, *commits: str) -> None:
    if problem := mixed_commits((row for arm in results.arms.values() for row in arm.rows), *commits):
        print(f"{file}: {problem}", file=sys.stderr)


def problems(file: Path, least: float) -> list[str]:
    """Why the results in *file* do not count as played, each in one line; empty if they do: every arm has all its
    tasks, at least the share *least* of them is solved, and every answer could be read."""
    results, lines = read_results(file), list[str]()
    if not results.tasks or not results.arms:
        return [f"{file}: no tasks were played"]
    for name, arm in results.arms.items():
        played = {(row.task, row.seed) for row in arm.rows}
        seeds = sorted({seed for _, seed in played}) or [0]
        if missing := [
            f"{task} (seed {seed})" for seed in seeds for task in results.tasks if (task, seed) not in played
        ]:
            lines.append(f"{file}: {name} lacks {', '.join(missing)}")
        won, unreadable = sum(row.success for row in arm.rows), sum(sum(row.unreadable.values()) for row in arm.rows)
        if arm.rows and won / len(arm.rows) < least:
            lines.append(f"{file}: {name} solved {won} of {len(arm.rows)}, less than the share {least:g}")
        if unreadable:
            lines.append(f"{file}: {name} has {unreadable} answers that could not be read")
    return lines


def read_results(file: Path) -> Results:
    """Reads *file*. Ends with one line and exit code 2 if it cannot be read or is no results file."""
    try:
        return Results.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a results file of real_models"
        print(f"{file}: {reason}: play it first, or name another file", file=sys.stderr)
        raise SystemExit(2) from None


def _check(files: Sequence[Path], least: float) -> None:
    for file in files:
        for name, arm in read_results(file).arms.items():
            won, answers = sum(row.success for row in arm.rows), sum(row.calls.get("policy", 0) for row in arm.rows)
            seconds = sum(row.seconds for row in arm.rows)
            print(f"{file}: {name}: {won} of {len(arm.rows)} solved, {answers} answers, {seconds:.0f} s", flush=True)
    if lines := [line for file in files for line in problems(file, least)]:
        raise SystemExit("\n".join(lines))


def _share_of(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return share


def _play(options: argparse.Namespace) -> Results:
    suite = "sites" if options.split else "miniwob"
    named = [info.name for info in suite_tasks(suite, options.split)] if options.split else LISTS[options.list]
    asked = Results(
        policy=options.policy,
        tasks=tuple(options.tasks or named),
        max_steps=options.max_steps,
        arms={name: Arm(settings=settings_of(words)) for name, *words in options.arm},
    )
    file = options.results or options.out / "results.json"
    results, commit = _continued(asked, file) if file.exists() else asked, current_commit()
    _warn_if_mixed(file, results, commit)
    common = {
        "policy": options.policy,
        "base_url": options.base_url,
        "planner": "none",
        "judge": "state",
        "limits": {"max_steps": options.max_steps, "max_seconds": options.max_seconds},
    }
    chosen = TaskSelection(suite=suite, names=results.tasks, seeds=parse_seeds(options.seeds))
    Experiment(results, file, options.out, common, commit).play(tuple(asked.arms), chosen)
    return results


def _continued(asked: Results, file: Path) -> Results:
    """*asked* with the episodes of *file*; ends with one line where the file is of another experiment."""
    known = read_results(file)
    if (known.policy, known.tasks, known.max_steps) != (asked.policy, asked.tasks, asked.max_steps):
        raise SystemExit(f"{file} is of another policy, task list or number of steps: choose another --results")
    for name, arm in asked.arms.items():
        if name in known.arms and known.arms[name].settings != arm.settings:
            raise SystemExit(f"{file} has other settings for the arm {name}: choose another name or --results")
    return known.model_copy(update={"arms": known.arms | {n: a for n, a in asked.arms.items() if n not in known.arms}})


def _print(results: Results, *, by_task: bool, as_json: bool) -> None:
    if as_json:
        print(json.dumps([one._asdict() for one in figures(results)], indent=2), flush=True)
    else:
        print(table(results, by_task=by_task), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    played = commands.add_parser("play", help="play what the results file lacks")
    played.add_argument("out", type=Path, help="folder of the runs")
    played.add_argument("--results", type=Path, help="results file (OUT/results.json)")
    played.add_argument("--policy", required=True, help="model spec")
    played.add_argument("--base-url", help="server of an openai: spec")
    played.add_argument("--list", choices=sorted(LISTS), default="named", help="task list of MiniWoB++ (%(default)s)")
    played.add_argument("--split", help="a split of the suite `sites` in place of a list: train, validation or test")
    played.add_argument("--tasks", nargs="+", help="names of tasks in place of a list or a whole split")
    played.add_argument("--seeds", default="0-2", help="for example 0-2 or 1,3 (%(default)s)")
    played.add_argument("--max-steps", type=int, default=8)
    played.add_argument("--max-seconds", type=float, default=3600.0, help="limit of an episode (%(default)s)")
    played.add_argument("--arm", nargs="+", action="append", required=True, metavar="NAME KEY=VALUE")
    shown = commands.add_parser("table", help="print a results file")
    shown.add_argument("file", type=Path)
    for command in (played, shown):
        command.add_argument("--by-task", action="store_true", help="add the share of every task")
        command.add_argument("--json", action="store_true")
    checked = commands.add_parser("check", help="exit 1 unless all episodes of the files are played, solved and read")
    checked.add_argument("files", type=Path, nargs="+", metavar="FILE", help="every results file that must be there")
    share = "smallest share of episodes that must be solved, 0 to 1 (%(default)s)"
    checked.add_argument("--least", type=_share_of, default=0.0, metavar="SHARE", help=share)
    return parser


def main() -> None:
    options = _parser().parse_args()
    try:
        if options.command == "check":
            _check(options.files, options.least)
            return
        if options.command == "play":
            results = _play(options)
        else:
            results = read_results(options.file)
            _warn_if_mixed(options.file, results)
        _print(results, by_task=options.by_task, as_json=options.json)
    except BrokenPipeError:
        raise OutputClosed from None


if __name__ == "__main__":
    main()
