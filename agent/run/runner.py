"""Starts runs (`run_task` and `run_open` for an open task, `run_suite` for a selection of tasks) and resumes them."""

from __future__ import annotations

import asyncio
import json
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from agent.config import RunConfig, check_retry_window, outdated_key_hints, parse_config
from agent.episode.approval import Approver, decline
from agent.episode.graph import build_graph
from agent.episode.policy import Policy
from agent.episode.tools import Tool, as_tools, named_tools
from agent.inspection.replay.retracing import retraced
from agent.progress import Listener, RunEnded, RunStarted
from agent.results import EpisodeResult, RunResult
from agent.run.changed_settings import differing
from agent.run.components import open_components
from agent.run.environments import SuiteMaker, check_scoring, check_session, open_suite, session_settings, suite_maker
from agent.run.foreign_resume import adopt, check_plain_files, is_finished, take_over_run
from agent.run.langsmith_tracing import langsmith_tracing
from agent.run.open_defaults import with_open_defaults
from agent.run.oracle_tasks import check_solvable
from agent.run.prompt_profiles import with_profile
from agent.run.role_models import (
    check_base_urls,
    check_changed_servers,
    check_constrained,
    check_shared_base_url,
    check_thinking,
)
from agent.run.run_executor import RunExecutor
from agent.run.run_store import (
    Manifest,
    OpenTask,
    RunFolder,
    checked_run_id,
    is_new_run_id,
    new_run_id,
    versions,
    with_resume_hint,
)
from agent.run.stopping import run_until_stopped
from envs.browser.chromium import Chromium
from envs.core.errors import BadInput, BrowserNotStarted
from envs.core.plain_values import checked
from envs.core.tasks import Suite, TaskSelection
from envs.core.trace_store import RunLock, now
from envs.security.allowlist import check_address
from envs.security.secrets import SecretVault
from envs.suites.open_web import SUITE, TASK


async def run_suite(
    config: RunConfig,
    selection: TaskSelection,
    out: Path,
    listeners: Sequence[Listener] = (),
    *,
    run_id: str | None = None,
    approver: Approver | None = None,
    policy: Policy | None = None,
    suite: SuiteMaker | None = None,
    tools: Sequence[Tool | Callable[..., Any]] = (),
    stop: asyncio.Event | None = None,
) -> RunResult:
    """Runs every attempt of every task instance in *selection* and writes a run folder below *out*.

    *policy* and *suite* replace those that configuration and selection name; *tools* are further tools, functions or
    :class:`agent.episode.tools.Tool`. *stop*, when it is set, ends the run at its next step, as Ctrl-C does: the action
    that is being sent is committed, and a resume continues. Raises BadInput or ModelUnavailable, in
    one line and with nothing written, if the run cannot start. Later errors are outcomes of their episodes.
    """
    own = as_tools(tools)
    config = with_profile(config, selection.suite) if policy is None else config
    manifest = _manifest(_with_tools(config, own), selection, run_id)
    inputs = _Inputs(tuple(listeners), approver or decline, policy, suite, own, stop)
    return await _run(manifest, RunFolder(out / manifest.run_id), inputs, fresh=True)


async def run_open(
    config: RunConfig,
    instruction: str,
    url: str,
    out: Path,
    listeners: Sequence[Listener] = (),
    *,
    run_id: str | None = None,
    approver: Approver | None = None,
    policy: Policy | None = None,
    tools: Sequence[Tool | Callable[..., Any]] = (),
    stop: asyncio.Event | None = None,
) -> RunResult:
    """Runs one open task, starting at *url*, whose origin is always allowed.

    Unset planner and judge get the defaults of :mod:`agent.run.open_defaults`. *tools*, *stop*: as for `run_suite`.
    Raises the errors of `run_suite`, and BadInput if *url* is missing or cannot be opened.
    """
    task, own = _open_task(instruction, url), as_tools(tools)
    config = with_profile(with_open_defaults(config), SUITE) if policy is None else config
    selection = TaskSelection(SUITE, (TASK,), (config.seed,))
    manifest = _manifest(_with_tools(config, own), selection, run_id).model_copy(update={"open_task": task})
    inputs = _Inputs(tuple(listeners), approver or decline, policy, None, own, stop)
    return await _run(manifest, RunFolder(out / manifest.run_id), inputs, fresh=True)


