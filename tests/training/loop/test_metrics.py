"""Metrics of a phase: counts of a run on disk, and a critic's errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.run.run_store import RunFolder
from envs.core.trace import Failure
from judges.statistics import wilson
from tests.agent.episodes import Play, write_run
from tests.training.trajectories import trajectory, worded
from training.loop.metrics import LossChange, PhaseMetrics, critic_scores, loss_change, played_in, unreadable_share

STUCK = Failure(category="stuck_midway", key_step=2, reason="the same click three times")


def finished(folder: Path, plays: list[Play]) -> Path:
    run: RunFolder = write_run(folder, plays)
    return run.path


def test_a_run_is_counted(tmp_path: Path) -> None:
    run = finished(
        tmp_path / "run",
        [
            Play(seed=0),
            Play(seed=1, outcome="failure", z=((False, False), (True, False), (True, False)), failure=STUCK),
            Play(seed=2, outcome="failure", z=((False, False),) * 3),
            Play(seed=3, outcome="broken"),
            Play(seed=4, outcome="unjudged"),
        ],
    )
    result = played_in(run)
    assert (result.episodes, result.successes, result.broken) == (5, 1, 2)
    assert result.rate == pytest.approx(1 / 3), "broken episodes do not count"
    assert result.interval == wilson(1, 3)
    assert result.failures == {"other": 1, "stuck_midway": 1}
    assert result.steps == 2
    assert result.progress == pytest.approx((1 + 1 / 2 + 0) / 3)


def test_the_share_of_unreadable_answers() -> None:
    episode = trajectory(worded("a", "b", "c")).model_copy(update={"unreadable": 2})
    assert unreadable_share([episode, episode.model_copy(update={"unreadable": 0})]) == pytest.approx(2 / 8)
    assert unreadable_share([]) is None


def test_without_milestones_there_is_no_progress(tmp_path: Path) -> None:
    result = played_in(finished(tmp_path / "run", [Play(z=((), (), ()))]))
    assert result.progress is None and result.successes == 1


def test_no_judged_episode_has_rate_zero(tmp_path: Path) -> None:
    result = played_in(finished(tmp_path / "run", [Play(outcome="broken")]))
    assert (result.episodes, result.broken, result.rate, result.steps) == (1, 1, 0.0, 0.0)


def test_a_critic_is_scored_by_hand() -> None:
    """|0.1 - 0| = 0.1, |0.4 - 0.5| = 0.1, |0.3 - 1| = 0.7; ranks 1 3 2 against 1 2 3: 1 - 6·(0 + 1 + 1)/(3·8) = 0.5."""
    result = critic_scores((0.1, 0.4, 0.3), (0.0, 0.5, 1.0))
    assert result is not None and result.rows == 3
    assert result.absolute_error == pytest.approx(0.3)
    assert result.spearman == pytest.approx(0.5)


@pytest.mark.parametrize(("predicted", "true"), [((0.5, 0.5), (0.0, 1.0)), ((0.2, 0.8), (1.0, 1.0)), ((0.4,), (0.6,))])
def test_constant_values_have_no_rank_correlation(predicted: tuple[float, ...], true: tuple[float, ...]) -> None:
    result = critic_scores(predicted, true)
    assert result is not None and result.spearman is None and 0 <= result.absolute_error <= 1


def test_a_critic_without_rows_has_no_scores() -> None:
    assert critic_scores((), ()) is None


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([], None),
        ([0.5], LossChange(first=0.5, last=0.5)),
        ([4.0, 2.0, 9.0, 9.0, 9.0, 9.0, 1.0, 2.0], LossChange(first=3.0, last=1.5)),
    ],
)
def test_a_loss_is_the_mean_of_a_quarter_of_the_steps(
    tmp_path: Path, losses: list[float], expected: LossChange | None
) -> None:
    log = [*({"loss": loss, "step": step} for step, loss in enumerate(losses)), {"train_runtime": 1.0}]
    (tmp_path / "log.json").write_text(json.dumps(log), encoding="utf-8")
    assert loss_change(tmp_path) == expected


def test_metrics_of_earlier_versions_are_read() -> None:
    counts = {"held": 4, "chosen": 1, "too_sure": 2, "too_surprised": 1, "over": 3, "too_long": 0}
    old = PhaseMetrics.model_validate({"phase": 1, "engines_apart": 0.02, "replayed": counts})
    assert old.logprob_difference == 0.02
    assert (old.replayed.below_band, old.replayed.above_band, old.replayed.over_limit) == (2, 1, 3)
    assert PhaseMetrics.model_validate_json(old.model_dump_json()) == old
