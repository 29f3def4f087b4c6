"""The options of `mira run`, and how they become one :class:`agent.config.RunConfig`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from agent.cli.output import print_problem, stdout
from agent.config import OPTIONS, RunConfig, check_retry_window, load_config, outdated_key_hints, parse_config
from agent.run.oracle_tasks import check_solvable, listed, plays_oracle, unsolvable
from envs.core.errors import BadInput
from envs.core.plain_values import merged, read_toml
from envs.core.tasks import TaskInfo, TaskSelection

Policy = Annotated[str | None, typer.Option(help="Who acts: a model spec such as openai:gpt-4o; see `mira models`.")]
Planner = Annotated[str | None, typer.Option(help="Who plans: none, reference, same, or a model spec.")]
Judge = Annotated[str | None, typer.Option(help="Who judges: state, none, same, or a model spec.")]
BaseUrl = Annotated[str | None, typer.Option(help="Server for openai: specs (vLLM, llama.cpp, Ollama).")]
Url = Annotated[str | None, typer.Option(help="Where an open task starts.")]
SuiteName = Annotated[str | None, typer.Option("--suite", help="Play tasks of this suite instead of an open task.")]
Tasks = Annotated[str | None, typer.Option(help="Comma-separated task names of the suite; default all.")]
Seeds = Annotated[str, typer.Option(help="Seeds, e.g. 0-4 or 1,3,8-9.")]
Split = Annotated[str | None, typer.Option(help="Only templates of this split: train, validation or test.")]
Workers = Annotated[int | None, typer.Option(min=1, max=64, help="Episodes at the same time.")]
Attempts = Annotated[int | None, typer.Option(min=1, help="Episodes per task instance.")]
MaxSteps = Annotated[int | None, typer.Option(min=1, help="Steps per episode.")]
MaxSeconds = Annotated[float | None, typer.Option(min=0, help="Seconds per episode; 0: no limit.")]
MaxTokens = Annotated[int | None, typer.Option(min=0, help="Tokens per episode, all roles.")]
MaxCost = Annotated[float | None, typer.Option(min=0, help="US dollars per episode, where prices are known.")]
RetryWindow = Annotated[
    float | None,
    typer.Option(min=0, help="Seconds for which a model that does not answer is asked again; 0: it is asked once."),
]
ModelDeadline = Annotated[float | None, typer.Option(min=0.1, help="Seconds for one model call, retries included.")]
Headed = Annotated[bool, typer.Option("--headed", help="Show the browser window.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        help="Origin the run may reach besides --url's; repeat for more. subresources:ORIGIN or subresources:* lets "
        "pages load scripts, styles, pictures and fonts from there, which can carry data out: see docs/boundary.md."
    ),
]
Secret = Annotated[
    list[str] | None, typer.Option(help="NAME=env:VARIABLE[@origin]: typed below the model, stored nowhere.")
]
Approve = Annotated[
    str | None, typer.Option(help="Ask before these: submit, navigation, download, upload, all (comma-separated).")
]
StorageState = Annotated[Path | None, typer.Option(help="Cookies and storage to start with (Playwright's format).")]
UploadFolder = Annotated[Path | None, typer.Option(help="Only files below it may be uploaded.")]
Schema = Annotated[Path | None, typer.Option(help="JSON Schema that the answer must fit.")]
Screenshots = Annotated[str | None, typer.Option(help="off, steps, or marks (numbers drawn on, shown to the policy).")]
TraceZip = Annotated[bool, typer.Option("--trace-zip", help="Keep Playwright's trace of each episode as well.")]
LangSmith = Annotated[
    bool, typer.Option("--langsmith", help="Trace to LangSmith: page text, prompts and answers are sent to its server.")
]
StrictOriginal = Annotated[
    bool | None,
    typer.Option("--strict-original/--own-rules", help="WebArena: score by the benchmark's own rules, to the letter."),
]
Language = Annotated[str | None, typer.Option(help="Action language: program or id.")]
Thinking = Annotated[str | None, typer.Option(help="Thinking tokens of planner and judge: 0, 256 … 16384, or auto.")]
Milestones = Annotated[int | None, typer.Option("--milestones", help="Milestones that a model planner makes.")]
Temperature = Annotated[float | None, typer.Option(min=0, max=2, help="Of the policy.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="TOML file with any setting; options win over it.")]
Out = Annotated[Path, typer.Option(help="Folder that runs are written to.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else, on stdout.")]


def _set_wide(wide: bool) -> bool:
    stdout.wide = wide
    return wide


Wide = Annotated[
    bool, typer.Option("--wide", callback=_set_wide, help="Show every column of the tables, however wide they get.")
]
"""Parsing it is what sets it: the commands that take it need not look at it."""


def build_config(path: Path | None, values: dict[str, Any]) -> RunConfig:
    """One configuration from the file and the options given; options that are None were not given."""
    given = without_none(values)
    if path is not None:
        report_outdated_keys(read_toml(path), path)
    config = load_config(path, given) if path is not None else parse_config(merged({}, given), OPTIONS)
    return check_retry_window(config)


def report_outdated_keys(values: Mapping[str, Any], path: Path) -> None:
    """Prints one line for each key of the file at *path* that was renamed or has no effect any more."""
    for hint in outdated_key_hints(values, str(path)):
        print_problem(hint)


def parse_seeds(text: str) -> tuple[int, ...]:
    """`0-4` is 0, 1, 2, 3, 4; lists are joined by commas. Raises BadInput."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part)
        if match is None:
            raise BadInput(f"--seeds {text!r} is no list of seeds: write for example 0-4 or 1,3,8")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first > 100_000:
            raise BadInput(f"--seeds {part!r} is no range of at most 100000 seeds from low to high")
        seeds += range(first, last + 1)
    return tuple(dict.fromkeys(seeds))


