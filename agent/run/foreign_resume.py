"""A run folder that is to be resumed: whether this machine wrote it, and how it is taken over where it did not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent.run.foreign_runs import OwnRule, Recorded, Settled, settle
from agent.run.run_store import Job, Manifest, RunFolder
from envs.core.errors import BadInput
from envs.core.trace import Event
from envs.core.trace_store import BlobStore, TraceWriter, check_chain, has_header, now

SET_ASIDE: Final = ".foreign"
"""Suffix of what a run of another machine has saved of its browser: cookies and open tabs are not taken over."""


@dataclass(frozen=True, slots=True)
class ResumableRun:
    """A run as it may be played here."""

    manifest: Manifest
    own: bool
    """This machine wrote the run and every trace that is continued."""
    given: tuple[str, ...]
    """See :attr:`agent.run.foreign_runs.Settled.given`."""


def recorded_run(folder: RunFolder) -> tuple[Manifest, Recorded]:
    """What *folder* asks for. Raises BadInput, also where it holds anything but files and folders, and TraceError."""
    check_plain_files(folder.path)
    manifest, own = folder.read_marked()
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


def taken_over(folder: RunFolder, given: Mapping[str, Any], own_rule: OwnRule) -> ResumableRun:
    """The run with what was *given* again. Raises as `recorded_run` and :func:`agent.run.foreign_runs.settle` do."""
    manifest, recorded = recorded_run(folder)
    settled = settle(recorded, given, own_rule)
    return ResumableRun(_with(manifest, settled), recorded.own, settled.given)


def reviewed(folder: RunFolder, given: Mapping[str, Any]) -> ResumableRun | None:
    """As `taken_over`, for a person who is told of it first; None where nothing is left to play. Raises BadInput also
    for what was *given* and differs from a run of this machine."""
    jobs = folder.read_manifest().jobs()
    return None if len(folder.settled(jobs)) == len(jobs) else taken_over(folder, given, "refuse")


def adopt(folder: RunFolder, manifest: Manifest) -> None:
    """Adopts a run of another machine: *manifest* becomes its own, the traces that are continued say so, and saved
    cookies and tabs are set aside. Hold the run's lease."""
    state = folder.path / "state"
    if state.exists():
        state.rename(_free(state))
    for job in _foreign_traces(folder, manifest):
        with TraceWriter(folder.trace(job.episode_id), BlobStore(folder.blobs)) as trace:
            detail = "what stands before this was not written on this machine, or was changed since"
            trace.append(Event(step=0, name="adopted", detail=detail, at=now()))
    folder.write_manifest(manifest)


def check_plain_files(folder: Path) -> None:
    """Raises BadInput where *folder* holds a link, a device or a pipe: what is written to it would land elsewhere."""
    for where, folders, files in os.walk(folder, followlinks=False):
        for name in (*folders, *files):
            path = Path(where) / name
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise BadInput(
                    f"{str(path)!r} is a link or no plain file: a run is not resumed through it, replace it by what it "
                    "stands for"
                )


def _foreign_traces(folder: RunFolder, manifest: Manifest) -> list[Job]:
    """Jobs that continue from a trace whose last line this machine did not write."""
    jobs = manifest.jobs()
    settled = folder.settled(jobs)
    begun = ((job, folder.trace(job.episode_id)) for job in jobs if job not in settled)
    return [job for job, path in begun if has_header(path) and not check_chain(path).own]


def _with(manifest: Manifest, settled: Settled) -> Manifest:
    task, branch = manifest.open_task, manifest.branch
    update: dict[str, Any] = {"config": settled.config}
    if task is not None and settled.url is not None:
        update["open_task"] = task.model_copy(update={"url": settled.url})
    if branch is not None and settled.parent is not None:
        update["branch"] = branch.model_copy(update={"trace": settled.parent})
    return manifest.model_copy(update=update)


def _free(path: Path) -> Path:
    """A name beside *path* that nothing has."""
    names = (path.with_name(f"{path.name}{SET_ASIDE}{number or ''}") for number in range(10_000))
    return next(name for name in names if not name.exists())
