"""Declares the options of `mira run` and builds a :class:`agent.config.RunConfig` from them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import typer

from agent.cli.output import print_problem, stdout
from agent.cli.outputs import output_folder
from agent.config import (
    OPTIONS,
    ActionClass,
    RunConfig,
    check_retry_window,
    load_config,
    outdated_key_hints,
    parse_config,
)
from agent.run.oracle_tasks import check_solvable, plays_oracle, unsolvable
from envs.core.errors import BadInput, listed
from envs.core.plain_values import merged, read_toml
from envs.core.tasks import TaskInfo, TaskSelection
from models.specs import SERVED, takes_server

Policy = Annotated[
    str | None,
    typer.Option(help="Model spec of the policy, e.g. openai:gpt-4o; see `mira models`; default: embedded."),
]
Planner = Annotated[
    str | None,
    typer.Option(
        help="Planner: none, reference (the milestones of the task itself), same (the policy's model), or a model "
        "spec; default: reference; for an open task with a large model: same."
    ),
]
Judge = Annotated[
    str | None,
    typer.Option(
        help="Judge of the outcome and, unless --rater is given, of milestones: state (the checkers of the task "
        "itself), none, same (the planner's model), a model spec, or orm:MODEL (an outcome reward model that answers "
        "YES or NO); default: state; for an open task with a large model: same."
    ),
]
Rater = Annotated[
    str | None, typer.Option(help="Rater of milestones (AutoRater) in place of --judge, with the same values.")
]
Grounder = Annotated[
    str | None,
    typer.Option(
        help="Model spec of a grounder, or same: the policy describes controls in words, the grounder finds them on a "
        "screenshot."
    ),
]
Expert = Annotated[
    str | None,
    typer.Option(
        help="Label every state that the policy visits with the action of an expert: oracle, the suite's solver."
    ),
]
GrounderProfile = Annotated[
    str | None,
    typer.Option(help="Family of the grounder, which sets its coordinates: general, qwen3-vl, thousand …; or auto."),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="Server URL for openai: specs (vLLM, llama.cpp, Ollama), or for anthropic: or litellm: specs."),
]
Url = Annotated[str | None, typer.Option(help="Start URL of an open task.")]
SuiteName = Annotated[
    str | None,
    typer.Option("--suite", help="Play tasks of this suite, e.g. miniwob or sites, instead of an open task."),
]
Tasks = Annotated[str | None, typer.Option(help="Comma-separated task names of the suite; default: all.")]
Seeds = Annotated[str, typer.Option(help="Seeds, e.g. 0-4 or 1,3,8-9.")]
Split = Annotated[str | None, typer.Option(help="Use only this split: train, validation or test.")]
Workers = Annotated[int | None, typer.Option(min=1, max=64, help="Number of episodes in parallel; default: 1.")]
DemoWorkers = Annotated[int, typer.Option(min=1, max=64, help="Number of episodes in parallel.")]
Attempts = Annotated[int | None, typer.Option(min=1, help="Number of episodes per task instance; default: 1.")]
MaxSteps = Annotated[int | None, typer.Option(min=1, help="Maximum steps per episode; default: 30.")]
MaxSeconds = Annotated[
    float | None, typer.Option(min=0, help="Maximum seconds per episode; 0: no limit; default: 600.")
]
MaxTokens = Annotated[
    int | None, typer.Option(min=0, help="Maximum tokens per episode, over all roles; 0: no limit; default: 0.")
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        min=0, help="Maximum cost per episode in US dollars, of calls with known prices; 0: no limit; default: 0."
    ),
]
RetryWindow = Annotated[
    float | None,
    typer.Option(min=0, help="Seconds for which a call to an unavailable model is retried; 0: no retry; default: 100."),
]
Headed = Annotated[bool, typer.Option("--headed", help="Show the browser window.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        help="Allow requests to this origin besides --url's; repeatable. subresources:ORIGIN or subresources:* lets "
        "pages load scripts, styles, images and fonts from there, which can carry data out; see docs/boundary.md."
    ),
]
Proxy = Annotated[
    str | None,
    typer.Option(
        metavar="http://HOST:PORT",
        help="HTTP proxy behind which the sites are reached; [session.proxy] in --config takes its login and the hosts "
        "that are reached directly. Model calls use HTTPS_PROXY instead.",
    ),
]
Secret = Annotated[
    list[str] | None,
    typer.Option(
        help="Declare a secret as NAME=env:VARIABLE or NAME=file:PATH, optionally followed by @ORIGIN; the "
        "runtime types its value, which no model receives and nothing stores."
    ),
]
Tools = Annotated[
    str | None,
    typer.Option(
        "--tools", help="Tools of installed packages that the policy may call (comma-separated), see `mira doctor`."
    ),
]
Approve = Annotated[
    str | None,
    typer.Option(help="Ask before these actions: submit, navigation, download, upload, tool, all (comma-separated)."),
]
StorageState = Annotated[
    Path | None, typer.Option(help="Start with the cookies and storage of this file (Playwright's format).")
]
UploadFolder = Annotated[
    str | None, typer.Option(metavar="<path>", help="Allow uploads of files below this folder only.")
]
"""A string, because the path of an empty one is the current folder."""
Schema = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|JSON", help="JSON Schema that the answer must match, unless it is N/A: a file, or the schema {…}."
    ),
]
Screenshots = Annotated[
    str | None,
    typer.Option(
        help="Screenshots: off, steps (stored), plain (also shown to the policy), marks (shown with the numbers of the "
        "controls), or both (shown without and with numbers); default: off."
    ),
]
VisionProfile = Annotated[
    str | None,
    typer.Option(
        help="Family of a vision-language policy (coordinates, image sizes), see `mira models`; default: auto."
    ),
]
TraceZip = Annotated[bool, typer.Option("--trace-zip", help="Also keep Playwright's trace of each episode.")]
LangSmith = Annotated[
    bool,
    typer.Option("--langsmith", help="Trace to LangSmith, which sends page text, prompts and answers to its server."),
]
StrictOriginal = Annotated[
    bool | None,
    typer.Option(
        "--strict-original/--own-rules", help="Score WebArena tasks by the benchmark's original rules, or by Mira's."
    ),
]
Language = Annotated[
    str | None,
    typer.Option(
        help='Form of the policy\'s actions: program, do(action="Click", element="3"), or id, click [3]; default: '
        "program."
    ),
]
Rationale = Annotated[
    str | None,
    typer.Option(
        help="Characters of the rationale before an action, with the profiles small and large: auto, a number, or 0 "
        "for none; default: auto."
    ),
]
MaxActionsPerTurn = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=20,
        help="Maximum number of actions in one answer of the policy, with the profiles large and small, which sets 1 "
        "itself; default: 8.",
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        help="Prompt profile of the policy: auto, compact, small or large; see `mira models MODEL`; default: auto."
    ),
]
Constrained = Annotated[
    Literal["auto", "on", "off"] | None,
    typer.Option(
        help="Limit answers to actions that are valid on the page (constrained decoding: local, vLLM and llama.cpp "
        "models); on is refused for a model that takes no grammar; default: auto."
    ),
]
ConfirmStop = Annotated[
    Literal["auto", "on", "off"] | None,
    typer.Option(
        help="Ask a policy again that stops while the next milestone is open: auto (with full prompts), on or off; "
        "default: auto."
    ),
]
Milestones = Annotated[
    int | None,
    typer.Option("--milestones", min=1, max=20, help="Number of milestones in a plan of a model planner; default: 4."),
]
Temperature = Annotated[
    float | None, typer.Option(min=0, max=2, help="Sampling temperature of the policy; default: 0.")
]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="TOML file with settings; options override it.")]
Out = Annotated[Path, output_folder("Folder in which the run's folder is created.")]
Json = Annotated[bool, typer.Option("--json", help="Print only the result, as JSON, on stdout.")]


_CLASS_OF: Final[Mapping[str, str]] = {
    **dict.fromkeys(("send", "post", "order", "buy", "pay", "form"), "submit"),
    **dict.fromkeys(("goto", "open", "visit", "link"), "navigation"),
    "save": "download",
    "attach": "upload",
    **dict.fromkeys(("any", "every", "everything"), "all"),
}
"""Other words for the classes of `--approve`, whose spelling is not close to the class."""


def _set_wide(wide: bool) -> bool:
    stdout.wide = wide
    return wide


Wide = Annotated[
    bool, typer.Option("--wide", callback=_set_wide, help="Show every column of the tables at full width.")
]
"""Its callback applies it while options are parsed, so commands that declare it can ignore the value."""


def build_config(path: Path | None, values: dict[str, Any]) -> RunConfig:
    """Builds one configuration from the file and the options; options that are None are not set. Raises BadInput, also
    for a `base_url` of the options that no model uses."""
    options = without_none(values)
    if path is not None:
        report_outdated_keys(read_toml(path), path)
    config = load_config(path, options) if path is not None else parse_config(merged({}, options), OPTIONS)
    if "base_url" in options:
        from agent.run.role_models import check_shared_base_url  # imports the judges, which not every command needs

        check_shared_base_url(config)
    return check_retry_window(config)


def check_base_url(base_url: str | None, specs: Sequence[str], option: str) -> None:
    """Raises BadInput where none of the models *specs*, which *option* names, uses the server of `--base-url`. A wrong
    spec is reported when its model is made."""
    if base_url is None or any(takes_server(spec) for spec in specs):
        return
    named = f" ({', '.join(specs)})" if specs else ""
    raise BadInput(
        f"--base-url {base_url}: no model of this command uses it{named}: leave it out, or choose a model that takes a "
        f"server with {option}: {SERVED}"
    )


def report_outdated_keys(values: Mapping[str, Any], path: Path) -> None:
    """Prints one line for each key of the file at *path* that was renamed or has no effect any more."""
    for hint in outdated_key_hints(values, str(path)):
        print_problem(hint)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parses seeds: `0-4` is 0, 1, 2, 3, 4; commas join lists. Raises BadInput."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part)
        if match is None:
            raise BadInput(f"--seeds {text!r} is not a list of seeds: write for example 0-4 or 1,3,8")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first > 100_000:
            raise BadInput(f"--seeds {part!r} is not a range of at most 100000 seeds from low to high")
        seeds += range(first, last + 1)
    return tuple(dict.fromkeys(seeds))


def split_names(text: str | None) -> tuple[str, ...]:
    """Splits comma-separated names; blanks are ignored."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def chosen_names(text: str | None, option: str) -> tuple[str, ...] | None:
    """Splits the comma-separated names of *option*; None if it is not set. Raises BadInput if it names nothing, so that
    an empty shell variable is no choice."""
    if text is not None and not split_names(text):
        raise BadInput(f"{option} {text!r} names nothing: give a name, or omit it")
    return None if text is None else split_names(text)


