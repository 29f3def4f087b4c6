"""`mira run`, `mira resume`, `mira demo`: the commands that play episodes.

The runner imports LangGraph and Playwright, so it is imported only when episodes are played.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.prompt import Confirm
from rich.text import Text

from agent.cli import grants, options, role_options
from agent.cli.display import RunDisplay, result_table
from agent.cli.output import (
    EXIT_FAILED,
    EXIT_IMPOSSIBLE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    counting,
    print_json,
    print_problem,
    print_table,
    printable,
    stderr,
    stdout,
)
from agent.cli.terminal import printable_lines
from agent.config import RunConfig
from agent.episode.approval import ApprovalRequest, Approver
from agent.episode.refused_origins import print_refused
from agent.progress import Event, Listener, RunStarted
from agent.results import EpisodeResult, RunResult
from agent.run.open_defaults import roles_line, with_open_defaults
from agent.run.run_store import RunFolder, with_resume_hint
from envs.core.actions import DOWNLOADS
from envs.core.errors import BadInput
from envs.core.local_key import local_key
from envs.core.tasks import TaskSelection
from envs.security.allowlist import Origins
from models.specs import own_temperature

Instruction = Annotated[str | None, typer.Argument(help="Task in words; needs --url.", metavar="INSTRUCTION")]
_NO_TASK: Final = 'a task and a URL are needed: mira run "Find …" --url https://…, or mira run --suite miniwob'
CLOSED_SUITES = frozenset(("miniwob", "sites"))
"""Suites that need no other origin: `--allow` adds nothing to them."""
SHOWN_DOWNLOADS = 10
"""Most downloaded files that the result of a run names."""
DEMO_TASKS = (
    "click-test-2",
    "click-button",
    "click-link",
    "click-checkboxes",
    "click-option",
    "click-tab-2",
    "enter-text",
    "enter-password",
    "login-user",
    "choose-list",
)


def run(
    instruction: Instruction = None,
    url: options.Url = None,
    suite: options.SuiteName = None,
    tasks: options.Tasks = None,
    seeds: options.Seeds = "0",
    split: options.Split = None,
    policy: options.Policy = None,
    planner: options.Planner = None,
    judge: options.Judge = None,
    rater: options.Rater = None,
    grounder: options.Grounder = None,
    grounder_profile: options.GrounderProfile = None,
    expert: options.Expert = None,
    base_url: role_options.BaseUrl = None,
    workers: options.Workers = None,
    attempts: options.Attempts = None,
    max_steps: options.MaxSteps = None,
    max_seconds: options.MaxSeconds = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    retry_window: options.RetryWindow = None,
    model_deadline: role_options.ModelDeadline = None,
    headed: options.Headed = False,
    allow: options.Allow = None,
    proxy: options.Proxy = None,
    secret: options.Secret = None,
    tools: options.Tools = None,
    approve: options.Approve = None,
    storage_state: options.StorageState = None,
    upload_folder: options.UploadFolder = None,
    schema: options.Schema = None,
    screenshots: options.Screenshots = None,
    vision_profile: options.VisionProfile = None,
    trace_zip: options.TraceZip = False,
    langsmith: options.LangSmith = False,
    strict_original: options.StrictOriginal = None,
    language: options.Language = None,
    profile: options.Profile = None,
    thinking: role_options.Thinking = None,
    reasoning: role_options.Reasoning = None,
    policy_thinking: role_options.PolicyThinking = None,
    rationale: options.Rationale = None,
    max_actions_per_turn: options.MaxActionsPerTurn = None,
    constrained: options.Constrained = None,
    confirm_stop: options.ConfirmStop = None,
    milestones: options.Milestones = None,
    temperature: options.Temperature = None,
    config: options.ConfigFile = None,
    out: options.Out = Path("runs"),
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Run one task at a URL, or tasks of a suite.

    Exit codes: 0 suite played, task succeeded, or ended by the policy without a judge; 1 task failed, broke, reached a
    limit or had an action declined, the browser did not start in time, or the disk is full; 2 wrong input, or Chromium
    is missing or cannot start; 3 the policy answered N/A: the task cannot be done; 130 interrupted."""
    values = {
        **{"policy": policy, "planner": planner, "judge": judge, "rater": rater, "grounder": grounder, "k": milestones},
        **role_options.base_urls(base_url),
        **{"grounder_profile": grounder_profile, "expert": expert, "max_actions_per_turn": max_actions_per_turn},
        **{"workers": workers, "attempts": attempts, "headed": headed or None, "secrets": secret},
        **{"approve": options.approved_classes(approve), "tools": options.chosen_names(tools, "--tools")},
        **{"answer_schema": schema, "screenshots": screenshots, "vision_profile": vision_profile, "profile": profile},
        **{"trace_zip": trace_zip or None, "langsmith": langsmith or None, "strict_original": strict_original},
        **{"language": language, "temperature": temperature, "constrained": constrained, "confirm_stop": confirm_stop},
        **{"rationale": options.number_or_auto(rationale, "--rationale", "characters"), "retry_window_s": retry_window},
        **role_options.role_values(model_deadline, thinking, reasoning, policy_thinking),
        "limits": _limits(max_steps, max_seconds, max_tokens, max_cost),
        "session": _session(allow, proxy, storage_state, upload_folder),
    }
    settings = options.build_config(config, values)
    if suite is not None:
        if instruction is not None or url is not None:
            raise BadInput("use either a task in words with --url, or --suite, not both")
        return _play_suite(settings, _selection(settings, suite, tasks, seeds, split), out, as_json)
    _check_suite_options(tasks, seeds, split)
    if instruction is None or not url:
        raise BadInput(_NO_TASK if instruction is None else "the task has no URL: add --url ADDRESS")
    return _play_open(settings, instruction, url, out, as_json)


