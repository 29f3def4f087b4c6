"""`python -m training.grpo FOLDER`: one process of a launched run, see :mod:`training.grpo.run`."""

from __future__ import annotations

import sys

from training.engine.worker import run
from training.grpo.run import run_launched_part

if __name__ == "__main__":
    run(run_launched_part, sys.argv[1:])
