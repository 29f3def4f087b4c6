"""The command that `mira train sft` prints can be run."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from envs.core.tasks import TaskRef
from tests.agent.episodes import Play, write_run
from tests.mira_command import mira
from tests.training.trajectories import trajectory, worded
from training.data.trajectories import Trajectory
from training.loop.sft import play_command


def learned(suite: str, name: str, page: str = "Goal: x\nNext: y\nPage:") -> Trajectory:
    command = trajectory(worded("do", page=page), name=name)
    return command.model_copy(update={"task": TaskRef(suite=suite, name=name, seed=0)})


MINIWOB = ("miniwob", "login-user")
PLAIN = "Goal: x\nPage:"
FULL = "Goal: x\n\nPlan\n[ ] 1. y\n\nThe page"
CASES: dict[str, tuple[list[Trajectory], str]] = {
    "one task": ([learned(*MINIWOB)], "--suite miniwob --tasks login-user --seeds 0-4"),
    "a plan of the other style": ([learned(*MINIWOB, FULL)], "--suite miniwob --tasks login-user --seeds 0-4"),
    "prompts without a plan": (
        [learned(*MINIWOB, PLAIN)],
        "--suite miniwob --tasks login-user --seeds 0-4 --planner none",
    ),
    "the most frequent first": (
        [learned("miniwob", name) for name in ("a", "b", "b", "c", "d", "d", "d")],
        "--suite miniwob --tasks d,b,a --seeds 0-4",
    ),
    "mostly of the sites": (
        [learned(*MINIWOB), *[learned("sites", "forum-open-topic")] * 2],
        "--suite sites --tasks forum-open-topic --seeds 0-4",
    ),
    "open tasks": ([learned("open", "task")], "--suite miniwob --tasks login-user --seeds 0-4"),
    "a benchmark": ([learned("webarena", "7")], "--suite miniwob --tasks login-user --seeds 0-4"),
}


@pytest.mark.parametrize(("kept", "says"), CASES.values(), ids=CASES)
def test_the_command_names_the_most_frequent_tasks(kept: list[Trajectory], says: str) -> None:
    assert shlex.join(play_command(Path("m"), kept)) == f"mira run {says} --policy local:m"


@pytest.mark.browser
@pytest.mark.slow
def test_the_command_of_fine_tuning_can_be_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "demos", [Play(seed=1_000_000), Play(task="enter-text", seed=1_000_001)])
    quick = ["--set", "optimization.epochs=1", "--set", "compute.cpu=true"]
    assert mira(monkeypatch, "train", "sft", "demos", "-o", "my model", "--validation", "demos", *quick) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown if line.startswith(("the start", "epoch 1"))] == ["the", "epoch"]
    assert sum(line.rstrip().endswith("yes") for line in shown) == 1, "the weights that were kept"
    printed = shlex.split(shown[-1])
    assert printed[:2] == ["mira", "run"] and printed[-1] == "local:my model/model"
    assert mira(monkeypatch, *printed[1:]) == 0
    assert "enter-text" in capsys.readouterr().out
