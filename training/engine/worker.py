"""Runs a job in a launcher's process and ends the process with an exit code."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from torch import distributed
from transformers.utils import logging

from envs.core.errors import BadInput, NotWritten
from training.engine.launcher import DIVERGED, NO_ROOM
from training.engine.progress import Lines, Watcher
from training.engine.trainer import TrainingDiverged

Work = Callable[[Path, Watcher], None]
"""Runs the job in a folder and reports its steps to the watcher."""


def carry_out(work: Work, arguments: list[str]) -> int:
    """Runs *work* in the folder that *arguments* name and returns the exit code. An error is one line on stderr."""
    logging.disable_progress_bar()
    try:
        if len(arguments) != 1:
            raise BadInput("give one argument: the folder of the job")
        work(Path(arguments[0]), Lines(lambda line: sys.stderr.write(f"{line}\n")))
        if distributed.is_available() and distributed.is_initialized():
            distributed.destroy_process_group()
    except BadInput as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except NotWritten as error:
        sys.stderr.write(f"{error}\n")
        with suppress(OSError):  # an empty file can be created on a full disk
            (Path(arguments[0]) / NO_ROOM).touch()
        return 1
    except TrainingDiverged as error:
        (Path(arguments[0]) / DIVERGED).write_text(str(error), encoding="utf-8")
        return 1
    return 0


def run(work: Work, arguments: list[str]) -> NoReturn:
    """Runs `carry_out` and ends this process with its exit code. Exit handlers that were registered meanwhile still run
    (trackers flush their data), but the interpreter's shutdown does not: gloo's threads sometimes abort it, which a
    launcher would report as a failure."""
    code = 1

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    atexit.register(leave)  # the first registered handler is called last
    code = carry_out(work, arguments)
    sys.exit(code)
