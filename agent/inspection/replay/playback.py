"""`replay_trace`: repeats a recorded episode from its start."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agent.config import ROLES, RunConfig, parse_config
from agent.inspection.replay.environment import Permitted, config_of, permitted, replay_environment
from agent.inspection.replay.recorded import Recording
from agent.inspection.replay.records import Replay, ReplayedStep
from agent.inspection.replay.steps import ReplayOptions, Walk, Walker
from agent.run.discover_traces import discover_traces
from agent.run.environments import SuiteMaker
from agent.run.foreign_runs import unset_value
from agent.run.run_store import RunFolder
from envs.browser.playwright_trace import TracedEnvironment
from envs.core.errors import BadInput
from envs.core.plain_values import merged
from envs.core.tasks import Environment, Score
from envs.core.trace import Outcome
from envs.suites.browsergym.names import keeps_effects
from envs.suites.webarena.files import SUITE_NAMES
from envs.suites.webarena.sites import Sites

OBSERVE_S: Final = 15.0
"""Minimum timeout of an observation, so that a slow page is not closed and counted as different."""


async def replay_trace(
    path: str | Path,
    options: ReplayOptions | None = None,
    *,
    headed: bool = False,
    may_act: bool = False,
    secrets: Sequence[str] = (),
    granted_settings: Mapping[str, Any] | None = None,
    trace_zip: bool = False,
    strict_original: bool | None = None,
    out: Path | None = None,
    suite: SuiteMaker | None = None,
    on_step: Callable[[ReplayedStep], None] | None = None,
) -> Replay:
    """Repeats a trace in a fresh environment of its suite and seed, and compares every step with the recorded one.

    *path* is a trace, or a run of one episode. Elements are found by their durable keys; if one is missing, its action
    is not executed. *may_act* must be set for tasks on external servers (open tasks, WebArena), because forms are
    submitted again. *secrets* replace the run's declarations. *granted_settings* grants settings that are not taken
    from a trace of another machine (:func:`agent.run.foreign_runs.apply_grants`). *out* keeps files, else they are
    deleted; with *trace_zip* they include Playwright's trace. *strict_original* scores WebArena tasks by the
    benchmark's original rules or by Mira's; by default as the run did. *suite* is required if the run's suite was
    passed from Python. *on_step* is called with each step when it has been repeated.

    Raises BadInput (including :class:`agent.run.foreign_runs.ForeignRun`), TraceError and ResetFailed, each with a
    one-line message. The page's behaviour is reported as a verdict, never raised."""
    options = options or ReplayOptions()
    recording = read_recording(Path(path))
    check_steps(recording, options)
    declared = {"secrets": tuple(secrets)} if secrets else {}
    recording = permitted_to_play(recording, {**declared, **(granted_settings or {})}).recording
    address = live_address(recording)
    if address is not None and not may_act:
        raise live_site(address)
    config = _config(recording, headed=headed, secrets=secrets, trace_zip=trace_zip, strict_original=strict_original)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mira-replay-") as temporary:
        async with replay_environment(recording, config, out or Path(temporary), suite) as opened:
            await opened.environment.reset(recording.header.task)
            walk = await Walker(opened.environment, recording, options, on_step).go()
            score = await opened.environment.score(walk.answer) if walk.complete else None
            if trace_zip:
                await _keep_trace(opened.environment, recording, out)
    return _replay(recording, options, walk, score, time.monotonic() - began)


UNUSED: Final = (*ROLES, "base_url", *(f"{role}_base_url" for role in ROLES), "answer_schema", "langsmith")
"""Settings that a replay does not use, because it calls no model and stores no run."""


def permitted_to_play(recording: Recording, granted_settings: Mapping[str, Any]) -> Permitted:
    """Like :func:`agent.inspection.replay.environment.permitted`, without the settings that a replay does not use."""
    if not recording.own:
        for name in UNUSED:
            granted_settings = merged(granted_settings, unset_value(name))
    return permitted(recording, granted_settings)


def _config(
    recording: Recording, *, headed: bool, secrets: Sequence[str], trace_zip: bool, strict_original: bool | None
) -> RunConfig:
    """The configuration of the header, with the options of this replay. Raises BadInput."""
    known = config_of(recording)
    observe_s = max(known.session.observe.timeout_s, OBSERVE_S)
    overrides = {
        "headed": headed,
        "secrets": tuple(secrets) or known.secrets,
        "trace_zip": trace_zip,
        "strict_original": known.strict_original if strict_original is None else strict_original,
        "session": {"observe": {"timeout_s": observe_s}},
    }
    return parse_config(merged(known.resolved(), overrides), str(recording.file.path))


async def _keep_trace(environment: Environment, recording: Recording, out: Path | None) -> None:
    """Saves `OUT/traces/EPISODE.zip`. Raises BadInput if it cannot be written, or the environment has no such trace."""
    # Named after the file, because the id in the header is untrusted and may contain "../".
    path = RunFolder(out or Path("replays")).zip(recording.file.path.stem)
    if not isinstance(environment, TracedEnvironment) or not await environment.save_playwright_trace(path):
        raise BadInput(f"no Playwright trace of this replay could be kept at {str(path)!r}: leave out --trace-zip")


def read_recording(path: Path, *, to_branch: bool = False) -> Recording:
    """Reads the trace at *path*.

    Raises BadInput if *path* holds no trace or several, or if the trace has no steps and is not *to_branch*; TraceError
    if it is damaged."""
    file, *others = discover_traces([path])
    if others:
        raise BadInput(f"{str(path)!r} holds {len(others) + 1} traces: name one of them")
    recording = Recording.read(file)
    if not recording.steps and not to_branch:
        raise BadInput(f"{file.path}: the trace has no steps to repeat")
    return recording


def check_steps(recording: Recording, options: ReplayOptions) -> None:
    """Raises BadInput if the options name steps that the trace does not have."""
    last = max(step.number for step in recording.steps)
    until = options.until_step if options.until_step is not None else last
    for name, step in (("--from", options.from_step), ("--until", until)):
        if step > last:
            raise BadInput(f"{name} {step}: the trace has {last} steps")
    if until < options.from_step:
        raise BadInput(f"--from {options.from_step} comes after --until {until}")


def live_address(recording: Recording) -> str | None:
    """The address of the external server on which a replay would act; None if the environment is rebuilt."""
    task = recording.header.task
    if recording.start is not None:
        return recording.start.url
    if task.suite in SUITE_NAMES:  # addresses configured on this machine, not those of the trace
        return ", ".join((task.suite, *dict.fromkeys(Sites.from_environment().urls.values())))
    return (recording.header.start_url or task.suite) if keeps_effects(task.suite, task.name) else None


def live_site(address: str) -> BadInput:
    """The error for a replay on a live site without permission."""
    return BadInput(f"the trace acted on a live site ({address}): allow it with --yes (in Python may_act=True)")


def _replay(recording: Recording, options: ReplayOptions, walk: Walk, score: Score | None, seconds: float) -> Replay:
    header, footer = recording.header, recording.footer
    outcome: Outcome | None = None
    if walk.complete:
        outcome = "unjudged" if score is None else score.status
    return Replay(
        trace=str(recording.file.path),
        run_id=header.run_id,
        episode_id=header.episode_id,
        task=header.task,
        instruction=header.instruction,
        from_step=options.from_step,
        until_step=options.until_step,
        steps=tuple(walk.steps),
        done=walk.done,
        recorded=len(recording.steps),
        recorded_outcome=None if footer is None else footer.outcome,
        outcome=outcome,
        score=score,
        seconds=round(seconds, 3),
    )
