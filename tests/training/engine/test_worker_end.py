"""The end of a launched stage: its exit code, after all exit handlers ran."""

from __future__ import annotations

import subprocess
import sys

import pytest

BODY = """
import atexit
from envs.core.errors import BadInput
from training.engine.worker import run

def work(folder, watch):
    atexit.register(lambda: print("sent", end=""))  # as a tracker does
    {work}

run(work, ["folder"])
"""


@pytest.mark.parametrize(("work", "code"), [("return", 0), ("raise BadInput('no')", 2), ("raise OSError('full')", 1)])
def test_a_launched_stage_runs_exit_handlers_and_returns_its_exit_code(work: str, code: int) -> None:
    ended = subprocess.run([sys.executable, "-c", BODY.format(work=work)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (code, "sent")
    assert ("OSError: full" in ended.stderr) == (code == 1)
