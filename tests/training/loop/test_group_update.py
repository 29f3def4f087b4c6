"""The rows of an update by groups, and the settings that it needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from tests.agent.episodes import Play, write_run
from tests.training.trajectories import rows_of, sampled, trajectory
from training.data.cache import read_rows, write_rows
from training.data.columns import Column
from training.data.trajectories import Trajectory
from training.engine.scoring import token_scores
from training.engine.settings import Compute
from training.loop.data import PhaseData, ReplayCounts
from training.loop.group_update import describe_groups, group_metrics, group_rows, play_seconds
from training.loop.loop import Loop
from training.loop.metrics import GroupMetrics
from training.loop.phase_context import PhaseContext
from training.loop.settings import load_settings
from training.mira.group_advantages import GroupCounts

OPTIONS = ["arm=mgrpo", "compute.cpu=true", "compute.threads=1", "groups.deviation=false"]


def episode(name: str, *pairs: tuple[tuple[int, ...], tuple[int, ...]], success: bool) -> Trajectory:
    return trajectory(sampled(*pairs), name=name, success=success)


EPISODES = (
    episode("a", ((5, 6), (7, 8)), ((5, 6, 9), (7, 8, 9, 10)), success=True),
    episode("a", ((5, 6), (11,)), success=False),
    episode("b", ((5, 7), (11,)), success=True),
    episode("b", ((5, 7), (11,)), success=True),
)


def context_of(folder: Path, *changes: str) -> PhaseContext:
    settings = load_settings(None, [*OPTIONS, *changes])
    lines: list[str] = []
    return PhaseContext(
        settings=settings,
        number=1,
        folder=folder,
        policy=embedded_dir(),
        start=embedded_dir(),
        critics={},
        past=(),
        log=lines.append,
    )


def data_of(episodes: tuple[Trajectory, ...]) -> PhaseData:
    rows = rows_of(episodes)
    return PhaseData(
        trajectories=episodes,
        new=len(episodes),
        rows=rows,
        references=tuple(-float(place) for place in range(len(rows))),
        allowed=(True,) * len(rows),
        replayed=ReplayCounts(),
    )


def test_every_step_of_an_episode_has_its_advantage(tmp_path: Path) -> None:
    """Without recorded log-probabilities the policy's are scored, with a KL penalty those of the start, too."""
    context = context_of(tmp_path, "actor.objective.kl=0.1")
    with context.running():
        made = group_rows(context, data_of(EPISODES))
    assert [(row.trajectory, row.time) for row in made.rows] == [(0, 0), (0, 1), (1, 0)], "the equal group is left out"
    assert made.columns[Column.ADVANTAGE] == pytest.approx([0.5, 0.5, -0.5])
    assert made.columns[Column.WEIGHT] == pytest.approx([3 / 2 / 2 / 2, 3 / 2 / 2 / 4, 3 / 2 / 1])
    assert made.columns[Column.VALUE] == [0.5] * 3 and made.columns[Column.REFERENCE] == [0, -1, -2]
    expected = token_scores(embedded_dir(), made.rows, Compute(cpu=True, threads=1))
    for row, own in zip(made.rows, expected, strict=True):
        assert len(own) == len(row.completion)
        assert row.sampled == pytest.approx(own, abs=1e-5) and row.start == pytest.approx(own, abs=1e-5)
    write_rows(tmp_path / "rows.parquet", made.rows, made.columns)
    rows, columns = read_rows(tmp_path / "rows.parquet")
    assert rows == made.rows and columns[Column.WEIGHT] == pytest.approx(made.columns[Column.WEIGHT])