def _session(
    allow: list[str] | None, proxy: str | None, storage_state: Path | None, upload_folder: str | None
) -> dict[str, Any]:
    files = {"storage_state": storage_state, "upload_folder": upload_folder}
    return {"allow": allow, "proxy": {"server": proxy}, **files}


def _limits(
    steps: int | None, seconds: float | None, tokens: int | None, cost_usd: float | None
) -> dict[str, float | None]:
    return {"max_steps": steps, "max_seconds": seconds, "max_tokens": tokens, "max_cost_usd": cost_usd}


def _selection(config: RunConfig, suite: str, tasks: str | None, seeds: str, split: str | None) -> TaskSelection:
    selection = options.select(suite, options.chosen_names(tasks, "--tasks") or (), options.parse_seeds(seeds), split)
    return options.solved_tasks(selection, config, named=tasks is not None, split=split)


def _check_suite_options(tasks: str | None, seeds: str, split: str | None) -> None:
    """Raises BadInput for an option that needs --suite."""
    for name, value in (("--tasks", tasks), ("--seeds", seeds if seeds != "0" else None), ("--split", split)):
        if value is not None:
            raise BadInput(f"{name} selects tasks of a suite: add --suite, or omit it")


def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of a run, e.g. runs/20260101-120000-ab12.", metavar="RUN")],
    url: grants.Url = None,
    suite: grants.Suite = None,
    parent: grants.Parent = None,
    policy: options.Policy = None,
    planner: options.Planner = None,
    judge: options.Judge = None,
    rater: options.Rater = None,
    grounder: options.Grounder = None,
    base_url: role_options.BaseUrl = None,
    max_steps: options.MaxSteps = None,
    max_seconds: options.MaxSeconds = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    retry_window: options.RetryWindow = None,
    model_deadline: role_options.ModelDeadline = None,
    thinking: role_options.Thinking = None,
    reasoning: role_options.Reasoning = None,
    policy_thinking: role_options.PolicyThinking = None,
    allow: grants.Allow = None,
    secret: grants.Secret = None,
    tools: grants.Tools = None,
    storage_state: grants.StorageState = None,
    upload_folder: grants.UploadFolder = None,
    schema: grants.Schema = None,
    langsmith: grants.LangSmith = False,
    config: grants.Settings = None,
    without: grants.Without = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Continue a run that was killed or interrupted, or whose model failed, without repeating a committed action.

    Models, their server, their thinking and timeouts, and limits are the run's unless given. Episodes that a limit
    ended continue if it is raised; what they used before counts.

    A run that another machine wrote, or that was changed, cannot use secrets, files, servers or models of this machine:
    they are refused and named unless these options grant them."""
    from agent.run.foreign_resume import preview_resume

    limits = _limits(max_steps, max_seconds, max_tokens, max_cost)
    models = {"policy": policy, "planner": planner, "judge": judge, "rater": rater, "grounder": grounder}
    calls = role_options.role_values(model_deadline, thinking, reasoning, policy_thinking)
    servers = role_options.base_urls(base_url)
    changes = options.without_none({**models, **servers, **calls, "retry_window_s": retry_window, "limits": limits})
    session = {"allow": allow, "storage_state": storage_state, "upload_folder": upload_folder}
    places = {"url": url, "suite": suite, "parent": parent}
    files = {"answer_schema": schema, "langsmith": langsmith or None, "session": session}
    values = {**places, "secrets": secret, "tools": options.chosen_names(tools, "--tools"), **files}
    granted = grants.granted(values, config, without)
    review = preview_resume(RunFolder(folder), granted, changes)
    if review is not None and not review.own:
        grants.print_grants(folder, review.given)
    with display_of(as_json) as display:
        from agent.run import runner

        listening, asking = listeners(display, as_json), approver(display, as_json)
        result = asyncio.run(runner.resume(folder, listening, approver=asking, granted_settings=granted, **changes))
    return finish_open(result, as_json) if is_open(result) else finish(result, as_json)


def demo(
    policy: options.Policy = None,
    seeds: options.Seeds = "0-2",
    workers: options.DemoWorkers = 2,
    out: options.Out = Path("runs"),
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Play ten MiniWoB++ tasks in Chromium with the embedded model.

    The tasks' reference milestones are the plan, and their checkers judge."""
    settings = options.build_config(None, {"policy": policy, "workers": workers, "limits": {"max_steps": 12}})
    selection = options.select("miniwob", DEMO_TASKS, options.parse_seeds(seeds))
    return _play_suite(settings, selection, out, as_json)


