"""`mira train show RUN --groups`: what became of the groups of each task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mira_command import mira
from tests.training.trajectories import acted
from training.data.cache import write_trajectories
from training.loop.group_report import groups_by_task
from training.loop.loop import CONFIG
from training.loop.parts import write_record
from training.loop.settings import LoopSettings
from training.loop.task_report import ALL


def write_phase(run: Path, number: int, groups: Sequence[tuple[str, int, Sequence[bool]]]) -> None:
    """*groups*: task, seed, and whether each attempt succeeded."""
    folder = run / f"phase-{number}" / "data"
    folder.mkdir(parents=True)
    episodes = [
        acted(name, [(1,)], success=success, seed=seed) for name, seed, attempts in groups for success in attempts
    ]
    write_trajectories(folder / "new.parquet", episodes)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_record(tmp_path / CONFIG, LoopSettings(arm="mgrpo"))
    write_phase(tmp_path, 2, [("a", 0, [True, False]), ("b", 1, [False, False])])
    write_phase(tmp_path, 10, [("a", 2, [True, True]), ("a", 3, [True, False])])
    return tmp_path


def test_groups_are_counted_by_task_and_rewards_by_half(run: Path) -> None:
    first, second, every = groups_by_task(run)
    assert (first.task, second.task, every.task) == ("miniwob/a", "miniwob/b", ALL)
    assert (first.counts.groups, first.counts.informative, first.counts.all_solved) == (3, 2, 1)
    assert (first.first_reward, first.last_reward) == (0.5, 0.75), "phase 2 comes before phase 10"
    assert (second.counts.all_failed, second.first_reward, second.last_reward) == (1, 0.0, None)
    assert (every.counts.groups, every.counts.informative) == (4, 2)


def test_the_command_prints_a_line_for_each_task(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mira(monkeypatch, "train", "show", str(run), "--groups") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["a", "3", "2", "1", "0", "0.50", "0.75"] in lines
    assert mira(monkeypatch, "train", "show", str(run), "--groups", "--json") == 0
    assert [line["task"] for line in json.loads(capsys.readouterr().out)] == ["miniwob/a", "miniwob/b", ALL]


@pytest.mark.parametrize(
    ("arm", "words", "message"),
    [
        ("mira", "--groups", "is a run of the arm mira: only mgrpo has groups"),
        ("mgrpo", "--groups", "has finished no phase's play yet"),
        ("mgrpo", "--groups --phase 1", "--groups shows all phases of one run"),
    ],
)
def test_runs_without_groups_are_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    *,
    arm: str,
    words: str,
    message: str,
) -> None:
    write_record(tmp_path / CONFIG, LoopSettings.model_validate({"arm": arm}))
    assert mira(monkeypatch, "train", "show", str(tmp_path), *words.split()) == 2
    assert message in " ".join(capsys.readouterr().err.split())
