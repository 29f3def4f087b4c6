"""Keeps the processes of a launcher over all jobs of a phase: they start once, and load a shared base once.

The first process of a training run writes each job's folder to a file in the session's folder; every worker process
polls for it, and the first of them reports that the job is done. No collective operation is open between two jobs, so
none times out. A failed job ends the session.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from envs.core.record import Record
from training.engine.launcher import bound_to_us, launch_failure, release_gpu
from training.engine.processes import process_state

SESSION = "session.json"
POLL_S = 0.05
END_S = 30.0
"""Seconds that the processes have to end, before they are killed."""


class Session(Record):
    """The process that gives the jobs, and the prefix of the session's files."""

    host: str
    pid: int
    token: str

    def job(self, folder: Path, number: int) -> Path:
        """File with the folder of job *number*, counted from 1; empty: the session ends."""
        return folder / f"{self.token}-{number}.job"

    def done(self, folder: Path, number: int) -> Path:
        """File that the first worker process writes after job *number*."""
        return folder / f"{self.token}-{number}.done"

    def is_over(self) -> bool:
        """Whether the process that gives the jobs is known to have ended."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


class Workers:
    """The processes of one launcher command, started at the first job."""

    def __init__(self, launcher: Sequence[str], folder: Path) -> None:
        """*folder*: of the session's files; it is emptied."""
        self._command = (*launcher, "training.engine", str(folder))
        self._folder = folder
        self._session = Session(host=socket.gethostname(), pid=os.getpid(), token=uuid.uuid4().hex[:8])
        self._process: subprocess.Popen[bytes] | None = None
        self._jobs = 0

    def run(self, job: Path) -> None:
        """Runs the job in the folder *job* in all processes. Raises TrainingDiverged, NotWritten, and BadInput where a
        process fails; its stderr has the reason."""
        process = self._process or self._start()
        self._jobs += 1
        self._tell(str(job.resolve()))
        done = self._session.done(self._folder, self._jobs)
        while not done.exists():
            exit_code = process.poll()
            if exit_code is not None and not done.exists():
                self._process = None
                raise launch_failure(self._command, self._folder, exit_code)
            time.sleep(POLL_S)

    def close(self, *, failed: bool = False) -> None:
        """Ends the processes. *failed*: without waiting for the job that they run."""
        process, self._process = self._process, None
        if process is not None:
            if failed:
                process.terminate()
            else:
                self._jobs += 1
                self._tell("")
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> subprocess.Popen[bytes]:
        release_gpu()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        write_atomically(self._folder / SESSION, self._session.model_dump_json() + "\n", sync=False)
        try:
            self._process = subprocess.Popen(bound_to_us(self._command), stdout=sys.stderr)
        except OSError as error:
            raise BadInput(f"launcher {self._command[0]!r} cannot be started: {error.strerror or error}") from error
        return self._process

    def _tell(self, job: str) -> None:
        write_atomically(self._session.job(self._folder, self._jobs), job, sync=False)


def run_session(folder: Path, work: Callable[[Path], None]) -> None:
    """Runs one process's part of the jobs that `Workers` gives in *folder*, until the session ends."""
    try:
        session = Session.model_validate_json((folder / SESSION).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(folder / SESSION)!r} cannot be read: {' '.join(str(error).split())[:200]}") from error
    for number in count(1):
        job = _next_job(session, folder, number)
        if not job:
            return
        work(Path(job))
        release_gpu()
        if process_state().process_index == 0:
            with suppress(FileNotFoundError):  # the session was ended meanwhile
                session.done(folder, number).touch()


def _next_job(session: Session, folder: Path, number: int) -> str:
    """Waits for job *number* and returns its folder; empty at the end of the session."""
    path = session.job(folder, number)
    while not path.exists():
        if session.is_over() or not folder.exists():
            return ""
        time.sleep(POLL_S)
    return path.read_text(encoding="utf-8")
