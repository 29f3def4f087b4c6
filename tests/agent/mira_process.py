"""Runs `mira` in a process of its own without importing its libraries each time: some 2 s of CPU time less per run."""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.timing import HANG_S

FORKS: Final = multiprocessing.get_context("forkserver")
PRELOADED: Final = ("agent.run.runner", "models.providers.openai_chat", "tests.agent.mira_process")
"""Not `agent.cli`: its consoles read the environment, which each run has of its own."""


@dataclass(frozen=True)
class _Job:
    words: list[str]
    env: dict[str, str]
    cwd: Path | None
    max_file_bytes: int | None
    out: Path
    err: Path


def run_mira(
    *words: object, env: Mapping[str, str] | None = None, cwd: Path | None = None, max_file_bytes: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `mira WORDS` without a terminal. *env*: of this process by default; *max_file_bytes* bounds its files.

    Raises subprocess.TimeoutExpired where it hangs.
    """
    FORKS.set_forkserver_preload(list(PRELOADED))
    command = [str(word) for word in words]
    with tempfile.TemporaryDirectory(prefix="mira-out-") as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        job = _Job(command, dict(os.environ if env is None else env), cwd, max_file_bytes, out, err)
        child = FORKS.Process(target=_main, args=(job,))
        child.start()
        child.join(HANG_S)
        if child.exitcode is None:
            child.kill()
            child.join()
            raise subprocess.TimeoutExpired(command, HANG_S, out.read_text(), err.read_text())
        return subprocess.CompletedProcess(command, child.exitcode, out.read_text(), err.read_text())


def _main(job: _Job) -> None:
    os.environ.clear()
    os.environ.update(job.env)
    os.chdir(job.cwd or Path(__file__).parents[2])
    for number, path in ((0, Path(os.devnull)), (1, job.out), (2, job.err)):
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    if job.max_file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job.max_file_bytes, job.max_file_bytes))
    sys.argv = ["mira", *job.words]
    from agent.cli.app import main

    main()
