"""A folder's work done by the processes of a launcher, such as `accelerate launch`."""

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
"""In the folder of a launched stage that the guard stopped: why. Launchers do not pass exit codes on."""

NO_ROOM = "not_written"
"""In the folder of a launched stage whose disk did not take what was written: an empty file."""


def release_gpu() -> None:
    """Another process may have it: what this one held is gone, but for what PyTorch keeps for the next time."""
    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()


def bound_to_us(words: Sequence[str]) -> tuple[str, ...]:
    """The command *words*, which is told to end when this process does, however it ends: where there is util-linux."""
    found = shutil.which("setpriv") and shutil.which(words[0])
    return ("setpriv", "--pdeathsig", "TERM", *words) if found else tuple(words)


def run_launched(launcher: Sequence[str], folder: Path, module: str = "training.engine") -> None:
    """`python -m MODULE FOLDER` under *launcher*, such as `("accelerate", "launch", "-m")`.

    Raises TrainingDiverged, NotWritten, and BadInput where a process fails: it has said why on stderr.
    """
    command = [*launcher, module, str(folder)]
    release_gpu()
    for mark in (DIVERGED, NO_ROOM):
        (folder / mark).unlink(missing_ok=True)
    try:
        ended = subprocess.run(bound_to_us(command), check=False, stdout=sys.stderr).returncode
    except OSError as error:
        raise BadInput(f"launcher {command[0]!r} cannot be started: {error.strerror or error}") from error
    if (folder / DIVERGED).exists():
        raise TrainingDiverged((folder / DIVERGED).read_text(encoding="utf-8"))
    if (folder / NO_ROOM).exists():
        (folder / NO_ROOM).unlink()
        raise not_written(folder, os.strerror(errno.ENOSPC))
    if ended:
        raise BadInput(f"{shlex.join(command)} ended with exit code {ended}; what it said stands above")