def display_of(as_json: bool) -> RunDisplay:
    """A display of a run on stdout, or with `--json` on stderr and without wait notices."""
    return RunDisplay(stderr) if as_json else RunDisplay(stdout, stderr)


def _play_open(requested: RunConfig, instruction: str, url: str, out: Path, as_json: bool) -> int:
    config = with_open_defaults(requested)
    with display_of(as_json) as display:
        from agent.run import runner

        listening = (_roles_notice(display, requested, config, as_json), *listeners(display, as_json))
        asking = approver(display, as_json)
        result = asyncio.run(runner.run_open(config, instruction, url, out, listening, approver=asking))
    return finish_open(result, as_json)


def _roles_notice(display: RunDisplay, requested: RunConfig, config: RunConfig, as_json: bool) -> Listener:
    """Prints planner and judge as the first line of a run; with --json only if they were chosen by default."""

    def notify(event: Event) -> None:
        if isinstance(event, RunStarted) and (config != requested or not as_json):
            with display.paused() as console:
                console.print(Text(printable(roles_line(requested, config))), soft_wrap=True)

    return notify


def _play_suite(config: RunConfig, selection: TaskSelection, out: Path, as_json: bool) -> int:
    with display_of(as_json) as display:
        from agent.run import runner

        result = asyncio.run(
            runner.run_suite(config, selection, out, listeners(display, as_json), approver=approver(display, as_json))
        )
    return finish(result, as_json)


def is_open(result: RunResult) -> bool:
    """Whether the episodes of *result* are an open task."""
    from envs.suites.open_web import SUITE  # imports Playwright, which not every command needs

    return any(episode.task.suite == SUITE for episode in result.episodes)


