"""A phase of M-GRPO on real pages, killed in play, interrupted in training, and resumed to the same weights."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from tests.timing import HANG_S, until
from training.data.cache import read_rows, read_trajectories
from training.data.columns import Column
from training.engine import stage_runner
from training.engine.checkpoints import weights_digest
from training.engine.stage_jobs import launch
from training.loop.loop import Progress
from training.loop.parts import read_record, run_location

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)]
START = "benchmarks/starts/miniwob-long"
"""It solves each of these tasks sometimes."""
OPTIONS = {
    "phases": 1,
    "pool.size": 30,
    "rollouts.tasks": 3,
    "rollouts.workers": 2,
    "rollouts.limits.max_steps": 4,
    "evaluation.names": ["click-tab-2"],
    "evaluation.seeds": [0],
    "groups.redraws": 0,
    "groups.reward.milestones": 0.1,
    "actor.objective.kl": 0.01,
    "actor.optimization.batch_rows": 8,
    "actor.optimization.learning_rate": 2e-4,
    "compute.threads": 1,
    "compute.cpu": True,
}


def words(out: Path, shared: Path) -> list[str]:
    options = [f"{key}={json.dumps(value)}" for key, value in {**OPTIONS, "shared": str(shared)}.items()]
    command = ["train", "mgrpo", "--start", START, "--tasks", "click-tab-2,use-autocomplete", "--group", "3"]
    return [*command, "-o", str(out), "--json", *(word for option in options for word in ("--set", option))]


def killed_when(out: Path, shared: Path, seen: Callable[[], bool]) -> None:
    """Starts the command and kills it, with SIGKILL, as soon as *seen* is true."""
    log = out.with_suffix(".log")
    process = subprocess.Popen(
        [sys.executable, "-m", "agent.cli", *words(out, shared)], stdout=subprocess.DEVNULL, stderr=log.open("ab")
    )
    assert until(lambda: seen() or process.poll() is not None) and process.poll() is None, log.read_text()
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=HANG_S)


def interrupted(*_: Any, **__: Any) -> Path:
    raise KeyboardInterrupt


def main_of(monkeypatch: pytest.MonkeyPatch, out: Path, shared: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["mira", *words(out, shared)])
    main()


def finish(monkeypatch: pytest.MonkeyPatch, out: Path, shared: Path) -> Progress:
    with pytest.raises(SystemExit, match=r"^0$"):
        main_of(monkeypatch, out, shared)
    return read_record(out / "progress.json", Progress)


def test_a_phase_is_killed_and_ends_as_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out, shared = tmp_path / "killed", tmp_path / "shared"
    phase = out / "phase-1"
    mark, job = phase / "rollouts.json", phase / "actor" / "job.json"
    killed_when(out, shared, lambda: mark.exists() and (run_location(mark) / "results.jsonl").exists())
    assert not (phase / "data").exists()
    monkeypatch.setattr(stage_runner, "launch", interrupted)
    with pytest.raises(SystemExit, match="130"):
        main_of(monkeypatch, out, shared)
    assert job.exists() and not (phase / "actor" / "model").exists()
    monkeypatch.setattr(stage_runner, "launch", launch)
    _, metrics = finish(monkeypatch, out, shared).phases

    episodes = read_trajectories(phase / "data" / "new.parquet")
    assert len(episodes) == 9 and len({episode.task for episode in episodes}) == 3
    assert sorted(episode.attempt for episode in episodes) == sorted([1, 2, 3] * 3), "private copies, one per attempt"
    groups = metrics.groups
    assert groups is not None and groups.counts.groups == 3 and groups.counts.informative > 0
    assert groups.counts.informative + groups.counts.all_solved + groups.counts.all_failed <= 3
    assert (
        groups.browser_seconds > 0 and groups.model_seconds > 0 and groups.kl is not None and groups.clipped is not None
    )
    assert metrics.logprob_difference is not None and metrics.logprob_difference < 1e-3, "the ratio begins at 1"
    assert metrics.advantage_on_successes is None or metrics.advantage_on_successes > 0

    rows, columns = read_rows(phase / "actor" / "rows.parquet")
    assert len(rows) == metrics.actor_rows and all(row.sampled and row.start for row in rows)
    of_episode = {row.trajectory: set[float]() for row in rows}
    for row, advantage in zip(rows, columns[Column.ADVANTAGE], strict=True):
        of_episode[row.trajectory].add(advantage)
    assert all(len(own) == 1 for own in of_episode.values()), "every step has its episode's advantage"
    by_task = {episodes[place].task: 0.0 for place in of_episode}
    for place, (advantage,) in of_episode.items():
        by_task[episodes[place].task] += advantage
    assert list(by_task.values()) == pytest.approx([0] * groups.counts.informative, abs=1e-6)

    whole = finish(monkeypatch, tmp_path / "whole", shared)
    assert run_location(tmp_path / "whole" / "phase-1" / "rollouts.json") == run_location(phase / "rollouts.json")
    digests = [weights_digest(tmp_path / name / "phase-1" / "actor" / "model") for name in ("killed", "whole")]
    assert digests[0] == digests[1] != weights_digest(Path(START))
    assert whole.phases[1].groups is not None and whole.phases[1].groups.counts == groups.counts
