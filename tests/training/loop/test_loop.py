"""The full loop on real pages, killed in between and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from models.embedded import embedded_dir
from models.local.declarations import declared_style
from tests.timing import HANG_S, until
from training.data.cache import read_rows, read_trajectories
from training.data.columns import Column
from training.engine.checkpoints import weights_digest
from training.engine.stage_jobs import StageJob
from training.loop.loop import Progress
from training.loop.parts import RunLocation, read_record
from training.loop.task_report import by_task

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]
COMMAND = [
    sys.executable,
    "-m",
    "agent.cli",
    "train",
    "mira",
    "-c",
    "training/configs/smoke.toml",
    "--set",
    'report_to=["tensorboard"]',
]


def start(out: Path, log: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, "-o", str(out), "--json"], stdout=subprocess.PIPE, stderr=log.open("ab"))


def killed_when(out: Path, log: Path, seen: Path) -> None:
    """Starts the loop and kills it, with SIGKILL, as soon as *seen* exists."""
    process = start(out, log)
    assert until(lambda: seen.exists() or process.poll() is not None) and process.poll() is None, log.read_text()
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=HANG_S)


@pytest.mark.heavy
def test_two_phases_with_a_kill_in_play_and_one_in_training(tmp_path: Path) -> None:
    out, log = tmp_path / "run", tmp_path / "log"
    first = out / "phase-1"
    killed_when(out, log, first / "rollouts" / "run" / "results.jsonl")
    assert not (first / "data").exists()
    assert [item.phase for item in read_record(out / "progress.json", Progress).phases] == [0], "the start is evaluated"
    killed_when(out, log, first / "value-fold-1" / "job.json")
    assert not (first / "actor" / "model").exists()
    last = start(out, log)
    lines, _ = last.communicate(timeout=HANG_S)
    assert last.returncode == 0, log.read_text()

    progress = read_record(out / "progress.json", Progress)
    assert json.loads(lines) == progress.model_dump(mode="json")
    assert [item.phase for item in progress.phases] == [0, 1, 2]
    for item in progress.phases[1:]:
        assert item.evaluation is not None and item.evaluation.episodes == 4
        assert item.rollouts is not None and item.rollouts.episodes == 12
        assert item.actor_rows == item.rows > 12
    assert progress.phases[2].replayed.held > 0
    assert progress.phases[2].potential is not None, "the critic of phase 1 was scored on phase 2's successes"
    assert not (first / "value").exists(), "each task has a critic of other tasks, so no critic of all tasks is needed"
    assert all(item.value is not None and item.value.rows > 12 for item in progress.phases[1:])
    second = read_record(out / "phase-2" / "value-fold-1" / "job.json", StageJob)
    assert second.start == (first / "value-fold-1" / "model").resolve(), (
        "it is continued, as it has not seen these tasks"
    )
    events = EventAccumulator(str(out / "tensorboard"))
    events.Reload()
    assert [(item.step, item.value) for item in events.Scalars("evaluation/success_rate")] == [
        (item.phase, pytest.approx(item.evaluation.rate)) for item in progress.phases if item.evaluation is not None
    ], "of three processes, each phase once"
    models = [embedded_dir(), *(out / f"phase-{n}" / "actor" / "model" for n in (1, 2))]
    assert len({weights_digest(model) for model in models}) == 3
    assert {declared_style(model) for model in models} == {"compact"}, "so that it can be played without saying so"
    assert not read_record(first / "rollouts.json", RunLocation).run.is_absolute(), "the whole may be moved"

    rows, columns = read_rows(first / "actor" / "rows.parquet")
    episodes = read_trajectories(first / "data" / "new.parquet")
    sampled = [sum(row.sampled) for row in rows if row.sampled is not None]
    assert columns[Column.REFERENCE] == pytest.approx(sampled, abs=1e-3), "π_ref is the policy that played"
    won = [a for row, a in zip(rows, columns[Column.ADVANTAGE], strict=True) if episodes[row.trajectory].success]
    assert sum(won) / len(won) > 0

    *lines, total = by_task(first, rescore=True)
    assert sum(line.episodes for line in lines) == total.episodes == len(episodes), (
        "nothing is replayed in the first phase"
    )
    assert any(side is not None and side.gain for line in lines for side in (line.on_successes, line.on_failures))

    again = start(out, log)
    again.communicate(timeout=HANG_S)
    assert again.returncode == 0, "a finished run is only reported"
    other = subprocess.run(
        [*COMMAND, "-o", str(out), "--set", "seed=5"], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert other.returncode == 2 and "other settings of seed" in other.stderr
