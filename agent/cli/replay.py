"""`mira replay`: repeats a trace, heals it, or branches from it with another policy."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.prompt import Confirm
from rich.text import Text

from agent.cli import grants, options, role_options
from agent.cli import run as running
from agent.cli.output import EXIT_FAILED, EXIT_OK, print_json, print_table, printable, stderr, stdout
from agent.cli.outputs import output_folder
from agent.cli.tables import Column, FittedTable
from agent.cli.wait_notices import Notices
from agent.inspection.replay.records import Replay, ReplayedStep, Verdict
from envs.core.errors import BadInput
from envs.core.plain_values import merged

if TYPE_CHECKING:
    from agent.inspection.replay.steps import ReplayOptions

COLOURS = {Verdict.SAME: "green", Verdict.MOVED: "cyan", Verdict.MISSING: "red", Verdict.DIFFERENT: "yellow"}

_REPLAY_DEFAULTS = (1, None, "continue", 5.0)
"""Defaults of --from, --until, --on-difference and --patience."""
_REPLAY_SETTINGS = ("headed", "secrets", "trace_zip", "strict_original")
"""Settings that a replay without a branch takes."""

TracePath = Annotated[Path, typer.Argument(help="Trace, or folder of a run of one episode.", metavar="TRACE")]
Out = Annotated[
    Path | None,
    output_folder("Folder for the run of a branch, default: runs; or for the files of a replay, default: none kept."),
]
From = Annotated[int, typer.Option("--from", min=1, help="First step to list; earlier steps are repeated silently.")]
Until = Annotated[int | None, typer.Option("--until", min=1, help="Last step to repeat.")]
OnDifference = Annotated[str, typer.Option(help="On a missing or different step: continue or stop.")]
Patience = Annotated[float, typer.Option(min=0, max=60, help="Seconds to wait for an element that appears late.")]
Yes = Annotated[bool, typer.Option("--yes", help="Act on a live site without asking.")]


Branch = Annotated[str | None, typer.Option(help="Continue with this policy from step --at, as a new run.")]
At = Annotated[
    int | None,
    typer.Option(
        min=1, help="First step of the branch; default: the trace's key step, or the step at which a model failed."
    ),
]


Heal = Annotated[
    str | None,
    typer.Option(help="Repeat all steps as a new run; where one cannot be repeated, this policy continues."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="OLD=NEW",
        help="With --heal: type, choose or open NEW where the trace has OLD, in the task's words as well; repeatable.",
    ),
]


def replay(
    trace: TracePath,
    from_step: From = 1,
    until: Until = None,
    on_difference: OnDifference = "continue",
    patience: Patience = 5.0,
    heal: Heal = None,
    texts: Set = None,
    branch: Branch = None,
    at: At = None,
    planner: options.Planner = None,
    judge: options.Judge = None,
    rater: options.Rater = None,
    grounder: options.Grounder = None,
    base_url: role_options.BaseUrl = None,
    attempts: options.Attempts = None,
    max_steps: options.MaxSteps = None,
    max_seconds: options.MaxSeconds = None,
    temperature: options.Temperature = None,
    headed: options.Headed = False,
    secret: options.Secret = None,
    url: grants.Url = None,
    suite: grants.Suite = None,
    allow: options.Allow = None,
    storage_state: options.StorageState = None,
    upload_folder: options.UploadFolder = None,
    schema: options.Schema = None,
    langsmith: options.LangSmith = False,
    config: grants.Settings = None,
    without: grants.Without = None,
    trace_zip: options.TraceZip = False,
    strict_original: options.StrictOriginal = None,
    yes: Yes = False,
    out: Out = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Repeat a trace step by step, heal it, or branch from it with another policy.

    With --heal, the steps are repeated as a new run, without a model as long as they can be; planner and judge default
    to none. With --branch, another policy continues from step --at as a new run; planner, judge and limits default to
    the trace's.

    A trace that another machine wrote, or that was changed, cannot use secrets, files, servers or models of this
    machine: they are refused and named unless these options grant them.

    Exit code 0 if the outcome is the same, 1 if it differs, 2 on wrong input.
    """
    values = {
        "planner": planner,
        "judge": judge,
        "rater": rater,
        "grounder": grounder,
        "attempts": attempts,
        "temperature": temperature,
        "limits": {"max_steps": max_steps, "max_seconds": max_seconds},
        "headed": headed or None,
        "secrets": secret,
        "trace_zip": trace_zip or None,
        "strict_original": strict_original,
    }
    changes = options.without_none({**values, **role_options.base_urls(base_url)})
    session = {"allow": allow, "storage_state": storage_state, "upload_folder": upload_folder}
    places = {"url": url, "suite": suite, "session": session}
    granted = grants.granted({**places, "answer_schema": schema, "langsmith": langsmith or None}, config, without)
    policy = _policy_of_new_run(heal, branch, at, texts)
    may_act = _may_act(trace, policy, merged(changes, granted), yes=yes, as_json=as_json)
    if policy is not None:
        if (from_step, until, on_difference, patience) != _REPLAY_DEFAULTS:
            raise BadInput("--from, --until, --on-difference and --patience apply to a replay, not to a new run")
        changes |= {"may_act": may_act, "out": out or Path("runs"), "granted_settings": granted}
        return _new_run(trace, policy, changes | ({"at": at} if heal is None else {"texts": _texts(texts)}), as_json)
    unused = [name for name in values if name in changes and name not in _REPLAY_SETTINGS]
    if at is not None or base_url or unused:
        name = "at" if at is not None else "base_url" if base_url else unused[0]
        raise BadInput(f"--{name.replace('_', '-')} needs --branch or --heal")
    settings = {"headed": headed, "secrets": tuple(secret or ()), "trace_zip": trace_zip, "may_act": may_act}
    settings |= {"out": out, "strict_original": strict_original, "granted_settings": granted}
    return _replay(trace, _options(from_step, until, on_difference, patience), settings, as_json)