def _open_task(instruction: str, url: str) -> OpenTask:
    """Raises BadInput, also for values of other types, which a caller without a type checker may pass."""
    if not url:
        raise BadInput(
            "an open task needs a URL: give the address of its first page, such as https://shop.example; "
            "run_suite plays the tasks of a suite"
        )
    task = checked(OpenTask, {"instruction": instruction, "url": url}, "open task")
    check_address(task.url)
    return task


async def run_branch(
    manifest: Manifest,
    out: Path,
    listeners: Sequence[Listener] = (),
    *,
    approver: Approver | None = None,
    policy: Policy | None = None,
    suite: SuiteMaker | None = None,
) -> RunResult:
    """Runs a branch: a run that starts in the middle of another one. :func:`agent.inspection.replay.branch_trace`
    creates its *manifest*. Raises the errors of `run_suite`."""
    inputs = _Inputs(tuple(listeners), approver or decline, policy, suite)
    return await _run(manifest, RunFolder(out / manifest.run_id), inputs, fresh=True)


async def run_task(
    instruction: str,
    url: str,
    *,
    policy: str | Policy = "embedded",
    planner: str | None = None,
    judge: str | None = None,
    out: str | Path = "runs",
    listeners: Sequence[Listener] = (),
    approver: Approver | None = None,
    tools: Sequence[str | Tool | Callable[..., Any]] = (),
    stop: asyncio.Event | None = None,
    **settings: Any,
) -> EpisodeResult:
    """Runs one open task and returns its result. *settings* are further keys of :class:`agent.config.RunConfig`.

    *tools*: what the policy may call beside its actions on the page: functions, :class:`agent.episode.tools.Tool`, and
    names of tools that packages add. *stop*, when it is set, interrupts the run at its next step.

    With a large model as *policy*, *planner* and *judge* default to `same`: the policy's model also plans and judges.
    `none` switches either off (:mod:`agent.run.open_defaults`). Raises BadInput and
    :class:`models.base.ModelUnavailable` before the task starts, and asyncio.CancelledError if the run was interrupted:
    :func:`resume` continues it.

    result = await run_task("Find the cheapest 13-inch laptop", "https://shop.example", policy="openai:gpt-4o")
    print(result.outcome, result.answer, result.trace_path)
    """
    for hint in outdated_key_hints(settings, "run_task"):
        warnings.warn(hint, FutureWarning, stacklevel=2)
    spec = policy if isinstance(policy, str) else "scripted"
    roles = {role: value for role, value in (("planner", planner), ("judge", judge)) if value is not None}
    named = {"tools": [tool for tool in tools if isinstance(tool, str)]} if tools else {}
    own = [tool for tool in tools if not isinstance(tool, str)]
    config = check_retry_window(parse_config({"policy": spec, **roles, **named, **settings}, "run_task"))
    if settings.get("base_url") is not None:
        check_shared_base_url(with_open_defaults(config))
    scripted = None if isinstance(policy, str) else policy
    run = await run_open(
        config, instruction, url, Path(out), listeners, approver=approver, policy=scripted, tools=own, stop=stop
    )
    if not run.episodes:
        raise asyncio.CancelledError(f"interrupted; continue with: mira resume {run.folder}")
    return run.episodes[0]


async def resume(
    folder: Path,
    listeners: Sequence[Listener] = (),
    *,
    approver: Approver | None = None,
    policy: str | Policy | None = None,
    suite: SuiteMaker | None = None,
    tools: Sequence[Tool | Callable[..., Any]] = (),
    stop: asyncio.Event | None = None,
    granted_settings: Mapping[str, Any] | None = None,
    **settings: Any,
) -> RunResult:
    """Continues a run that was killed or interrupted, and episodes that a model broke. A finished run is only reported.

    No committed action is sent again. Pass *policy*, *suite* and *tools* again if they were Python objects. *settings*
    replace the run's from here on: a model spec as *policy*, `planner`, `judge`, `rater`, `grounder`; `base_url`,
    `thinking`, `model_deadline_s` and those of single roles; `retry_window_s`, and of `limits` those that end an
    episode (`{"max_steps": 40}`). An episode that a limit ended without success continues if that limit is raised;
    steps, seconds, tokens and cost before the resume count. The trace records each change.

    For a foreign run (one that this machine did not write), settings that read from this machine or name a server are
    taken from *settings* and *granted_settings*, see :func:`agent.run.foreign_runs.apply_grants`; for other runs
    *granted_settings* has no effect. Raises RunLocked while another process executes the run,
    :class:`agent.run.foreign_runs.ForeignRun` if such a setting is missing, and BadInput if the folder holds links, if
    *settings* are wrong, or if no episode continues with them.
    """
    spec = {"policy": policy} if isinstance(policy, str) else {}
    given = None if isinstance(policy, str) else policy
    inputs = _Inputs(tuple(listeners), approver or decline, given, suite, as_tools(tools), stop)
    changes = {**settings, **spec}
    run = RunFolder(folder)
    check_plain_files(folder)
    if is_finished(run, changes):
        return _report(run.read_manifest(), run, inputs)
    resumable = take_over_run(run, granted_settings or {}, changes, "keep")
    check_changed_servers(resumable.manifest.config, run.read_manifest().config, changes, granted_settings or {})
    return await _run(resumable.manifest, run, inputs, fresh=False, foreign=not resumable.own)


