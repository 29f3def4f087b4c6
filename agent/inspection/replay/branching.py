"""`branch_trace` repeats the first steps of a trace, then continues with another policy, as a new run. `heal_trace`
repeats all of them, with other texts if wanted, and asks the policy only where a step cannot be repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.config import RunConfig, overridden, parse_config, with_current_keys
from agent.episode.approval import Approver
from agent.episode.policy import Policy
from agent.inspection.replay.environment import config_of, declared_secrets, manifest_of, permitted
from agent.inspection.replay.playback import live_address, live_site, read_recording
from agent.inspection.replay.recorded import Recording
from agent.inspection.replay.retracing import replaced
from agent.progress import Listener
from agent.results import RunResult
from agent.run.environments import SuiteMaker, check_display
from agent.run.prompt_profiles import with_policy
from agent.run.role_models import check_changed_servers
from agent.run.run_store import Branch, Manifest, new_run_id
from envs.core.actions import Stop
from envs.core.errors import BadInput
from envs.core.plain_values import merged
from envs.core.trace import Parent


async def branch_trace(
    path: str | Path,
    policy: str | Policy,
    at: int | None = None,
    *,
    out: str | Path = "runs",
    may_act: bool = False,
    listeners: Sequence[Listener] = (),
    approver: Approver | None = None,
    suite: SuiteMaker | None = None,
    granted_settings: Mapping[str, Any] | None = None,
    **settings: Any,
) -> RunResult:
    """Repeats the steps before *at*, then lets *policy* decide from step *at* on; the new run's trace names its parent.

    *at* defaults to the key step of a failed trace, or to the step after its last one if a model failed. Budgets,
    planner and rater are those of the trace's header, and another policy gets the prompts of its own model; *settings*
    (keys of :class:`agent.config.RunConfig`) override them. For a trace of another machine, settings that read from
    this machine or name a server are taken only from *settings* and *granted_settings*
    (:func:`agent.run.foreign_runs.apply_grants`; *granted_settings* can also hold `url` and `suite`). The result is an
    ordinary run: it can be killed, resumed, analyzed and branched again. It ends as broken if the element of a recorded
    step is missing.

    Raises :class:`agent.run.foreign_runs.ForeignRun` if such a setting is missing, and BadInput if the trace, the step
    or the settings are wrong, or if the trace acted on a live site and *may_act* is not set."""
    from agent.run import runner  # imports LangGraph, which a replay does not need

    manifest = _manifest(path, policy, settings, granted_settings or {}, may_act=may_act, at=at)
    instance = None if isinstance(policy, str) else policy
    return await runner.run_branch(manifest, Path(out), listeners, approver=approver, policy=instance, suite=suite)


async def heal_trace(
    path: str | Path,
    policy: str | Policy,
    texts: Mapping[str, str] | None = None,
    *,
    out: str | Path = "runs",
    may_act: bool = False,
    listeners: Sequence[Listener] = (),
    approver: Approver | None = None,
    suite: SuiteMaker | None = None,
    granted_settings: Mapping[str, Any] | None = None,
    **settings: Any,
) -> RunResult:
    """Repeats all steps of a trace as a new run; where one cannot be repeated, *policy* continues.

    No model is asked as long as the steps can be repeated: planner, rater and judge are `none` unless *settings* name
    them. *policy* decides the rest where an element is missing, a step ends or leads otherwise, a tool was called, or
    an answer is due. *texts* replaces recorded texts in what is typed, chosen or opened, and in the instruction of an
    open task; a step whose element is named by such a text is left to *policy*. Parameters and errors otherwise as for
    :func:`branch_trace`."""
    from agent.run import runner  # imports LangGraph, which a replay does not need

    roles = {"planner": "none", "judge": "none", "rater": "none"} | settings
    pairs = tuple((texts or {}).items())
    manifest = _manifest(path, policy, roles, granted_settings or {}, may_act=may_act, texts=pairs, heals=True)
    instance = None if isinstance(policy, str) else policy
    return await runner.run_branch(manifest, Path(out), listeners, approver=approver, policy=instance, suite=suite)


def _manifest(
    path: str | Path,
    policy: str | Policy,
    settings: Mapping[str, Any],
    granted: Mapping[str, Any],
    *,
    may_act: bool,
    at: int | None = None,
    texts: tuple[tuple[str, str], ...] = (),
    heals: bool = False,
) -> Manifest:
    """The manifest of the new run. Raises BadInput."""
    recording = read_recording(Path(path), to_branch=True)
    recorded = config_of(recording)
    actor = {"policy": policy if isinstance(policy, str) else "scripted"}
    recording = permitted(recording, merged(merged(settings, granted), actor)).recording
    address = live_address(recording)
    if address is not None and not may_act:
        raise live_site(address)
    last = recording.steps[-1].number if recording.steps else 0
    first = last + 1 if heals else _first_step(recording, at)
    config = _config(recording, recorded.policy, actor["policy"], settings)
    check_changed_servers(config, recorded, with_current_keys(settings), granted)
    check_display(config)
    declared_secrets(recording, config)
    header = recording.header
    parent = Parent(run_id=header.run_id, episode_id=header.episode_id, step=first - 1)
    branch = Branch(trace=recording.file.path.absolute(), parent=parent, heals=heals, texts=texts)
    manifest = manifest_of(recording, config, new_run_id()).model_copy(update={"branch": branch})
    return _with_texts(manifest, recording, texts)


def _with_texts(manifest: Manifest, recording: Recording, texts: tuple[tuple[str, str], ...]) -> Manifest:
    """*manifest* with *texts* in its instruction. Raises BadInput for a text that neither the instruction nor an action
    has, and for a suite's task, whose goal is the suite's."""
    task = manifest.open_task
    if texts and task is None:
        raise BadInput("texts can be replaced in an open task only: the goal of a suite's task is the suite's")
    written = [value for step in recording.steps for _, value in step.action if isinstance(value, str)]
    for old, _ in texts:
        if not old or task is None or not any(old in text for text in (task.instruction, *written)):
            raise BadInput(f"{old!r} is in no text of the trace: give what was typed or chosen, as it is written there")
    if task is None or not texts:
        return manifest
    changed = task.model_copy(update={"instruction": replaced(task.instruction, texts)})
    return manifest.model_copy(update={"open_task": changed})


def _first_step(recording: Recording, at: int | None) -> int:
    """The first step that the other policy decides. Raises BadInput."""
    last = recording.steps[-1].number if recording.steps else 0
    latest = last if _is_over(recording) else last + 1
    if at is None:
        at = _default_step(recording, latest)
    if not 1 <= at <= latest:
        more = f", so a branch can begin at 1 to {latest}" if latest > last else ""
        raise BadInput(f"--at {at}: the trace has steps 1 to {last}{more}")
    return at


def _is_over(recording: Recording) -> bool:
    """Whether no step can follow the last one: the policy stopped, or the environment ended the episode."""
    if recording.footer is not None and recording.footer.ended_by == "environment":
        return True
    return bool(recording.steps) and isinstance(recording.steps[-1].action, Stop)


def _default_step(recording: Recording, latest: int) -> int:
    footer = recording.footer
    if footer is not None and footer.resumable and footer.outcome == "broken":
        return latest
    if footer is None or footer.failure is None or footer.failure.key_step is None:
        raise BadInput(f"{recording.file.path}: the trace has no key step to branch at: use --at STEP")
    return footer.failure.key_step


def _config(recording: Recording, before: str, policy: str, settings: Mapping[str, Any]) -> RunConfig:
    """The configuration of the header, with one worker and one attempt unless *settings* override them. As in a resume,
    what the prompt profile of the policy *before* set is set by that of another one."""
    given = with_current_keys(settings)
    values = {"policy": policy, "workers": 1, "attempts": 1, **given}
    config = parse_config(overridden(config_of(recording).resolved(), values), "branch")
    return config if policy == before else with_policy(config, before, recording.header.task.suite, given)
