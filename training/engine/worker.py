"""What a process of a launcher does, and how it ends."""

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
"""What is asked for in a folder; its steps are told to the watcher."""


def carry_out(work: Work, arguments: list[str]) -> int:
    """Does *work* in the one folder that *arguments* name; the exit code. What went wrong is one line on stderr."""
    logging.disable_progress_bar()
    try:
        if len(arguments) != 1:
            raise BadInput("one argument: the folder of what is to be done")
        work(Path(arguments[0]), Lines(lambda line: sys.stderr.write(f"{line}\n")))
        if distributed.is_available() and distributed.is_initialized():
            distributed.destroy_process_group()
    except BadInput as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except NotWritten as error:
        sys.stderr.write(f"{error}\n")
        with suppress(OSError):  # on a full disk a file may be empty: that it is there says enough
            (Path(arguments[0]) / NO_ROOM).touch()
        return 1
    except TrainingDiverged as error:
        (Path(arguments[0]) / DIVERGED).write_text(str(error), encoding="utf-8")
        return 1
    return 0


def run(work: Work, arguments: list[str]) -> NoReturn:
    """Ends this process with what `carry_out` says, after all that was registered for its end since (trackers send what
    they hold then), and without the interpreter's own: gloo's threads now and then abort that, and a launcher then
    takes what was done for a failure."""
    code = 1

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    atexit.register(leave)  # the first that is registered is the last that is called
    code = carry_out(work, arguments)
    sys.exit(code)