def _options(from_step: int, until: int | None, on_difference: str, patience: float) -> ReplayOptions:
    from agent.inspection.replay.steps import ReplayOptions

    if on_difference not in ("continue", "stop"):
        raise BadInput(f"--on-difference {on_difference!r}: use continue or stop")
    return ReplayOptions(from_step=from_step, until_step=until, on_difference=on_difference, patience_s=patience)


def _replay(trace: Path, chosen: ReplayOptions, settings: dict[str, Any], as_json: bool) -> int:
    from agent.inspection.replay.playback import replay_trace

    with Notices(None if as_json else stderr) as notices:

        def show_step(step: ReplayedStep) -> None:
            notices.clear()
            _show_step(step)

        done = asyncio.run(replay_trace(trace, chosen, on_step=None if as_json else show_step, **settings))
    if as_json:
        print_json(done.model_dump(mode="json") | {"same_outcome": done.same_outcome, "ok": done.ok})
    else:
        _show(done)
    return EXIT_OK if done.ok else EXIT_FAILED


def _policy_of_new_run(heal: str | None, branch: str | None, at: int | None, texts: list[str] | None) -> str | None:
    """The policy of --heal or --branch; None for a replay. Raises BadInput."""
    if heal is not None and branch is not None:
        raise BadInput("use either --heal or --branch, not both")
    if heal is not None and at is not None:
        raise BadInput("--at is for --branch: --heal repeats as many steps as it can")
    if texts and heal is None:
        raise BadInput("--set needs --heal: a policy continues where a step depends on the text")
    return branch if heal is None else heal


def _texts(texts: list[str] | None) -> dict[str, str]:
    """`OLD=NEW` of each `--set`. Raises BadInput."""
    pairs = [text.partition("=") for text in texts or ()]
    for text, (old, sign, _) in zip(texts or (), pairs, strict=True):
        if not old or not sign:
            raise BadInput(f"--set {text!r}: write OLD=NEW")
    return {old: new for old, _, new in pairs}


