"""`mira run`, `mira resume`, `mira demo`: what plays episodes.

The runner, and with it LangGraph and Playwright, is imported when it plays: `mira show` and `mira models` stay quick.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.prompt import Confirm
from rich.text import Text

from agent.approval import ApprovalRequest, Approver
from agent.cli import options
from agent.cli.output import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    print_json,
    print_problem,
    printable,
    printable_lines,
    stderr,
    stdout,
)
from agent.config import RunConfig
from agent.display import RunDisplay, result_table
from agent.progress import Event, Listener, RunStarted
from agent.refusals import print_refused
from agent.results import RunResult
from agent.run_store import RunFolder
from envs.errors import BadInput
from envs.origins import Origins
from envs.tasks import TaskSelection

CLOSED_SUITES = frozenset(("miniwob", "sites"))
"""Their worlds are whole: `--allow` adds nothing to them."""
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
    instruction: Annotated[str | None, typer.Argument(help="What to do, in words; needs --url.")] = None,
    url: options.Url = None,
    suite: options.SuiteName = None,
    tasks: options.Tasks = None,
    seeds: options.Seeds = "0",
    split: options.Split = None,
    policy: options.Policy = None,
    planner: options.Planner = None,
    judge: options.Judge = None,
    base_url: options.BaseUrl = None,
    workers: options.Workers = None,
    attempts: options.Attempts = None,
    max_steps: options.MaxSteps = None,
    max_seconds: options.MaxSeconds = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    headed: options.Headed = False,
    allow: options.Allow = None,
    secret: options.Secret = None,
    approve: options.Approve = None,
    storage_state: options.StorageState = None,
    upload_folder: options.UploadFolder = None,
    schema: options.Schema = None,
    screenshots: options.Screenshots = None,
    trace_zip: options.TraceZip = False,
    language: options.Language = None,
    thinking: options.Thinking = None,
    milestones: options.Milestones = None,
    temperature: options.Temperature = None,
    config: options.ConfigFile = None,
    out: options.Out = Path("runs"),
    as_json: options.Json = False,
) -> int:
    """Does one open task at a URL, or plays tasks of a suite.

    Exit codes: 0 the open task succeeded, or nobody judged it and the policy ended it itself; the suite was played,
    whatever came of its tasks. 1 the open task failed, broke, or ran into a limit, or the browser did not start in
    time. 2 wrong input. 130 interrupted.
    """
    values = {
        "policy": policy,
        "planner": planner,
        "judge": judge,
        "base_url": base_url,
        "workers": workers,
        "attempts": attempts,
        "headed": headed or None,
        "secrets": secret,
        "approve": options.split_names(approve) or None,
        "answer_schema": schema,
        "screenshots": screenshots,
        "trace_zip": trace_zip or None,
        "language": language,
        "thinking": options.thinking_budget(thinking),
        "k": milestones,
        "temperature": temperature,
        "limits": {
            "max_steps": max_steps,
            "max_seconds": max_seconds,
            "max_tokens": max_tokens,
            "max_cost_usd": max_cost,
        },
        "session": {"allow": allow, "storage_state": storage_state, "upload_folder": upload_folder},
    }
    settings = options.build_config(config, values)
    if suite is not None:
        if instruction is not None or url is not None:
            raise BadInput("give either a task in words with --url, or --suite, not both")
        selection = options.select(suite, options.split_names(tasks), options.parse_seeds(seeds), split)
        return _play_suite(settings, selection, out, as_json)
    for name, given in (("--tasks", tasks), ("--seeds", seeds if seeds != "0" else None), ("--split", split)):
        if given is not None:
            raise BadInput(f"{name} chooses tasks of a suite: give --suite, or leave it out")
    if instruction is None or url is None:
        raise BadInput('say what to do and where: mira run "Find …" --url https://…, or mira run --suite miniwob')
    return _play_open(settings, instruction, url, out, as_json)


def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of a run, e.g. runs/20260101-120000-ab12.")],
    as_json: options.Json = False,
) -> int:
    """Goes on with a run that was killed or interrupted; nothing that was committed is done again."""
    from agent import runner
    from envs.open_world import SUITE

    with RunDisplay(stderr if as_json else stdout) as display:
        result = asyncio.run(runner.resume(folder, listeners(display, as_json), approver=approver(display, as_json)))
    is_open = any(episode.task.suite == SUITE for episode in result.episodes)
    return _finish_open(result, as_json) if is_open else finish(result, as_json)


def demo(
    policy: options.Policy = None,
    seeds: options.Seeds = "0-2",
    workers: options.Workers = 2,
    out: options.Out = Path("runs"),
    as_json: options.Json = False,
) -> int:
    """The embedded model plays ten MiniWoB++ tasks live in Chromium, planner and judge in the loop."""
    settings = options.build_config(None, {"policy": policy, "workers": workers, "limits": {"max_steps": 12}})
    selection = options.select("miniwob", DEMO_TASKS, options.parse_seeds(seeds))
    return _play_suite(settings, selection, out, as_json)


def _play_open(config: RunConfig, instruction: str, url: str, out: Path, as_json: bool) -> int:
    from agent import runner

    with RunDisplay(stderr if as_json else stdout) as display:
        result = asyncio.run(
            runner.run_open(
                config, instruction, url, out, listeners(display, as_json), approver=approver(display, as_json)
            )
        )
    return _finish_open(result, as_json)


def _play_suite(config: RunConfig, selection: TaskSelection, out: Path, as_json: bool) -> int:
    from agent import runner

    with RunDisplay(stderr if as_json else stdout) as display:
        result = asyncio.run(
            runner.run_suite(config, selection, out, listeners(display, as_json), approver=approver(display, as_json))
        )
    return finish(result, as_json)


def _finish_open(result: RunResult, as_json: bool) -> int:
    """`finish`, and the answer. Where nobody judged, only the policy's own Stop says that something was done."""
    code = finish(result, as_json)
    if code != EXIT_OK or not result.episodes:
        return code
    episode = result.episodes[0]
    if episode.answer is not None and not as_json:
        stdout.print(Text.assemble(("answer  ", "bold"), printable_lines(episode.answer)))
    done = episode.outcome == "success" or (episode.outcome == "unjudged" and episode.ended_by == "stop")
    return EXIT_OK if done else EXIT_FAILED


