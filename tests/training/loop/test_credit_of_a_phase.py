"""The settings of credit reach the rows that critics and actor are trained on."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from tests.training.trajectories import embedded_tokenizer, rows_of, sampled, trajectory
from training.data.cache import read_rows, write_rows, write_trajectories
from training.data.columns import Column
from training.data.rows import Row
from training.data.trajectories import Trajectory
from training.loop.arms import ARMS, Arm
from training.loop.data import ReplayCounts
from training.loop.parts import write_record
from training.loop.phase import learn
from training.loop.phase_context import PhaseContext
from training.loop.settings import load_settings, parse_settings

QUICK = ("compute.cpu=true", "compute.threads=1", "potential.optimization.epochs=1", "actor.optimization.epochs=1")


def steps(name: int, count: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return [((10 + name, 20 + step), (30 + name, 40 + step)) for step in range(count)]


WON = trajectory(sampled(*steps(1, 2)), name="a", milestones=2, done=(0, 1, 2))
LOST = trajectory(sampled(*steps(2, 4)), name="b", success=False, milestones=2, done=(0, 1, 1, 1, 1))
EPISODES = (WON, LOST.model_copy(update={"key_step": 3}))


def learned(
    folder: Path, *changes: str, episodes: tuple[Trajectory, ...] = EPISODES
) -> dict[str, tuple[tuple[Row, ...], dict[Column, tuple[float, ...]]]]:
    """The rows and columns of each stage of a phase on *episodes*, by the stage's folder."""
    phase = folder / "phase-1"
    (phase / "data").mkdir(parents=True)
    rows = rows_of(episodes)
    columns = {Column.REFERENCE: (-1.0,) * len(rows), Column.ALLOWED: (True,) * len(rows)}
    write_rows(phase / "data" / "rows.parquet", rows, columns)
    write_trajectories(phase / "data" / "new.parquet", episodes)
    write_trajectories(phase / "data" / "replayed.parquet", ())
    write_record(phase / "data" / "replay.json", ReplayCounts())
    settings = load_settings(None, [*QUICK, *changes])
    context = PhaseContext(settings, 1, phase, embedded_dir(), {}, embedded_dir(), (), log=list[str]().append)
    with context.running():
        learn(context, ())
    return {stage: read_rows(phase / stage / "rows.parquet") for stage in ("value", "actor")}


BARE = WON.model_copy(update={"milestones": 0, "done": (0, 0, 0)})
"""A success on a suite without milestones."""


def test_a_potential_critic_without_a_row_stops_the_phase(tmp_path: Path) -> None:
    """It used to be trained on no row, and shaping added a constant to every success."""
    with pytest.raises(BadInput, match=r"no row to learn from \(1 successes, 0 of them with milestones\)") as error:
        learned(tmp_path / "shaped", episodes=(BARE, LOST))
    assert "\n" not in str(error.value) and "set targets.alpha to 0" in str(error.value)
    _, (actor, _) = learned(tmp_path / "sparse", "targets.alpha=0", episodes=(BARE, LOST)).values()
    assert len(actor) == 6, "what the message suggests"


def test_a_phase_without_successes_shapes_nothing_and_continues(tmp_path: Path) -> None:
    _, (actor, _) = learned(tmp_path / "lost", episodes=(LOST,)).values()
    assert len(actor) == 4
    with pytest.raises(BadInput, match="0 successes"):
        learned(tmp_path / "failures", "targets.shape_failures=true", episodes=(LOST,))


def at(rows: tuple[Row, ...]) -> list[tuple[int, int]]:
    return [(row.trajectory, row.time) for row in rows]


def test_without_changes_every_step_counts_the_same(tmp_path: Path) -> None:
    (value, _), (actor, columns) = learned(tmp_path).values()
    assert value == actor == rows_of(EPISODES) and Column.WEIGHT not in columns


@pytest.mark.parametrize(("first", "step"), [("key_step", 2), ("last_milestone", 1)])
def test_failures_count_from_a_step_for_the_actor_alone(tmp_path: Path, first: str, step: int) -> None:
    (value, _), (actor, _) = learned(tmp_path, f"actor.failures_from={first}").values()
    assert value == rows_of(EPISODES)
    assert at(actor) == [(0, 0), (0, 1), *((1, time) for time in range(step, 4))]


def test_steps_weigh_by_their_trajectory(tmp_path: Path) -> None:
    (_, (actor, columns)) = learned(tmp_path, "actor.normalizer=trajectory").values()
    assert columns[Column.WEIGHT] == pytest.approx([3 / (2 if row.trajectory == 0 else 4) for row in actor])


def test_the_value_critic_alone_reads_the_milestones(tmp_path: Path) -> None:
    (value, _), (actor, _) = learned(tmp_path, "value.milestones=true").values()
    assert actor == rows_of(EPISODES)
    shown = [embedded_tokenizer().decode(row.prompt[2:]).strip() for row in value]
    assert shown == [f"Milestones done: {done} of 2" for done in (0, 1, 0, 1, 1, 1)]


def test_only_the_undiscounted_arm_has_undiscounted_returns(tmp_path: Path) -> None:
    returns = {
        arm: learned(tmp_path / arm, f"arm={arm}")["value"][1][Column.TARGET] for arm in ("mira", "mira_undiscounted")
    }
    assert returns["mira"][0] < returns["mira_undiscounted"][0] == 1.0, "the first of two steps of a success"


def test_arms_differ_in_their_settings() -> None:
    """Equal settings under two names would be one arm, listed twice."""
    seen: dict[str, Arm] = {}
    for arm in ARMS:
        settings = parse_settings({"arm": arm}, "").model_copy(update={"arm": "mira"}).model_dump_json()
        assert seen.setdefault(settings, arm) == arm
