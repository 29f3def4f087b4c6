"""Runs `mira`, or a Python program, in a process of its own without importing its libraries each time: some 2 s of CPU
time less per run."""

from __future__ import annotations

import multiprocessing
import os
import resource
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
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
    program: Path | None
    """None runs `mira`."""
    packages: tuple[Path, ...]


def run_mira(
    *words: object,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    max_file_bytes: int | None = None,
    packages: Sequence[Path] = (),
) -> subprocess.CompletedProcess[str]:
    """Runs `mira WORDS` without a terminal. *env*: of this process by default; *max_file_bytes* bounds its files;
    *packages*: folders that are searched for modules and distributions, too.

    Raises subprocess.TimeoutExpired where it hangs.
    """
    return _run(_Job(_strings(words), _environ(env), cwd, max_file_bytes, None, tuple(packages)))


def run_program(
    program: Path, *words: object, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `python PROGRAM WORDS` as :func:`run_mira` runs `mira`."""
    return _run(_Job(_strings(words), _environ(env), cwd, None, program, ()))


def _strings(words: Sequence[object]) -> list[str]:
    return [str(word) for word in words]


def _environ(env: Mapping[str, str] | None) -> dict[str, str]:
    return dict(os.environ if env is None else env)


def _run(job: _Job) -> subprocess.CompletedProcess[str]:
    FORKS.set_forkserver_preload(list(PRELOADED))
    command = job.words
    with tempfile.TemporaryDirectory(prefix="mira-out-") as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        child = FORKS.Process(target=_main, args=(job, out, err))
        child.start()
        child.join(HANG_S)
        if child.exitcode is None:
            child.kill()
            child.join()
            raise subprocess.TimeoutExpired(command, HANG_S, out.read_text(), err.read_text())
        return subprocess.CompletedProcess(command, child.exitcode, out.read_text(), err.read_text())


def _main(job: _Job, out: Path, err: Path) -> None:
    os.environ.clear()
    os.environ.update(job.env)
    os.chdir(job.cwd or Path(__file__).parents[2])
    for number, path in ((0, Path(os.devnull)), (1, out), (2, err)):
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    if job.max_file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job.max_file_bytes, job.max_file_bytes))
    sys.path[:0] = map(str, job.packages)
    if job.program is not None:
        sys.argv = [str(job.program), *job.words]
        sys.path.insert(0, str(job.program.parent))
        runpy.run_path(str(job.program), run_name="__main__")
        return
    sys.argv = ["mira", *job.words]
    from agent.cli.app import main

    main()
