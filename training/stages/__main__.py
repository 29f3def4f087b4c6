"""`python -m training.stages FOLDER`: what the folder asks for, a stage (:mod:`training.stages.jobs`), scores
(:mod:`training.stages.scoring`) or a fine-tuning (:mod:`training.stages.sft`)."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from typing import NoReturn

from torch import distributed
from transformers.utils import logging

from envs.errors import BadInput
from training.stages import scoring, sft
from training.stages.jobs import run_job
from training.stages.launching import DIVERGED
from training.stages.trainer import TrainingDiverged
from training.stages.watching import Lines


def main(arguments: list[str]) -> int:
    """The exit code. What went wrong is one line on stderr."""
    logging.disable_progress_bar()
    try:
        if len(arguments) != 1:
            raise BadInput("one argument: the folder of a stage")
        folder, watch = Path(arguments[0]), Lines(lambda line: sys.stderr.write(f"{line}\n"))
        if (folder / scoring.JOB).exists():
            scoring.run_scoring(folder, watch)
        elif (folder / sft.JOB).exists():
            sft.run_supervised(folder, watch)
        else:
            run_job(folder, watch=watch)
        if distributed.is_available() and distributed.is_initialized():
            distributed.destroy_process_group()
    except BadInput as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except TrainingDiverged as error:
        (Path(arguments[0]) / DIVERGED).write_text(str(error), encoding="utf-8")
        return 1
    return 0


def run(arguments: list[str]) -> NoReturn:
    """Ends this process with what `main` says, after all that was registered for its end since (trackers send what they
    hold then), and without the interpreter's own: gloo's threads now and then abort that, and a launcher then takes
    what was done for a failure."""
    code = 1

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    atexit.register(leave)  # the first that is registered is the last that is called
    code = main(arguments)
    sys.exit(code)


if __name__ == "__main__":
    run(sys.argv[1:])
