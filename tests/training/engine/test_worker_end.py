"""The end of a launched stage: its exit code, after all exit handlers ran."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BODY = """
import atexit, json, os, sys
from envs.core.errors import BadInput
from training.engine.worker import run  # once: importing it takes seconds

def returns(): pass
def is_wrong(): raise BadInput("no")
def breaks(): raise OSError("full")

def stage(body):
    def work(folder, watch):
        atexit.register(lambda: print("sent", end=""))  # as a tracker does
        body()
    return work

codes = {}
for body in (returns, is_wrong, breaks):
    pid = os.fork()
    if not pid:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{sys.argv[1]}/{body.__name__}.{name}", os.O_WRONLY | os.O_CREAT), number)
        run(stage(body), ["folder"])
    codes[body.__name__] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps(codes))
"""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """The folder with the outputs of processes that end in three ways, and their exit codes."""
    folder = tmp_path_factory.mktemp("ended")
    done = subprocess.run([sys.executable, "-c", BODY, str(folder)], capture_output=True, text=True, check=True)
    return folder, json.loads(done.stdout)


@pytest.mark.parametrize(("how", "code"), [("returns", 0), ("is_wrong", 2), ("breaks", 1)])
def test_a_launched_stage_runs_exit_handlers_and_returns_its_exit_code(
    ended: tuple[Path, dict[str, int]], how: str, code: int
) -> None:
    folder, codes = ended
    assert (codes[how], (folder / f"{how}.out").read_text()) == (code, "sent")
    assert ("OSError: full" in (folder / f"{how}.err").read_text()) == (code == 1)
