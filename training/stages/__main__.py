"""`python -m training.stages STAGE`: runs one stage, see :mod:`training.stages.jobs`."""

from __future__ import annotations

import sys
from pathlib import Path

from training.stages.jobs import run_job

if __name__ == "__main__":
    run_job(Path(sys.argv[1]))
