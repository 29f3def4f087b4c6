"""Two processes that run the jobs of all tests of a file: starting them costs more CPU time than such a job."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from training.engine.workers import Workers


class KeptProcesses:
    """The processes of a launcher, with environment variables of their own. They start again after a job that fails."""

    def __init__(self, launcher: tuple[str, ...], folder: Path, environ: Mapping[str, str]) -> None:
        self._errors = folder.with_name("errors.txt")
        self._launcher = ("sh", "-c", f'exec "$@" 2>>{shlex.quote(str(self._errors))}', "sh", *launcher)
        self._folder = folder
        self._environ = {"ACCELERATE_USE_CPU": "true", **environ}
        self._workers: Workers | None = None

    def run(self, job: Path) -> None:
        """Runs the job in the folder *job*, as :meth:`training.engine.workers.Workers.run` does."""
        workers = self._workers = self._workers or Workers(self._launcher, self._folder)
        try:
            with pytest.MonkeyPatch.context() as patch:  # they inherit it when they start
                for name, value in self._environ.items():
                    patch.setenv(name, value)
                workers.run(job)
        except BaseException as error:
            self.close(failed=True)
            error.add_note(self.errors())
            raise

    def errors(self) -> str:
        """What the processes wrote to stderr. They outlive the test that started them, and pytest's capture of it."""
        return self._errors.read_text(encoding="utf-8")

    def close(self, *, failed: bool = False) -> None:
        workers, self._workers = self._workers, None
        if workers is not None:
            workers.close(failed=failed)