def test_recorded_log_probabilities_are_kept_unless_scored_ones_are_asked_for(tmp_path: Path) -> None:
    played = tuple(
        trajectory(sampled(((5, 6), (7, 8)), logprob=-9.0), name="a", success=success) for success in (True, False)
    )
    data = data_of(played)
    data = replace(data, rows=tuple(replace(row, sampled=(-9.0, -9.0)) for row in data.rows))
    recorded = group_rows(context_of(tmp_path), data)  # outside `running`: nothing is scored
    assert [row.sampled for row in recorded.rows] == [(-9.0, -9.0)] * 2
    context = context_of(tmp_path, "groups.old_logprobs=scored")
    with context.running():
        scored = group_rows(context, data)
    expected = token_scores(embedded_dir(), data.rows, Compute(cpu=True, threads=1))
    assert [row.sampled for row in scored.rows] == [pytest.approx(own, abs=1e-5) for own in expected]


def test_unreadable_answers_of_worse_episodes_are_learned_from(tmp_path: Path) -> None:
    """The second attempt has no other answer; the first succeeded in spite of one."""
    (readable,) = sampled(((5, 6), (7, 8)), logprob=-0.5)
    (unreadable,) = sampled(((5, 6), (12, 13, 14)), logprob=-2.0)
    won = trajectory([readable], name="a", success=True).model_copy(update={"rejected": (unreadable,)})
    lost = trajectory([], name="a", success=False).model_copy(update={"rejected": (unreadable,)})
    row = replace(rows_of([won])[0], sampled=(-0.5, -0.5))
    made = group_rows(context_of(tmp_path), replace(data_of((won, lost)), rows=(row,)))
    assert [(row.trajectory, row.time, row.completion) for row in made.rows] == [(0, 0, (7, 8)), (1, 0, (12, 13, 14))]
    assert made.columns[Column.ADVANTAGE] == pytest.approx([0.5, -0.5])
    assert made.columns[Column.REFERENCE] == pytest.approx([0, -6]) and made.outcomes == [True, False]
    assert made.groups is not None and made.groups.unreadable_rows == 1


def test_no_group_that_differs_gives_no_rows(tmp_path: Path) -> None:
    made = group_rows(context_of(tmp_path), data_of(EPISODES[2:]))
    assert made.rows == () and not made.columns[Column.WEIGHT]
    assert made.groups is not None and made.groups.counts.all_solved == 1


def test_progress_names_reward_groups_kl_clip_and_time(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [Play(), Play(attempt=2)]).path
    assert play_seconds([run])[0] == pytest.approx(4 * 0.5), "four actions of half a second"
    (tmp_path / "log.json").write_text(
        '[{"kl": 0.2, "clipped": 0.01, "loss": 1}, {"kl": 0.4, "clipped": 0.03}, {"x": 1}]'
    )
    counts = GroupCounts(groups=5, informative=2, all_solved=2, all_failed=1, reward=0.5)
    metrics = group_metrics(GroupMetrics(counts=counts), tmp_path, [run])
    assert metrics.kl == pytest.approx(0.3) and metrics.clipped == pytest.approx(0.02) and metrics.log_ratio is None
    line = describe_groups(metrics, {"rollouts": 40.2, "data": 1, "actor": 8})
    assert line.startswith(
        "reward 0.500, 2 of 5 groups with different rewards (2 all solved, 1 all failed), KL from the"
    )
    assert "2.0% of tokens clipped, played 40 s (" in line and line.endswith("in the browser), trained 9 s")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["rollouts.attempts=1"], "rollouts.attempts"),
        (["rollouts.temperature=0.8"], "rollouts.temperature"),
        (["replay.per_new=1"], "replay.per_new"),
        (["actor.objective.kind=cloning"], "actor.objective.kind"),
        (["arm=mira", "actor.objective.kind=clipped"], "actor.objective.kind"),
        (["curriculum.value_band={}"], "needs a value critic"),
        (["actor.keep=successes"], r"actor\.keep: no effect"),
        (["actor.failures_from=key_step"], r"actor\.failures_from: no effect"),
        (["actor.normalizer=trajectory"], r"actor\.normalizer: no effect"),
        (["actor.max_advantage=5"], r"actor\.max_advantage: no effect"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path: Path, changes: list[str], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Loop.open(tmp_path / "out", load_settings(None, [*OPTIONS, *changes]))
