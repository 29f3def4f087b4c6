"""Prepares a run folder for a resume: checks whether this machine wrote it, and takes over a foreign run."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent.run.changed_settings import check_continued, nothing_left, with_changes
from agent.run.foreign_runs import GrantedRun, OwnRule, Recorded, apply_grants
from agent.run.run_store import Job, Manifest, RunFolder
from envs.core.errors import BadInput
from envs.core.plain_values import merged
from envs.core.trace import Event
from envs.core.trace_store import BlobStore, TraceWriter, check_chain, has_header, now

SET_ASIDE: Final = ".foreign"
"""Suffix of a foreign run's saved browser state. Its cookies and open tabs are not used."""


@dataclass(frozen=True, slots=True)
class ResumableRun:
    """A run with the settings that it may use on this machine."""

    manifest: Manifest
    own: bool
    """Whether this machine wrote the run and every trace that is continued."""
    given: tuple[str, ...]
    """See :attr:`agent.run.foreign_runs.GrantedRun.given`."""


def recorded_run(folder: RunFolder, changes: Mapping[str, Any] | None = None) -> tuple[Manifest, Recorded]:
    """Reads what the run in *folder* requests, with *changes*. Raises TraceError, BadInput also for links and special
    files, and the errors of :func:`agent.run.changed_settings.with_changes`."""
    check_plain_files(folder.path)
    written, own = folder.read_marked()
    manifest = with_changes(written, changes or {})
    task, branch = manifest.open_task, manifest.branch
    recorded = Recorded(
        place=str(folder.path),
        own=own and not _foreign_traces(folder, manifest),
        config=manifest.config,
        suite=manifest.suite,
        url=None if task is None else task.url,
        parent=None if branch is None else branch.trace,
    )
    return manifest, recorded


def take_over_run(
    folder: RunFolder, given: Mapping[str, Any], changes: Mapping[str, Any], own_rule: OwnRule
) -> ResumableRun:
    """Returns the run with *changes*, and with the settings that were *given* again. Raises the errors of
    `recorded_run`, :func:`agent.run.changed_settings.check_continued` and
    :func:`agent.run.foreign_runs.apply_grants`."""
    manifest, recorded = recorded_run(folder, changes)
    check_continued(folder, manifest)
    settled = apply_grants(recorded, merged(given, changes), own_rule)
    return ResumableRun(_with(manifest, settled), recorded.own, settled.given)


def preview_resume(folder: RunFolder, given: Mapping[str, Any], changes: Mapping[str, Any]) -> ResumableRun | None:
    """Returns the run as `take_over_run` does, for a confirmation by the user; None if no episode is left. For a run of
    this machine, also raises BadInput for *given* values that differ from the run's."""
    return None if is_finished(folder, changes) else take_over_run(folder, given, changes, "refuse")


def is_finished(folder: RunFolder, changes: Mapping[str, Any]) -> bool:
    """Whether no episode is left for a resume with *changes*. Raises BadInput if *changes* differ from the settings of
    a run without such an episode, because they would have no effect."""
    manifest = folder.read_manifest()
    changed = with_changes(manifest, changes)
    finished = len(folder.settled(changed)) == len(changed.jobs())
    if finished and changed is not manifest:
        raise nothing_left(folder, changed)
    return finished


def adopt(folder: RunFolder, manifest: Manifest) -> None:
    """Adopts a foreign run: writes *manifest*, adds an event to the continued traces, and sets saved cookies and tabs
    aside. The caller must hold the run lock."""
    state = folder.path / "state"
    if state.exists():
        state.rename(_free(state))
    for job in _foreign_traces(folder, manifest):
        with TraceWriter(folder.trace(job.episode_id), BlobStore(folder.blobs)) as trace:
            detail = "what stands before this was not written on this machine, or was changed since"
            trace.append(Event(step=0, name="adopted", detail=detail, at=now()))
    folder.write_manifest(manifest)


def check_plain_files(folder: Path) -> None:
    """Raises BadInput if *folder* holds a link, a device or a pipe, through which data would be written elsewhere."""
    for where, folders, files in os.walk(folder, followlinks=False):
        for name in (*folders, *files):
            path = Path(where) / name
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:
                continue  # no lock is held yet: a process that executes the run may rename or delete its files
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise BadInput(
                    f"{str(path)!r} is a link or a special file, and a run is not resumed through it: replace it by a "
                    "regular file or folder"
                )


def _foreign_traces(folder: RunFolder, manifest: Manifest) -> list[Job]:
    """Lists jobs that continue from a trace whose last line this machine did not write."""
    jobs = manifest.jobs()
    settled = folder.settled(manifest)
    begun = ((job, folder.trace(job.episode_id)) for job in jobs if job not in settled)
    return [job for job, path in begun if has_header(path) and not check_chain(path).own]


def _with(manifest: Manifest, settled: GrantedRun) -> Manifest:
    task, branch = manifest.open_task, manifest.branch
    update: dict[str, Any] = {"config": settled.config}
    if task is not None and settled.url is not None:
        update["open_task"] = task.model_copy(update={"url": settled.url})
    if branch is not None and settled.parent is not None:
        update["branch"] = branch.model_copy(update={"trace": settled.parent})
    return manifest.model_copy(update=update)


def _free(path: Path) -> Path:
    """Returns an unused name beside *path*."""
    names = (path.with_name(f"{path.name}{SET_ASIDE}{number or ''}") for number in range(10_000))
    return next(name for name in names if not name.exists())
