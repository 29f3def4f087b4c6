"""Credit: the steps of failures that count, group baselines and weights, against values computed by hand."""

from __future__ import annotations

import pytest
import torch

from envs.core.tasks import TaskRef
from tests.training.trajectories import rows_of, sampled, trajectory, worded
from training.data.trajectories import Trajectory
from training.mira.credit import FailuresFrom, first_counted, group_baselines, mixed_values, step_weights
from training.mira.losses import cloning_loss, regression_loss, weighted_likelihood_loss
from training.mira.targets import TargetSettings, row_advantages


def lost(*done: int, key_step: int | None = None, success: bool = False) -> Trajectory:
    decisions = worded(*(f"act {step}" for step in range(1, len(done))))
    episode = trajectory(decisions, success=success, milestones=3, done=done)
    return episode.model_copy(update={"key_step": key_step})


@pytest.mark.parametrize(
    ("episode", "how", "first"),
    [
        (lost(0, 1, 1, 1, key_step=3), "start", 0),
        (lost(0, 1, 1, 1, key_step=3), "key_step", 2),
        (lost(0, 1, 1, 1), "key_step", 0),  # not analysed, such as a trace of an earlier version
        (lost(0, 1, 1, 1), "last_milestone", 1),
        (lost(0, 1, 2, 2, 2), "last_milestone", 2),
        (lost(0, 1, 0, 1, 0), "last_milestone", 1),  # lost and regained: nothing new was gained
        (lost(0, 0, 0), "last_milestone", 0),
        (lost(0, 0, 1), "last_milestone", 0),  # gained by the last action, after which nothing follows
        (lost(0, 1, 2, key_step=2, success=True), "key_step", 0),
        (lost(0, 1, 3, success=True), "last_milestone", 0),
    ],
)
def test_a_failure_counts_from_where_it_began(episode: Trajectory, how: FailuresFrom, first: int) -> None:
    assert first_counted(episode, how) == first


def test_a_key_step_within_an_answer_of_several_actions_is_that_answer() -> None:
    first, second = worded("three actions", "one more")
    episode = trajectory((first, second.model_copy(update={"step": 4})), success=False)
    assert first_counted(episode.model_copy(update={"key_step": 3}), "key_step") == 0
    assert first_counted(episode.model_copy(update={"key_step": 4}), "key_step") == 1


def attempt(success: bool, *, seed: int = 0, run: str = "r") -> Trajectory:
    episode = trajectory(sampled(((1,), (2,)), ((3,), (4,))), success=success, milestones=1)
    return episode.model_copy(update={"run_id": run, "task": TaskRef(suite="miniwob", name="task", seed=seed)})


def test_the_baseline_of_a_group_is_the_mean_outcome_of_its_own_phase() -> None:
    group = [attempt(True), attempt(False), attempt(False), attempt(True, seed=1), attempt(True), attempt(True)]
    assert group_baselines(group, 4) == (pytest.approx(1 / 3),) * 3 + (None, None, None), "one attempt; replayed ones"
    assert group_baselines([attempt(True), attempt(False, run="s")], 2) == (None, None)


def test_the_baseline_and_v_are_mixed_at_the_same_discount() -> None:
    assert mixed_values((0.2, 0.4), 0.5, 0.5, (0.9, 1.0)) == pytest.approx((0.1 + 0.225, 0.2 + 0.25))
    assert mixed_values((0.2, 0.4), None, 0.5, (0.9, 1.0)) == (0.2, 0.4)


def test_advantages_against_the_group_alone() -> None:
    """γ=.9, λ=0, one of two solved: V' = .9·.5, .5; G of the success .9, 1, of the failure 0. V itself has no say."""
    episodes = [attempt(True), attempt(False)]
    settings = TargetSettings(alpha=0, mix=0, group_weight=1)
    result = row_advantages(episodes, rows_of(episodes), [0.0] * 4, [0.7] * 4, settings)
    assert result == pytest.approx((0.45, 0.5, -0.45, -0.5))
    replayed = row_advantages(episodes, rows_of(episodes), [0.0] * 4, [0.7] * 4, settings, new=1)
    assert replayed == pytest.approx((0.2, 0.3, -0.7, -0.7)), "groups have new attempts only"
    alone = row_advantages(episodes, rows_of(episodes), [0.0] * 4, [0.7] * 4, TargetSettings(alpha=0, mix=0))
    assert alone == replayed


def test_each_trajectory_weighs_the_same_by_request() -> None:
    rows = rows_of([attempt(True), attempt(False)])
    assert step_weights(rows, "constant") is None
    assert step_weights(rows[:3], "trajectory") == pytest.approx((0.75, 0.75, 1.5))


def test_weights_multiply_the_terms_of_a_loss() -> None:
    logprob, reference, advantage = (torch.tensor(values) for values in ([-1.0, -2.0], [-1.0, -1.0], [1.0, -1.0]))
    weight = torch.tensor([0.5, 1.5])
    # errors: (0 - 1)² = 1; (-.1 + 1)² = .81
    loss = regression_loss(logprob, reference, advantage, 0.1, weight=weight)
    assert loss.item() == pytest.approx((0.5 + 1.5 * 0.81) / 2)
    keep = torch.tensor([True, True])
    assert cloning_loss(logprob, keep, weight).item() == pytest.approx((0.5 + 3) / 2)
    once = torch.zeros(2)
    assert weighted_likelihood_loss(logprob, once, 0.1, weight=weight).item() == pytest.approx((0.5 + 3) / 2)
