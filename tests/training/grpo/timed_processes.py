"""GRPO that records how long a process waits for the others: `python -m tests.training.grpo.timed_processes
training.grpo FOLDER`, under a launcher. Each process writes its seconds to `FOLDER/wait-RANK`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from training.engine.progress import Watcher
from training.engine.worker import run
from training.grpo.run import run_launched_part


def recorded(folder: Path, watch: Watcher) -> None:
    run_launched_part(folder, watch)
    group: Any = distributed.group.WORLD
    timeout = group._get_backend(torch.device("cpu")).options._timeout
    (folder / f"wait-{distributed.get_rank()}").write_text(str(timeout.total_seconds()))


if __name__ == "__main__":
    run(recorded, sys.argv[2:])
