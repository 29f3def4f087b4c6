"""The world of a trace, made again: its suite, seed and settings, as its header says."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent.config import RunConfig, parse_config
from agent.inspection.replay.recorded import Recording
from agent.run.environments import SuiteMaker, check_display, open_world, suite_maker
from agent.run.foreign_runs import Recorded, settle
from agent.run.run_store import Manifest, versions
from envs.core.actions import Type
from envs.core.errors import BadInput
from envs.core.tasks import Environment, Suite
from envs.core.trace_store import now
from envs.security.secrets import SecretVault

_SECRET: Final = re.compile(r"<secret>(\w+)</secret>")


@dataclass(frozen=True, slots=True)
class World:
    """A fresh environment, not yet reset."""

    environment: Environment
    config: RunConfig


def config_of(recording: Recording) -> RunConfig:
    """The configuration that the header keeps. Raises BadInput where this Mira does not know it."""
    return parse_config(recording.header.config, f"{recording.file.path}: config of the header")


class Permitted(NamedTuple):
    """A recording as it may be done again here."""

    recording: Recording
    """Its header and start hold what was given again, where another machine wrote the trace."""
    given: tuple[str, ...]
    """See :attr:`agent.run.foreign_runs.Settled.given`."""


def permitted(recording: Recording, given_again: Mapping[str, Any]) -> Permitted:
    """Raises :class:`agent.run.foreign_runs.ForeignRun` where this machine did not write the trace, and a setting that
    reads from it or names a server is not *given_again*; BadInput as :func:`agent.run.foreign_runs.settle` does."""
    start = recording.start
    asked = Recorded(
        place=str(recording.file.path),
        own=recording.own,
        config=config_of(recording),
        suite=recording.header.task.suite,
        url=None if start is None else start.url,
    )
    settled = settle(asked, given_again, "replace")
    header = recording.header.model_copy(update={"config": settled.config.resolved()})
    if start is not None and settled.url is not None:
        start = start.model_copy(update={"url": settled.url})
    return Permitted(replace(recording, header=header, start=start), settled.given)


def manifest_of(recording: Recording, config: RunConfig, run_id: str) -> Manifest:
    """A run of the recording's task alone."""
    header = recording.header
    return Manifest(
        run_id=run_id,
        created_at=now(),
        config=config,
        suite=header.task.suite,
        open_task=recording.start,
        names=(header.task.name,),
        seeds=(header.task.seed,),
        versions=versions(),
    )


@asynccontextmanager
async def replay_world(
    recording: Recording, config: RunConfig, folder: Path, suite: SuiteMaker | None = None
) -> AsyncGenerator[World]:
    """A browser, the suite over it and one environment, all closed at the end; files go below *folder*.

    *suite* replaces the one that the header names. Raises BadInput where the suite or the task is not known here, a
    secret is not declared or has no value, or there is no display for a window.
    """
    manifest = manifest_of(recording, config, "replay")
    check_display(config)
    vault = declared_secrets(recording, config)
    maker = suite or suite_maker(manifest, vault, None)
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(open_world(maker, folder, config))
        check_task(recording, made)
        environment = await made.environment()
        stack.push_async_callback(environment.close)
        yield World(environment, config)


def check_task(recording: Recording, suite: Suite) -> None:
    """Raises BadInput where *suite* has no such task."""
    task = recording.header.task
    if task.name not in {info.name for info in suite.tasks()}:
        raise BadInput(f"{recording.file.path}: the suite {task.suite!r} has no task {task.name!r} here")


def declared_secrets(recording: Recording, config: RunConfig) -> SecretVault:
    """The run's secrets, read anew. Raises BadInput where a value is not to be had, or a name was never declared."""
    task = recording.start
    vault = SecretVault.declare(config.secrets, task.url if task else None)
    texts = [step.action.text for step in recording.steps if isinstance(step.action, Type)]
    for name in dict.fromkeys(name for text in texts for name in _SECRET.findall(text)):
        if name not in vault.names and task is not None:
            raise BadInput(
                f"{recording.file.path}: it types the secret {name}, which is not declared: give --secret {name}=env:…"
            )
    return vault
