"""A browser that does not start in time is not wrong input: it has its own exit code and hint, and no step is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.run.runner import resume, run_open
from envs.browser.chromium import Chromium, launch_s
from envs.core.actions import Stop, Wait
from envs.core.errors import BadInput, BrowserNotStarted
from envs.core.trace_store import read_trace
from tests.agent.shop import Shop, config, scripted
from tests.envs.browser.processes import belonging, kill
from tests.timing import HANG_S, slowdown

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.browser


@pytest.fixture
def hangs(tmp_path: Path) -> Path:
    """A program that hangs, used in place of the driver or of Chromium."""
    program = tmp_path / "hangs"
    program.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(600)\n")
    program.chmod(0o755)
    return program


def mira(folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agent.cli", *words],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
    )


DRIVER, CHROMIUM = ("PLAYWRIGHT_NODEJS_PATH", "Playwright's driver"), ("MIRA_CHROMIUM", "Chromium at ")
OPEN_TASK, SUITE = ["run", "x", "--url", "http://127.0.0.1:9/"], ["run", "--suite", "miniwob", "--tasks", "click-test"]


@pytest.mark.parametrize(
    ("variable", "program", "words"),
    [
        pytest.param(*DRIVER, OPEN_TASK, id="driver-open task"),
        pytest.param(*CHROMIUM, OPEN_TASK, id="Chromium-open task"),
        pytest.param(*CHROMIUM, SUITE, id="Chromium-suite", marks=pytest.mark.heavy),
        pytest.param(*DRIVER, ["doctor"], id="driver-doctor"),
    ],
)
def test_a_driver_that_did_not_start_is_no_wrong_input(
    hangs: Path, tmp_path: Path, variable: str, program: str, words: list[str]
) -> None:
    (tmp_path / "here").mkdir()
    seconds = f"{2 * slowdown():.0f}"  # the driver must start within it
    done = mira(tmp_path / "here", *words, **{variable: str(hangs), "MIRA_LAUNCH_S": seconds})
    assert (done.returncode, done.stdout) == (1, "")
    problems = [line for line in done.stderr.splitlines() if line.startswith("mira: ")]
    assert len(problems) == 1 and problems[0].startswith(f"mira: {program}")
    assert done.stderr.splitlines()[-1] == problems[0], "after the notices of what was waited for"
    assert f"did not start within {seconds} s: the machine may be busy; try again" in done.stderr
    assert "MIRA_LAUNCH_S=300" in done.stderr
    assert list((tmp_path / "here").iterdir()) == []
    assert belonging(str(hangs)) == [], "nothing is left behind"


def test_a_driver_that_ends_at_once_is_one_line(tmp_path: Path) -> None:
    done = mira(tmp_path, "doctor", PLAYWRIGHT_NODEJS_PATH="/bin/false")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("mira: Playwright's driver does not start: ")


def test_a_browser_that_is_none_is_wrong_input(tmp_path: Path) -> None:
    done = mira(tmp_path, "doctor", MIRA_CHROMIUM="/bin/false")
    assert done.returncode == 2 and "does not start" in done.stderr


@pytest.mark.parametrize("text", ["soon", "-1", "0", "nan", "inf"])
def test_a_time_that_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("MIRA_LAUNCH_S", text)
    with pytest.raises(BadInput, match="is not a number of seconds"):
        launch_s()


async def test_steps_before_the_browser_died_are_kept(
    shop: Shop, tmp_path: Path, hangs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser dies in a step and cannot be restarted. Once it can, the episode resumes."""
    policy = scripted([Wait(), Wait(), Stop(answer="done")])
    started: list[Chromium] = []
    start = Chromium.start

    async def noted(chromium: Chromium) -> None:
        await start(chromium)
        started.append(chromium)

    def die(event: object) -> None:
        if type(event).__name__ == "StepDone":
            monkeypatch.setenv("MIRA_CHROMIUM", str(hangs))
            monkeypatch.setenv("MIRA_LAUNCH_S", "2")
            kill(belonging(str(started[0].home)))

    monkeypatch.setattr(Chromium, "start", noted)
    with pytest.raises(BrowserNotStarted, match=r"finished steps are kept, continue with: mira resume .*/r$"):
        await run_open(config(), "x", shop.url, tmp_path, [die], run_id="r", policy=policy)
    trace = read_trace(tmp_path / "r" / "episodes" / "task-0-a1.jsonl")
    assert trace.footer is None and len(trace.steps) >= 1
    monkeypatch.delenv("MIRA_CHROMIUM")
    monkeypatch.delenv("MIRA_LAUNCH_S")
    (episode,) = (await resume(tmp_path / "r", policy=policy)).episodes
    assert (episode.outcome, episode.ended_by, episode.answer) == ("unjudged", "stop", "done")
    assert json.loads((tmp_path / "r" / "results.jsonl").read_text())["answer"] == "done"
