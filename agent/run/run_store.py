"""The folder of a run and its files.

    runs/RUN_ID/
    ├── run.json              the manifest: written once, before the first episode
    ├── lease                 lock of the one process that executes the run
    ├── episodes/ID.jsonl     one trace per episode, see envs.core.trace
    ├── blobs/                page texts, prompts, pictures by content hash
    ├── state/ID/             cookies and storage, for environments that are reopened after a kill
    ├── downloads/
    ├── traces/ID.zip         Playwright's trace, if `trace_zip` is set
    └── results.jsonl         one row per finished episode, derived from the footers, which take precedence

`run.json` and the final `results.jsonl` are written atomically (temporary file, fsync, rename): a reader sees the old
file or the new one. During the run, rows are appended; a torn last row is dropped on resume.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from platform import python_version

from agent.config import RunConfig
from agent.results import EpisodeResult
from agent.run.limits import continues
from agent.run.run_mark import is_own, marked
from envs.core.actions import DOWNLOADS
from envs.core.atomic_write import write_atomically
from envs.core.disk_errors import disk_refusal, write_all, writing
from envs.core.errors import BadInput, NotWritten
from envs.core.record import Record
from envs.core.tasks import TaskRef, TaskSelection
from envs.core.trace import Footer, Header, Parent
from envs.core.trace_store import RunLock, has_header, read_summary

MANIFEST_VERSION = 1


class OpenTask(Record):
    """A task given as an instruction and an address."""

    instruction: str
    url: str


class Branch(Record):
    """Start of a branched run: steps of another run's episode, which are repeated."""

    trace: Path
    """Absolute path of the parent's trace; needed until its steps have been repeated."""
    parent: Parent
    heals: bool = False
    """All steps are repeated, and where one cannot be, the policy continues; else the run ends as broken."""
    texts: tuple[tuple[str, str], ...] = ()
    """(recorded, new) texts to type, choose or open in place of the recorded ones."""


class Manifest(Record):
    """`run.json`: everything that determines the episodes of a run."""

    manifest_version: int = MANIFEST_VERSION
    run_id: str
    created_at: str
    config: RunConfig
    suite: str
    open_task: OpenTask | None = None
    """Set for an open task, whose suite is built from it."""
    branch: Branch | None = None
    """Set if the run continues from the middle of another one."""
    names: tuple[str, ...]
    seeds: tuple[int, ...]
    picked: tuple[TaskRef, ...] = ()
    """Task instances that replace names × seeds, in the order of execution."""
    versions: dict[str, str]
    mark: str = ""
    """Mark of the machine that wrote the file, see :mod:`agent.run.run_mark`; empty in runs of older versions."""

    def jobs(self) -> tuple[Job, ...]:
        """Lists all episodes of the run, in order: task, seed, attempt."""
        refs = TaskSelection(self.suite, self.names, self.seeds, self.picked).refs()
        return tuple(Job(ref, attempt) for ref in refs for attempt in range(1, self.config.attempts + 1))


