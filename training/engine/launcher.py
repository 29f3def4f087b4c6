"""Runs the job in a folder under a launcher of several processes, such as `accelerate launch`."""

from __future__ import annotations

import errno
import gc
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from envs.core.disk_errors import not_written
from envs.core.errors import BadInput
from training.engine.trainer import TrainingDiverged

DIVERGED = "diverged.txt"
"""File in the folder of a launched stage that diverged, with the reason. Launchers do not pass exit codes on."""

NO_ROOM = "not_written"
"""Empty file in the folder of a launched stage whose disk was full."""


def release_gpu() -> None:
    """Frees the GPU memory that this process holds, except for PyTorch's cache of the context, for another process."""
    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()


def bound_to_us(words: Sequence[str]) -> tuple[str, ...]:
    """The command *words*, wrapped so that it gets SIGTERM when this process ends in any way. Needs util-linux."""
    available = shutil.which("setpriv") and shutil.which(words[0])
    return ("setpriv", "--pdeathsig", "TERM", *words) if available else tuple(words)


def run_launched(launcher: Sequence[str], folder: Path, module: str = "training.engine") -> None:
    """Runs `python -m MODULE FOLDER` under *launcher*, such as `("accelerate", "launch", "-m")`.

    Raises TrainingDiverged, NotWritten, and BadInput where a process fails; its stderr has the reason.
    """
    command = [*launcher, module, str(folder)]
    release_gpu()
    for mark in (DIVERGED, NO_ROOM):
        (folder / mark).unlink(missing_ok=True)
    try:
        exit_code = subprocess.run(bound_to_us(command), check=False, stdout=sys.stderr).returncode
    except OSError as error:
        raise BadInput(f"launcher {command[0]!r} cannot be started: {error.strerror or error}") from error
    if exit_code or (folder / DIVERGED).exists() or (folder / NO_ROOM).exists():
        raise launch_failure(command, folder, exit_code)


def launch_failure(command: Sequence[str], folder: Path, exit_code: int) -> Exception:
    """The error of a launched *command* that ended, from the files that its processes left in *folder*."""
    if (folder / DIVERGED).exists():
        return TrainingDiverged((folder / DIVERGED).read_text(encoding="utf-8"))
    if (folder / NO_ROOM).exists():
        (folder / NO_ROOM).unlink()
        return not_written(folder, os.strerror(errno.ENOSPC))
    return BadInput(f"{shlex.join(command)} ended with exit code {exit_code}; its output is above")