def finish_open(result: RunResult, as_json: bool) -> int:
    """Does what `finish` does, and prints the answer of each attempt.

    Without a judge, an episode counts as done if the policy stopped it and no action was declined. The answer `N/A`
    has an exit code of its own, whatever a judge says of it. If attempts differ, a failed one decides, then one without
    an answer."""
    code = finish(result, as_json)
    if code != EXIT_OK:
        return code
    for episode in result.episodes:
        if episode.answer is not None and not as_json:
            name = "answer" if len(result.episodes) == 1 else f"answer of attempt {episode.attempt}"
            stdout.print(Text.assemble((f"{name}  ", "bold"), printable_lines(episode.answer)))
    codes = {_code_of(episode) for episode in result.episodes}
    return next((code for code in (EXIT_FAILED, EXIT_IMPOSSIBLE) if code in codes), EXIT_OK)


def _code_of(episode: EpisodeResult) -> int:
    """The exit code of one attempt of an open task."""
    if episode.impossible and not episode.declined and not episode.resumable:
        return EXIT_IMPOSSIBLE
    return EXIT_OK if _is_done(episode) else EXIT_FAILED


def _is_done(episode: EpisodeResult) -> bool:
    if episode.outcome == "unjudged":
        return episode.ended_by == "stop" and not episode.declined and not episode.resumable
    return episode.outcome == "success" and episode.ended_by != "declined"


def finish(result: RunResult, as_json: bool) -> int:
    """Prints the result of a run, writes its report, and returns the exit code."""
    from agent.inspection.report import explain_failures, write_report

    page, suites = None, {episode.task.suite for episode in result.episodes}
    if result.episodes:
        runs = (result.folder,)
        with (
            counting("episodes in the report", len(result.episodes), quiet=as_json) as progress,
            with_resume_hint(result.folder),
        ):
            page = write_report(runs, analyses=explain_failures(runs), on_progress=progress).path
    if as_json:
        print_json(
            {
                "run_id": result.run_id,
                "folder": str(result.folder),
                "report": str(page) if page else None,
                "downloads": [str(path) for path in result.downloads],
                "complete": result.complete,
                "resumable": result.resumable,
                "degraded": result.degraded,
                "expert_steps": None if result.expert_steps is None else result.expert_steps.by_expert,
                "planned": result.planned,
                "seconds": round(result.seconds, 3),
                "blocked_requests": [origin.model_dump(mode="json") for origin in result.blocked_requests],
                "episodes": [episode.model_dump(mode="json") for episode in result.episodes],
            }
        )
    else:
        print_table(result_table(result))
        print_refused(stdout, result.blocked_requests, admits=not suites <= CLOSED_SUITES)
        if result.degraded:
            failed = f"planner or rater failed in {result.degraded} of {len(result.episodes)} episodes"
            stdout.print(Text(f"{failed}: judged episodes among them count in all rates", "yellow"), soft_wrap=True)
        if result.expert_steps is not None:
            helped = f"{result.expert_steps.text}: the success is not the policy's alone"
            stdout.print(Text(helped, "yellow"), soft_wrap=True)
        stdout.print(Text(f"traces  {result.folder / 'episodes'}"), soft_wrap=True)
        if page is not None:
            stdout.print(Text(f"report  {page}"), soft_wrap=True)
        for path in result.downloads[:SHOWN_DOWNLOADS]:
            stdout.print(Text(f"file    {printable(str(path))}"), soft_wrap=True)
        if (more := len(result.downloads) - SHOWN_DOWNLOADS) > 0:
            stdout.print(f"and {more} more files in {result.folder / DOWNLOADS}", soft_wrap=True, highlight=False)
        if not result.complete:
            done = f"{len(result.episodes)} of {result.planned} episodes are done"
            stdout.print(Text(f"{done}; continue with: mira resume {result.folder}"), soft_wrap=True)
        elif result.resumable:
            missing = f"{result.resumable} of {result.planned} episodes lack a model's answer or their page"
            stdout.print(Text(f"{missing}{_continuation(result)}"), soft_wrap=True)
    return EXIT_OK if result.complete else EXIT_INTERRUPTED