def approved_classes(text: str | None) -> tuple[str, ...] | None:
    """Splits the classes of --approve; None if it is not set. Raises BadInput for an unknown one."""
    names = chosen_names(text, "--approve")
    known: tuple[str, ...] = get_args(ActionClass)
    for name in names or ():
        if name not in known:
            meant = [_CLASS_OF[name]] if name in _CLASS_OF else difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {meant[0]}?" if meant else ""
            raise BadInput(f"--approve: unknown action {name!r}: use {', '.join(known)}{hint}")
    return names


def suite_tasks(suite: str, split: str | None = None) -> Sequence[TaskInfo]:
    """The tasks of a suite, or of one split of it. Raises BadInput for an unknown suite or split."""
    from agent.run.suites import (
        known_suite,
    )  # imports Playwright, which not every command needs

    infos = known_suite(suite).infos()
    splits = {info.split for info in infos}
    if split is not None and split not in splits:
        known = f"known are {', '.join(sorted(splits))}" if splits != {""} else f"the suite {suite} has none"
        raise BadInput(f"--split {split!r} is unknown: {known}")
    return [info for info in infos if split in (None, info.split)]


def select(suite: str, names: Sequence[str], seeds: tuple[int, ...], split: str | None = None) -> TaskSelection:
    """Selects the named tasks, or all of the suite or split, on *seeds*. Raises BadInput for an unknown name."""
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
    """Removes tasks without a solver from *selection* if *config* plays the oracle.

    Prints which tasks were left out. Raises BadInput if they were *named*, or if no task remains.
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
    """Raises BadInput if the task exists, but not in *split*."""
    own = next((info.split for info in suite_tasks(suite) if info.name == name), None) if split is not None else None
    if own is not None:
        raise BadInput(f"--tasks: {name} is in split {own}, not in {split}: use --split {own}, or omit --split")


def number_or_auto(text: str | None, option: str, unit: str) -> int | str | None:
    """Parses an *option* that is `auto` or a number of *unit*; None if it is not set."""
    if text is None or text == "auto":
        return text
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise BadInput(f"{option} {text!r} is not a number of {unit} or auto")
    return int(text)


def without_none(values: dict[str, Any]) -> dict[str, Any]:
    """*values* without None and without empty tables."""
    kept: dict[str, Any] = {}
    for key, value in values.items():
        inner = without_none(value) if isinstance(value, dict) else value
        if inner is not None and inner != {}:
            kept[key] = inner
    return kept
