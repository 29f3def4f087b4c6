"""Tests run beside each other, so PyTorch computes in one thread in each process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

THREADS = Path("/proc/self/task")
COUNTED = """\
import sys, torch
from pathlib import Path
torch.set_num_threads(2)
threads = []
for _ in range(3):
    matrix = torch.ones(700, 700) @ torch.ones(700, 700)
    threads.append(sum(1 for _ in Path("/proc/self/task").iterdir()))
print(threads[-1])
"""


def threads_of(environment: dict[str, str]) -> int:
    """Threads of a process in which PyTorch has computed with two threads."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTED], env=environment, stdout=subprocess.PIPE, check=True, text=True
    )
    return int(done.stdout)


@pytest.mark.skipif(os.environ.get("OMP_THREAD_LIMIT") != "1", reason="the environment asks for more threads")
@pytest.mark.skipif(not THREADS.is_dir(), reason="threads are counted in /proc")
def test_pytorch_computes_in_one_thread_whatever_is_set() -> None:
    unlimited = {name: value for name, value in os.environ.items() if name != "OMP_THREAD_LIMIT"}
    assert threads_of(dict(os.environ)) < threads_of(unlimited)