@dataclass(frozen=True, slots=True)
class Job:
    """One episode to run."""

    task: TaskRef
    attempt: int

    @property
    def episode_id(self) -> str:
        """Unique within its run, and a valid file name on every system."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", self.task.name)[:80].lstrip(".") or "task"
        written = f"-{self.task.written_digest}" if self.task.written else ""
        return f"{name}-{self.task.seed}{written}-a{self.attempt}"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths and files of one run."""

    path: Path

    @property
    def manifest(self) -> Path:
        return self.path / "run.json"

    @property
    def blobs(self) -> Path:
        return self.path / "blobs"

    @property
    def downloads(self) -> Path:
        return self.path / DOWNLOADS

    @property
    def results(self) -> Path:
        return self.path / "results.jsonl"

    def trace(self, episode_id: str) -> Path:
        return self.path / "episodes" / f"{episode_id}.jsonl"

    def zip(self, episode_id: str) -> Path:
        """Path of the Playwright trace of an episode."""
        return self.path / "traces" / f"{episode_id}.zip"

    def traces(self) -> list[Path]:
        """Lists the non-empty traces, in the order of the run. Raises BadInput if the folder holds no run."""
        paths = (self.trace(job.episode_id) for job in self.read_manifest().jobs())
        return [path for path in paths if path.exists() and path.stat().st_size > 0]

    def mark_started(self, episode_id: str) -> None:
        """Marks an episode as started before its environment is reset, so that a crash is attributed to it."""
        path = self.trace(episode_id)
        with writing(path):
            path.touch(mode=0o600)

    def was_started(self, episode_id: str) -> bool:
        return self.trace(episode_id).exists()

    def finished(self, jobs: Iterable[Job]) -> dict[Job, EpisodeResult]:
        """Results of the episodes that ended, independent of `results.jsonl`. Raises TraceError."""
        return {job: EpisodeResult.of(*ended) for job, ended in self.ended(jobs).items()}

    def ended(self, jobs: Iterable[Job]) -> dict[Job, tuple[Header, Footer]]:
        """Header and footer of the episodes whose trace has a footer. Raises TraceError."""
        ended: dict[Job, tuple[Header, Footer]] = {}
        for job in jobs:
            path = self.trace(job.episode_id)
            if has_header(path):
                header, footer = read_summary(path)
                if footer is not None:
                    ended[job] = header, footer
        return ended

    def settled(self, manifest: Manifest) -> dict[Job, EpisodeResult]:
        """Results of `finished` that `mira resume` does not change with the limits of *manifest*. Raises TraceError."""
        limits = manifest.config.limits
        return {
            job: EpisodeResult.of(header, footer)
            for job, (header, footer) in self.ended(manifest.jobs()).items()
            if not footer.resumable and not continues(header.config, footer, limits)
        }

    def saved(self, episode_id: str) -> Path:
        return self.path / "state" / episode_id

    def create(self, manifest: Manifest, lock: RunLock | None = None) -> bool:
        """Creates the folder, and acquires its *lock* before `run.json` is written. Returns whether the folder is new.

        Raises BadInput if it already holds a run, another process is creating one (RunLocked), or it cannot be written.
        If the disk is full, the incomplete folder is removed and NotWritten is raised."""
        self._check_free()
        new = not self.path.exists()
        try:
            with writing(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
                self.path.chmod(0o700)  # other users must not read pages, cookies and answers
                for folder in (self.path / "episodes", self.blobs, self.downloads):
                    folder.mkdir(mode=0o700, exist_ok=True)
            if lock is not None:
                lock.acquire()
                self._check_free()
            self.write_manifest(manifest)
        except NotWritten:
            if new:
                shutil.rmtree(self.path, ignore_errors=True)
            raise
        except OSError as error:
            raise BadInput(f"run folder {str(self.path)!r} cannot be written: {error.strerror}") from None
        return new

    def _check_free(self) -> None:
        if self.manifest.exists():
            raise BadInput(f"{str(self.path)!r} already holds a run: resume it, or choose another run id")

    def write_manifest(self, manifest: Manifest) -> None:
        """Replaces `run.json`, marked as written on this machine."""
        values = marked(manifest.model_dump(mode="json"))
        write_atomically(self.manifest, json.dumps(values, indent=2, ensure_ascii=False) + "\n", private=True)

    def discard_if_unplayed(self, *, own: bool) -> None:
        """Removes the folder of a run that could not start, or, if the run did not create it (*own*), the files and
        empty folders of the run in it. A folder with a non-empty trace is kept."""
        if any(path.stat().st_size for path in (self.path / "episodes").glob("*.jsonl")):
            return
        if own:
            shutil.rmtree(self.path)
            return
        for path in (self.manifest, *(self.path / "episodes").glob("*.jsonl")):
            path.unlink(missing_ok=True)
        for folder in (self.path / "episodes", self.blobs, self.downloads):
            with suppress(OSError):  # it holds files of others
                folder.rmdir()

    def read_manifest(self) -> Manifest:
        """Reads `run.json`. Raises BadInput in one line if it is missing or cannot be read."""
        return self.read_marked()[0]

    def read_marked(self) -> tuple[Manifest, bool]:
        """Returns the manifest, and whether this machine wrote it as it is. Raises BadInput like `read_manifest`."""
        try:
            values = json.loads(self.manifest.read_bytes())
            own = isinstance(values, dict) and is_own(values)  # pyright: ignore[reportUnknownArgumentType]
            return Manifest.model_validate_json(json.dumps(values)), own
        except FileNotFoundError:
            raise BadInput(f"{str(self.path)!r} holds no run (no run.json): name the folder of a run") from None
        except (OSError, ValueError, RecursionError) as error:  # pydantic's errors are ValueErrors
            problem = str(error).splitlines()[0]
            raise BadInput(f"{str(self.manifest)!r} cannot be read: {problem}") from None

    def append_result(self, result: EpisodeResult) -> None:
        row = result.model_dump_json().encode() + b"\n"
        with writing(self.results):
            fd = os.open(self.results, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                write_all(fd, row)
            finally:
                os.close(fd)

    def write_results(self, results: Iterable[EpisodeResult]) -> None:
        write_atomically(self.results, "".join(result.model_dump_json() + "\n" for result in results), private=True)


@contextmanager
def with_resume_hint(folder: Path) -> Generator[None]:
    """Adds the command that resumes the run in *folder* to the error of a full disk (NotWritten)."""
    try:
        yield
    except Exception as error:
        # A full disk causes errors of many kinds; all other errors are raised again.
        refused = disk_refusal(error, folder)
        if refused is None:
            raise
        if RunFolder(folder).manifest.exists():
            refused.continue_with = f"mira resume {folder}"
        if refused is error:
            raise
        raise refused from error


def new_run_id() -> str:
    """Returns a run id that sorts by time, with a random suffix."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def is_new_run_id(run_id: str) -> bool:
    """True if *run_id* has the form of `new_run_id`, so that no user has chosen it."""
    return re.fullmatch(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}", run_id) is not None


def checked_run_id(run_id: str) -> str:
    """Returns *run_id*. Raises BadInput if it is not a plain folder name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", run_id):
        raise BadInput(f"run id {run_id!r} must be letters, digits, dot, dash or underscore, 100 at most")
    return run_id


@cache
def versions() -> dict[str, str]:
    """Installed versions of Python and of the packages that affect a run."""
    installed = {"python": python_version()}
    for package in ("mira-web", "langgraph", "playwright", "miniwob", "openai", "google-genai", "transformers"):
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return installed