def split_names(text: str | None) -> tuple[str, ...]:
    """Comma-separated names, blanks ignored."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def suite_tasks(suite: str, split: str | None = None) -> Sequence[TaskInfo]:
    """What a suite, or one split of it, offers. Raises BadInput for an unknown one."""
    from agent.run.environments import (
        known_suite,
    )  # brings the browser's library with it, which not every command needs

    infos = known_suite(suite).infos()
    splits = {info.split for info in infos}
    if split is not None and split not in splits:
        known = f"known are {', '.join(sorted(splits))}" if splits != {""} else f"the suite {suite} has none"
        raise BadInput(f"--split {split!r} is unknown: {known}")
    return [info for info in infos if split in (None, info.split)]


def select(suite: str, names: Sequence[str], seeds: tuple[int, ...], split: str | None = None) -> TaskSelection:
    """The tasks named, or all of the suite's (or of one split), on *seeds*. Raises BadInput naming what is unknown."""
    known = [info.name for info in suite_tasks(suite, split)]
    for name in names:
        if name not in known:
            _check_split(suite, name, split)
            close = difflib.get_close_matches(name, known, n=3)
            hint = f"did you mean {', '.join(close)}?" if close else f"list them with: mira tasks --suite {suite}"
            raise BadInput(f"--tasks: the suite {suite} has no task {name!r}; {hint}")
    return TaskSelection(suite, tuple(names) or tuple(known), seeds)


def solved_tasks(
    selection: TaskSelection, config: RunConfig, *, named: bool, split: str | None = None
) -> TaskSelection:
    """*selection* as *config* can play it: an oracle plays only tasks that ship a solver.

    Others are left out, and it says so; where they were *named*, or nothing is left, it raises BadInput.
    """
    if not plays_oracle(config, selection.suite) or not selection.names:
        return selection
    infos = suite_tasks(selection.suite, split)
    missing = unsolvable(selection.names, infos)
    if named or len(missing) == len(selection.names):
        check_solvable(config, selection.suite, selection.names, infos)
    if missing:
        print_problem(
            f"left out: {len(missing)} of {len(selection.names)} tasks ship no solver for the policy "
            f"{config.policy!r}: {listed(missing)}"
        )
    return replace(selection, names=tuple(name for name in selection.names if name not in missing))


def _check_split(suite: str, name: str, split: str | None) -> None:
    """Raises BadInput where the task exists and only *split* leaves it out."""
    own = next((info.split for info in suite_tasks(suite) if info.name == name), None) if split is not None else None
    if own is not None:
        raise BadInput(f"--tasks: {name} is in split {own}, not in {split}: say --split {own}, or leave --split out")


def thinking_budget(text: str | None) -> int | str | None:
    """`auto`, a number, or None where the option was not given."""
    if text is None or text == "auto":
        return text
    if not text.isdigit():
        raise BadInput(f"--thinking {text!r} is neither a number of tokens nor auto")
    return int(text)


def without_none(values: dict[str, Any]) -> dict[str, Any]:
    """What was given, empty tables left out."""
    kept: dict[str, Any] = {}
    for key, value in values.items():
        inner = without_none(value) if isinstance(value, dict) else value
        if inner is not None and inner != {}:
            kept[key] = inner
    return kept