def finish(result: RunResult, as_json: bool) -> int:
    """Says what came of a run and writes its report; the exit code."""
    from agent.report import explained, write_report

    runs, suites = (result.folder,), (episode.task.suite for episode in result.episodes)
    page = write_report(runs, analyses=explained(runs)).path if result.episodes else None
    if as_json:
        print_json(
            {
                "run_id": result.run_id,
                "folder": str(result.folder),
                "report": str(page) if page else None,
                "complete": result.complete,
                "planned": result.planned,
                "seconds": round(result.seconds, 3),
                "blocked_requests": [one.model_dump(mode="json") for one in result.blocked_requests],
                "episodes": [episode.model_dump(mode="json") for episode in result.episodes],
            }
        )
    else:
        stdout.print(result_table(result))
        print_refused(stdout, result.blocked_requests, admits=not set(suites) <= CLOSED_SUITES)
        stdout.print(f"traces  {result.folder / 'episodes'}", highlight=False)
        if page is not None:
            stdout.print(f"report  {page}", highlight=False)
        if not result.complete:
            stdout.print(
                f"{len(result.episodes)} of {result.planned} episodes are done; go on with: mira resume {result.folder}"
            )
    return EXIT_OK if result.complete else EXIT_INTERRUPTED


def listeners(display: RunDisplay, as_json: bool) -> tuple[Listener, ...]:
    """The display, and what says at the start of a run that secrets have a way out, and that approvals are asked for
    and nobody is there to ask."""

    def warn_of_ways_out(event: Event) -> None:
        if isinstance(event, RunStarted) and event.finished < event.planned:
            config = RunFolder(event.folder).read_manifest().config
            if config.secrets and Origins.parse(config.session.allow).has_subresources:
                with display.paused():
                    print_problem(
                        "a page into which a secret is typed can send it to the origins of subresources: rules"
                    )

    def warn(event: Event) -> None:
        if not isinstance(event, RunStarted) or event.finished == event.planned:
            return
        if wanted := RunFolder(event.folder).read_manifest().config.approve:
            why = "--json was given" if as_json else "stdin is no terminal"
            with display.paused():
                print_problem(f"approve {','.join(wanted)}: nobody is there to ask ({why}), such actions are declined")

    return (display, warn_of_ways_out) if _can_ask(as_json) else (display, warn_of_ways_out, warn)


def _can_ask(as_json: bool) -> bool:
    return not as_json and sys.stdin.isatty()


def approver(display: RunDisplay, as_json: bool) -> Approver | None:
    """Asks on the terminal, where *display* makes room; None (which declines) where there is nobody to ask."""
    if not _can_ask(as_json):
        return None

    one_at_a_time = asyncio.Lock()

    async def ask(request: ApprovalRequest) -> bool:
        async with one_at_a_time:  # workers that ask together would take each other's answers
            with display.paused() as console:
                asked = f"step {request.step} wants to: {request.action}  at {request.url}"
                console.print(Text(f"\n{printable(asked)}"), soft_wrap=True)
                return await _asked(console, f"allow ({', '.join(request.classes)})?")

    return ask


async def _asked(console: Console, question: str) -> bool:
    """A person's answer; no where the terminal was closed. The thread that waits for it does not keep the process from
    ending, as one of asyncio's own would until somebody pressed Enter."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bool] = loop.create_future()

    def tell(said: bool) -> None:
        if not answer.done():
            answer.set_result(said)

    def wait() -> None:
        said = False
        with suppress(EOFError, OSError):
            said = Confirm.ask(question, console=console, default=False)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, said)

    threading.Thread(target=wait, name="approval", daemon=True).start()
    return await answer
