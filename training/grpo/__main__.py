"""`python -m training.grpo FOLDER`: one process of a run that a launcher does, see :mod:`training.grpo.running`."""

from __future__ import annotations

import sys

from training.grpo.running import run_launched_part
from training.stages.launched import run

if __name__ == "__main__":
    run(run_launched_part, sys.argv[1:])
