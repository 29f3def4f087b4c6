"""What reads stdout may end early (`| head -1`), and the caller may have closed it (`>&-`): one line, nothing lost."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.episodes import Play, write_run
from tests.timing import HANG_S

ROOT = Path(__file__).parents[3]


def in_bash(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs *line*, in which `mira` is the command, and prints the exit codes of its pipe at the end of stdout."""
    mira = f'mira() {{ {shlex.quote(sys.executable)} -m agent.cli "$@"; }}; '
    return subprocess.run(
        ["bash", "-c", f'{mira}{line}; echo "codes ${{PIPESTATUS[*]}}"'],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize("words", ["show r", "show r --json", "tasks --suite miniwob"])
@pytest.mark.parametrize("stream", [">&-", ">&- 2>&- <&-"])
def test_a_closed_stdout_is_no_traceback(words: str, stream: str, tmp_path: Path) -> None:
    """Symptom: AttributeError: 'NoneType' object has no attribute 'encoding'."""
    write_run(tmp_path / "r", [Play()])
    ended = in_bash(f"mira {words} {stream}", tmp_path)
    assert ended.stdout == "codes 0\n" and ended.stderr == ""


@pytest.mark.parametrize("words", ["show r", "show r --json"])
def test_a_reader_that_ended_interrupts_the_command(words: str, tmp_path: Path) -> None:
    write_run(tmp_path / "r", [Play()])
    ended = in_bash(f"mira {words} | true", tmp_path)
    assert ended.stdout == "codes 130 0\n" and ended.stderr == ""


@pytest.mark.browser
def test_a_run_whose_reader_ended_says_how_to_continue(tmp_path: Path) -> None:
    """Symptom: `mira run … | head -1` ended without a word, with the exit code of a failed task."""
    ended = in_bash("mira run --suite miniwob --tasks click-test --seeds 0-2 | head -1", tmp_path)
    assert ended.stdout.endswith("codes 130 0\n")
    command = re.search(r"mira: the output was closed; continue with: (mira resume runs/\S+)\n", ended.stderr)
    assert command is not None, ended.stderr
    continued = in_bash(command[1], tmp_path)
    assert re.search(r"click-test +3/3 ", continued.stdout) and continued.stdout.endswith("codes 0\n")
