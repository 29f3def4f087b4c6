"""The offline comparison of credit: its measures against values by hand, and the solver's word on a step."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import numpy as np
import pytest

from agent.config import Limits, RunConfig
from agent.run.runner import run_suite
from benchmarks.credit import ARMS, MEASURES, Columns, critics_of, effective, over_tasks, settings_of
from benchmarks.credit_rollouts import LONG_TASKS, LONG_TEMPLATES, Label, labels_of
from envs.core.tasks import TaskSelection
from envs.suites.miniwob.solvers import SOLVERS
from envs.suites.sites.catalog import templates
from envs.suites.sites.splits import split_of
from models.embedded import embedded_dir
from tests.training.trajectories import acted, rows_of
from training.loop.data import PhaseData, ReplayCounts

CONFIG = Path("training/configs/tiny-miniwob-long.toml")


def columns(*rows: tuple[float, bool, str], weight: float = 1.0) -> Columns:
    advantage, right, tasks = zip(*rows, strict=True)
    return Columns(np.array(advantage), np.full(len(rows), weight), np.array(right), np.array(tasks))


def test_the_measures() -> None:
    one = columns((0.5, True, "a"), (-0.1, True, "a"), (-0.4, False, "a"), (0.2, False, "b"), (0.0, True, "b"))
    values = {name: measure(one) for name, measure in MEASURES.items()}
    assert values["AUROC"] == pytest.approx(4 / 6)  # .5 above both, -.1 above one, 0 above one
    assert values["AUROC within a task"] == pytest.approx((1 + 0) / 2)
    assert values["right, down"] == pytest.approx(1 / 3) and values["wrong, up"] == pytest.approx(1 / 2)
    assert values["pressure"] == pytest.approx((0.5 + 0.4) / 1.2)
    pressed = one._replace(weight=np.array([2.0, 1, 1, 1, 1]))
    assert MEASURES["pressure"](pressed) == pytest.approx((1.0 + 0.4) / 1.7)


def test_an_interval_is_over_tasks() -> None:
    rows = [(float(right), right, task) for task in "abcdef" for right in (True, False)]
    assert over_tasks(MEASURES["AUROC"], columns(*rows), 20).value == 1.0
    mixed = columns(*rows[:6], *((1 - a, right, task) for a, right, task in rows[6:]))
    found = over_tasks(MEASURES["AUROC"], mixed, 200)
    assert found.value == 0.5 and found.low is not None and found.high is not None and found.low < 0.5 < found.high


def test_a_difference_of_two_arms_is_resampled_as_one_number() -> None:
    one = columns(*((float(right), right, task) for task in "abcdef" for right in (True, False)))
    assert over_tasks(MEASURES["pressure"], one, 20, less=one).value == 0.0
    worse = one._replace(advantage=1 - one.advantage)
    assert over_tasks(MEASURES["AUROC"], one, 20, less=worse).value == 1.0


def test_an_arm_that_clones_pulls_up_what_it_keeps(tmp_path: Path) -> None:
    episodes = (acted("a", ((1,), (2,)), success=True), acted("b", ((3,),), success=False))
    rows = rows_of(episodes)
    data = PhaseData(episodes, 2, rows, (0.0,) * 3, (True,) * 3, ReplayCounts())
    advantage, weight = effective(settings_of(CONFIG, "filtered_bc"), data, tmp_path)
    assert advantage.tolist() == [1, 1, 0] and weight.tolist() == [1, 1, 1]


def test_other_rollouts_with_as_many_rows_have_critics_of_their_own(tmp_path: Path) -> None:
    """They got the values of the first ones."""
    settings = settings_of(CONFIG, f"mira+start={embedded_dir()}+compute.cpu=true+value.folds=1")

    def data(first: int, *, success: bool) -> PhaseData:
        episodes = (acted("a", ((first,), (2,)), success=True), acted("b", ((3,),), success=success))
        rows = rows_of(episodes)
        return PhaseData(episodes, 2, rows, (0.0,) * 3, (True,) * 3, ReplayCounts())

    def trained() -> int:
        return len(list(tmp_path.glob("*/scores.json")))

    potential, value = critics_of(settings, data(1, success=False), tmp_path)
    assert len(potential) == len(value) == 3 and trained() == 1
    assert critics_of(settings, data(1, success=False), tmp_path) == (potential, value) and trained() == 1
    critics_of(settings, data(5, success=False), tmp_path)
    critics_of(settings, data(1, success=True), tmp_path)
    assert trained() == 3


@pytest.mark.parametrize("arm", ARMS)
def test_every_compared_arm_is_a_configuration(arm: str) -> None:
    assert settings_of(CONFIG, arm).arm == arm.partition("+")[0]


def test_labels_are_read_as_written(tmp_path: Path) -> None:
    label = Label(task="miniwob/a/1", attempt=2, step=3, oracle=None, right=None)
    (tmp_path / "oracle.jsonl").write_text(label.model_dump_json() + "\n", encoding="utf-8")
    assert list(labels_of(tmp_path)) == [label]


@pytest.mark.browser
@pytest.mark.slow
async def test_a_solver_needs_six_or_more_steps_for_each_long_task(tmp_path: Path) -> None:
    """The median of three instances, as `LONG_TASKS` says; a task whose solver got shorter is no long task any more."""
    config = RunConfig(policy="oracle", planner="none", fsync=False, workers=2, limits=Limits(max_steps=40))
    played = await run_suite(config, TaskSelection("miniwob", LONG_TASKS, (3_600_000, 3_600_001, 3_600_002)), tmp_path)
    assert all(episode.outcome == "success" for episode in played.episodes)
    steps: dict[str, list[int]] = {name: [] for name in LONG_TASKS}
    for episode in played.episodes:
        steps[episode.task.name].append(episode.totals.steps)
    assert {name: median(counts) for name, counts in steps.items() if median(counts) < 6} == {}


def test_the_lists_of_long_tasks_name_training_tasks_with_solvers() -> None:
    assert set(LONG_TASKS) <= SOLVERS.keys() and len(LONG_TASKS) >= 10
    assert all(name in templates() and split_of(name) == "train" for name in LONG_TEMPLATES)
    assert len(set(LONG_TASKS)) == len(LONG_TASKS) and len(set(LONG_TEMPLATES)) == len(LONG_TEMPLATES)