def _new_run(trace: Path, policy: str, settings: dict[str, Any], as_json: bool) -> int:
    """Plays a branch or, with `texts` in *settings*, a run that heals."""
    with running.display_of(as_json) as display:
        from agent.inspection.replay.branching import branch_trace, heal_trace

        play = heal_trace if "texts" in settings else branch_trace
        run = asyncio.run(
            play(
                trace,
                policy,
                listeners=running.listeners(display, as_json),
                approver=running.approver(display, as_json),
                **settings,
            )
        )
    if running.is_open(run):
        return running.finish_open(run, as_json)
    code = running.finish(run, as_json)
    lost = any(episode.outcome != "success" for episode in run.episodes)
    return EXIT_FAILED if code == EXIT_OK and lost else code


def _may_act(trace: Path, branch: str | None, granted: Mapping[str, Any], *, yes: bool, as_json: bool) -> bool:
    """Whether the replay may act on a live site. Prints what a trace of another machine would use. Raises BadInput."""
    from agent.inspection.replay.environment import permitted
    from agent.inspection.replay.playback import live_address, permitted_to_play, read_recording

    recording = read_recording(trace, to_branch=branch is not None)
    if branch is None:
        allowed = permitted_to_play(recording, granted)
    else:
        allowed = permitted(recording, {**granted, "policy": branch})
    if not recording.own:
        grants.print_grants(trace, allowed.grants)
    return yes or _confirmed(live_address(allowed.recording), as_json)


def _confirmed(live: str | None, as_json: bool) -> bool:
    """Asks a person whether to act on the live site *live*, if any; without a terminal the answer is no."""
    if live is None or as_json or not sys.stdin.isatty():
        return False
    return Confirm.ask(f"This trace acts on a live site. Click, type and submit at {live} again?", default=False)


def _show_step(step: ReplayedStep) -> None:
    """Prints a step when it has been repeated."""
    line = f"step {step.step}: {step.words}  {step.verdict.value}  {step.seconds:.1f} s"
    stderr.print(Text(printable(line), "dim"), soft_wrap=True)


def _show(done: Replay) -> None:
    stdout.print(Text.assemble(("task  ", "dim"), printable(done.task.id)))
    stdout.print(Text.assemble(("goal  ", "dim"), printable(done.instruction)))
    print_table(_steps(done))
    counts = ", ".join(f"{done.count(verdict)} {verdict.value}" for verdict in Verdict if done.count(verdict))
    stdout.print(f"{done.done} of {done.recorded} steps repeated: {counts or 'none listed'}", highlight=False)
    stdout.print(_outcome(done))


def _steps(done: Replay) -> FittedTable:
    table = FittedTable(
        Column("step", right=True),
        Column("verdict"),
        Column("action", wrap=28),
        Column("result", drop=1),
        Column("what changed", wrap=20),
    )
    for step in done.steps:
        result = step.status.value if step.status is not None else "not sent"
        changes = "; ".join(filter(None, (step.reason, step.note)))
        action = Text(step.words).append(f"\n{step.action}", "dim")
        table.row(str(step.step), Text(step.verdict.value, COLOURS[step.verdict]), action, result, changes)
    return table


def _outcome(done: Replay) -> Text:
    recorded = done.recorded_outcome or "unfinished"
    if done.outcome is None:
        return Text(f"outcome not checked: the replay ended early (recorded: {recorded})", "dim")
    if done.same_outcome is None:
        return Text(f"outcome {done.outcome}, recorded {recorded}: not comparable", "dim")
    text = f"outcome {done.outcome}, recorded {recorded}"
    evidence = f" ({done.score.evidence})" if done.score is not None and done.score.evidence else ""
    return Text(f"{text}: {'the same' if done.same_outcome else 'different'}{evidence}", _colour(done))


def _colour(done: Replay) -> str:
    return "green" if done.ok else "red"