def _report(manifest: Manifest, folder: RunFolder, inputs: _Inputs) -> RunResult:
    """Returns the result of a finished run, read from its footers. It needs no browser, model or secret."""
    began = time.monotonic()
    jobs = manifest.jobs()
    with with_resume_hint(folder.path), RunLock(folder.path):
        finished = folder.finished(jobs)
        episodes = tuple(finished[job] for job in jobs)
        folder.write_results(episodes)
    result = _result(manifest, folder, episodes, began)
    for event in (RunStarted(manifest.run_id, folder.path, len(jobs), len(jobs)), RunEnded(result)):
        for listener in inputs.listeners:
            listener(event)
    return result


def _result(manifest: Manifest, folder: RunFolder, episodes: Sequence[EpisodeResult], began: float) -> RunResult:
    seconds = round(time.monotonic() - began, 3)
    placed = tuple(episode.model_copy(update={"folder": folder.path}) for episode in episodes)
    return RunResult(manifest.run_id, folder.path, placed, len(manifest.jobs()), seconds)


def _manifest(config: RunConfig, selection: TaskSelection, run_id: str | None) -> Manifest:
    for ref in selection.picked:
        if ref.suite != selection.suite:
            raise BadInput(f"task {ref.id!r} is not in the suite {selection.suite!r}: a run has one suite")
    if len(set(selection.refs())) != len(selection.refs()):
        raise BadInput("a task instance is listed twice: ask for more attempts instead")
    return Manifest(
        run_id=checked_run_id(run_id) if run_id is not None else new_run_id(),
        created_at=now(),
        config=config,
        suite=selection.suite,
        names=selection.names,
        seeds=selection.seeds,
        picked=selection.picked,
        versions=versions(),
    )