def _continuation(result: RunResult) -> str:
    """How to continue episodes that lack a model's answer. With a model that its server refused the same would happen
    again."""
    command = f"mira resume {result.folder}"
    roles = sorted({episode.refused for episode in result.episodes if episode.resumable and episode.refused})
    if not roles:
        return f"; continue with: {command}"
    models = " ".join(f"--{role} MODEL" for role in roles)
    other = f"continue with another model: {command} {models}"
    return f": its server refused it; {other}, or remove the cause (key, name, length) and run {command}"


def listeners(display: RunDisplay, as_json: bool) -> tuple[Listener, ...]:
    """The listeners of a run: the display, and one that prints notices at the start."""

    def notify(event: Event) -> None:
        if not isinstance(event, RunStarted):
            return
        with display.paused() as console:
            if event.finished == event.planned:
                if not as_json:
                    console.print(Text(printable(_nothing_to_resume(event))), soft_wrap=True)
                return
            for notice in _notices(RunFolder(event.folder).read_manifest().config, as_json):
                print_problem(notice)

    return display, notify


def _nothing_to_resume(run: RunStarted) -> str:
    if run.planned == 1:
        return f"the episode of {run.folder} is finished; nothing to resume"
    return f"all {run.planned} episodes of {run.folder} are finished; nothing to resume"


def _notices(config: RunConfig, as_json: bool) -> list[str]:
    """Warnings before the first step: no terminal for approvals, data that leaves the machine, a run that cannot be
    marked as written here, a temperature that is not sent."""
    notices = [problem] if (problem := local_key().problem) else []
    if config.approve and not _can_ask(as_json):
        why = "--json was given" if as_json else "stdin is not a terminal"
        classes = ",".join(config.approve)
        notices.append(f"approve {classes}: no one can be asked ({why}), so these actions are declined")
    if config.secrets and Origins.parse(config.session.allow).has_subresources:
        notices.append("a page into which a secret is typed can send it to the origins of subresources: rules")
    if config.temperature > 0 and own_temperature(config.policy):
        notices.append(f"{config.policy} samples at its own temperature of 1: {config.temperature:g} is not sent")
    if config.langsmith:
        from agent.run.langsmith_tracing import langsmith_notice

        notices.append(langsmith_notice())
    return notices


def _can_ask(as_json: bool) -> bool:
    return not as_json and sys.stdin.isatty()


def approver(display: RunDisplay, as_json: bool) -> Approver | None:
    """Returns a function that asks for approval on the terminal while *display* is paused; None without a terminal.

    None declines every action that needs approval."""
    if not _can_ask(as_json):
        return None

    one_at_a_time = asyncio.Lock()

    async def ask(request: ApprovalRequest) -> bool:
        async with one_at_a_time:  # else concurrent questions read each other's answers
            with display.paused() as console:
                console.print(Text(f"\n{printable(request.question)}"), soft_wrap=True)
                for line in request.details:
                    console.print(Text(f"  {printable(line)}", "yellow"), soft_wrap=True)
                return await _confirm(console, f"allow ({', '.join(request.classes) or 'safety check'})?")

    return ask


async def _confirm(console: Console, question: str) -> bool:
    """Asks *question*; the answer is no if the terminal was closed.

    The waiting thread is a daemon: a thread of asyncio's executor would keep the process alive until Enter is
    pressed."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bool] = loop.create_future()

    def reply(approved: bool) -> None:
        if not answer.done():
            answer.set_result(approved)

    def wait() -> None:
        # A signal that the kernel delivers to this thread would not wake the event loop of the main thread.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        approved = False
        with suppress(EOFError, OSError):
            approved = Confirm.ask(question, console=console, default=False)
        with suppress(RuntimeError):  # the loop is closed, so the answer is not needed
            loop.call_soon_threadsafe(reply, approved)

    threading.Thread(target=wait, name="approval", daemon=True).start()
    return await answer
