"""Rebuilds the environment of a trace from its header: suite, seed and settings."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent.config import RunConfig, parse_config
from agent.inspection.replay.recorded import Recording
from agent.run.environments import SuiteMaker, check_display, open_suite, suite_maker
from agent.run.foreign_runs import Recorded, apply_grants
from agent.run.run_store import Manifest, versions
from envs.core.actions import Type
from envs.core.errors import BadInput
from envs.core.tasks import Environment, Suite
from envs.core.trace_store import now
from envs.core.written_tasks import environment_of
from envs.security.secrets import SecretVault

_SECRET: Final = re.compile(r"<secret>(\w+)</secret>")


@dataclass(frozen=True, slots=True)
class ReplayEnvironment:
    """A fresh environment that was not reset yet."""

    environment: Environment
    config: RunConfig


def config_of(recording: Recording) -> RunConfig:
    """The configuration in the header. Raises BadInput if this version does not know it."""
    return parse_config(recording.header.config, f"{recording.file.path}: config of the header")


class Permitted(NamedTuple):
    """A recording with the settings that it may use on this machine."""

    recording: Recording
    """If another machine wrote the trace, its header and start contain the granted settings."""
    grants: tuple[str, ...]
    """See :attr:`agent.run.foreign_runs.Settled.given`."""


def permitted(recording: Recording, granted_settings: Mapping[str, Any]) -> Permitted:
    """Checks which settings *recording* may use here.

    Raises :class:`agent.run.foreign_runs.ForeignRun` if another machine wrote the trace and a setting that reads from
    this machine or names a server is not in *granted_settings*; BadInput like
    :func:`agent.run.foreign_runs.apply_grants`."""
    start = recording.start
    run = Recorded(
        place=str(recording.file.path),
        own=recording.own,
        config=config_of(recording),
        suite=recording.header.task.suite,
        url=None if start is None else start.url,
    )
    settled = apply_grants(run, granted_settings, "replace")
    header = recording.header.model_copy(update={"config": settled.config.resolved()})
    if start is not None and settled.url is not None:
        start = start.model_copy(update={"url": settled.url})
    return Permitted(replace(recording, header=header, start=start), settled.given)


def manifest_of(recording: Recording, config: RunConfig, run_id: str) -> Manifest:
    """The manifest of a run that has only the recording's task."""
    header = recording.header
    return Manifest(
        run_id=run_id,
        created_at=now(),
        config=config,
        suite=header.task.suite,
        open_task=recording.start,
        names=(header.task.name,),
        seeds=(header.task.seed,),
        picked=(header.task,),
        versions=versions(),
    )


@asynccontextmanager
async def replay_environment(
    recording: Recording, config: RunConfig, folder: Path, suite: SuiteMaker | None = None
) -> AsyncGenerator[ReplayEnvironment]:
    """Opens a browser, the suite and one environment, and closes them at the end; files are written below *folder*.

    *suite* replaces the suite of the header. Raises BadInput if the suite or task is unknown, a secret is not declared
    or has no value, or a headed browser has no display.
    """
    manifest = manifest_of(recording, config, "replay")
    check_display(config)
    vault = declared_secrets(recording, config)
    maker = suite or suite_maker(manifest, vault, None)
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(open_suite(maker, folder, config))
        check_task(recording, opened)
        environment = environment_of(recording.header.task, await opened.environment())
        stack.push_async_callback(environment.close)
        yield ReplayEnvironment(environment, config)


def check_task(recording: Recording, suite: Suite) -> None:
    """Raises BadInput if *suite* does not have the recording's task."""
    task = recording.header.task
    if task.name not in {info.name for info in suite.tasks()}:
        raise BadInput(f"{recording.file.path}: the suite {task.suite!r} has no task {task.name!r} here")


def declared_secrets(recording: Recording, config: RunConfig) -> SecretVault:
    """Reads the run's secrets again. Raises BadInput if a value is missing or a name was not declared."""
    task = recording.start
    vault = SecretVault.declare(config.secrets, task.url if task else None)
    texts = [step.action.text for step in recording.steps if isinstance(step.action, Type)]
    for name in dict.fromkeys(name for text in texts for name in _SECRET.findall(text)):
        if name not in vault.names and task is not None:
            raise BadInput(
                f"{recording.file.path}: it types the secret {name}, which is not declared: add --secret {name}=env:…"
            )
    return vault
