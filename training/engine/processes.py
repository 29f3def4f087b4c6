"""The processes of a launcher: which of them this one is, and how long it waits for the others."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from accelerate import PartialState

PATIENCE: Final = timedelta(days=1)
"""How long a process waits for the others in a collective operation. PyTorch's default with NCCL is ten minutes, and
the first process alone answers held-out examples. A launcher ends the others where one of them fails."""


def process_state(*, cpu: bool = False) -> PartialState:
    """accelerate's state of this process. The first call connects the processes of a launcher; *cpu*: without GPUs.

    Nothing else must connect them: the timeout of the connection is that of the first caller.
    """
    return PartialState(cpu=cpu, timeout=PATIENCE)