def _check_episode_ids(manifest: Manifest) -> None:
    """Raises BadInput for two task instances whose episodes would have one trace: an id holds the first 80 characters
    of a task's name, as a file name."""
    first: dict[str, str] = {}
    for job in manifest.jobs():
        other = first.setdefault(job.episode_id, job.task.id)
        if other != job.task.id:
            raise BadInput(f"tasks {other!r} and {job.task.id!r} have the same episode id: play them in two runs")


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Python objects of a run that no configuration holds."""

    listeners: tuple[Listener, ...]
    approver: Approver
    policy: Policy | None
    suite: SuiteMaker | None
    tools: tuple[Tool, ...] = ()
    stop: asyncio.Event | None = None


def _with_tools(config: RunConfig, tools: Sequence[Tool]) -> RunConfig:
    """*config* with the names of *tools*, by which a resume checks that it has them."""
    names = tuple(dict.fromkeys((*config.tools, *(tool.name for tool in tools))))
    return config.model_copy(update={"tools": names}) if tools else config


async def _run(
    manifest: Manifest, folder: RunFolder, inputs: _Inputs, *, fresh: bool, foreign: bool = False
) -> RunResult:
    """Executes a run in this process. Inputs are checked before the folder is created. *foreign*: *manifest* replaces
    one that another machine wrote."""
    began = time.monotonic()
    task = manifest.open_task
    vault = SecretVault.declare(manifest.config.secrets, task.url if task else None)
    _check_no_secret(manifest, vault, fresh=fresh)
    if fresh:
        _check_episode_ids(manifest)
    _check_input(manifest, folder, vault)
    tools = named_tools(manifest.config.tools, inputs.tools)
    begun = None if fresh else folder.read_manifest().config
    if manifest.branch is None:
        check_thinking(manifest.config, begun)
        check_base_urls(manifest.config, begun)
        check_constrained(manifest.config, begun)
    async with AsyncExitStack() as stack:
        stack.enter_context(with_resume_hint(folder.path))
        stack.enter_context(langsmith_tracing(manifest.config.langsmith))
        components = await stack.enter_async_context(open_components(manifest.config, manifest.suite, inputs.policy))
        components = replace(components, tools=tools)
        if manifest.branch is not None:
            policy = retraced(manifest.branch, components.policy, components.language)
            components = replace(components, policy=policy)
        make_suite = inputs.suite or suite_maker(manifest, vault, components.compares)
        suite = await stack.enter_async_context(open_suite(make_suite, folder.path, manifest.config))
        _check_names(manifest, suite)
        is_new = begun is None or begun.policy != manifest.config.policy
        if is_new and inputs.policy is None and inputs.suite is None:
            check_solvable(manifest.config, manifest.suite, [job.task.name for job in manifest.jobs()], suite.tasks())
        lock = RunLock(folder.path)
        stack.callback(lock.release)
        if fresh:
            own = folder.create(manifest, lock)
            stack.enter_context(_discarded_if_refused(folder, own=own))
        lock.acquire()
        executor = RunExecutor(
            manifest=manifest,
            folder=folder,
            components=components,
            suite=suite,
            graph=build_graph(),
            vault=vault,
            approver=inputs.approver,
            listeners=inputs.listeners,
            results=folder.settled(manifest),
            **({} if inputs.stop is None else {"stopping": inputs.stop}),
        )
        if foreign:
            adopt(folder, manifest)
        elif begun is not None and differing(begun.resolved(), manifest.config):
            folder.write_manifest(manifest)
        if not fresh:
            folder.write_results(executor.ordered_results())  # without the rows of episodes that are continued
        planned, finished = len(manifest.jobs()), len(executor.results)
        executor.notify(RunStarted(manifest.run_id, folder.path, planned, finished, manifest.config.limits))
        await run_until_stopped(executor)
        folder.write_results(executor.ordered_results())
        result = _result(manifest, folder, executor.ordered_results(), began)
        executor.notify(RunEnded(result))
        return result


def _check_no_secret(manifest: Manifest, vault: SecretVault, *, fresh: bool) -> None:
    """Raises BadInput where a text that is stored and sent to the policy's model holds the value of a secret, or an id
    of a *fresh* run, which is stored unmasked and names files."""
    task, schema = manifest.open_task, manifest.config.answer_schema
    texts = {} if task is None else {"task": f"{task.instruction}\n{task.url}"}
    if isinstance(schema, dict):
        texts["answer schema"] = json.dumps(schema, ensure_ascii=False)
    for name, text in texts.items():
        if vault.mask(text) != text:
            raise BadInput(
                f"the {name} holds the value of a secret, and would be stored: write <secret>NAME</secret> instead"
            )
    if not fresh:
        return
    if not is_new_run_id(manifest.run_id) and vault.mask(manifest.run_id) != manifest.run_id:
        raise BadInput("the run id holds the value of a secret, and would be stored: choose another one")
    for name in dict.fromkeys(job.task.name for job in manifest.jobs()) if task is None else ():
        if (masked := vault.mask(name)) != name:
            raise BadInput(
                f"the name of task {masked!r} holds the value of a secret, and would be stored: leave it out"
            )


@contextmanager
def _discarded_if_refused(folder: RunFolder, *, own: bool) -> Generator[None]:
    """Removes the run that could not start, because of bad input or a browser that did not start. Episodes that ran
    before the browser failed are kept. *own*: the run created its folder; else what was in it is kept."""
    try:
        yield
    except BadInput:
        folder.discard_if_unplayed(own=own)
        raise
    except BrowserNotStarted as error:
        folder.discard_if_unplayed(own=own)
        if not folder.manifest.exists():
            raise
        raise BrowserNotStarted(
            f"{error}; finished steps are kept, continue with: mira resume {folder.path}"
        ) from error


def _check_input(manifest: Manifest, folder: RunFolder, vault: SecretVault) -> None:
    """Raises BadInput for wrong inputs that show before a model is loaded and a browser is started."""
    config = manifest.config
    check_session(config)
    check_scoring(manifest)
    if manifest.open_task is not None:  # creating the suite checks address and origins, and starts nothing
        suite_maker(manifest, vault, None)(Chromium.launch(), folder.path, session_settings(config))


def _check_names(manifest: Manifest, suite: Suite) -> None:
    """Raises BadInput for the first task name that the suite does not have."""
    known = {task.name for task in suite.tasks()}
    for name in dict.fromkeys(job.task.name for job in manifest.jobs()):
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise BadInput(f"suite {manifest.suite!r} has no task {name!r}{hint}")
