"""Groups, rewards, advantages and weights of M-GRPO against values computed by hand."""

from __future__ import annotations

import pytest

from tests.training.trajectories import rows_of, sampled, trajectory
from training.data.rows import Row
from training.data.trajectories import Trajectory
from training.mira.episode_rewards import EpisodeRewardSettings, episode_reward, mean_step_score
from training.mira.group_advantages import (
    GroupSettings,
    Normalization,
    count_groups,
    episode_advantages,
    groups_of,
    relative_rewards,
    row_weights,
)
from training.tiers import tier_value

CENTRED = GroupSettings(deviation=False)


def episode(name: str, *lengths: int, success: bool, done: tuple[int, ...] = (), seed: int = 0) -> Trajectory:
    """An episode with a completion of each of *lengths* tokens; with *done* it has four milestones."""
    decisions = sampled(*(((1, 2), tuple(range(10, 10 + length))) for length in lengths), logprob=-0.5)
    return trajectory(decisions, name=name, seed=seed, success=success, milestones=4 if done else 0, done=done)


MIXED = [episode("a", 2, success=True), episode("a", 2, 4, success=False), episode("a", 3, success=False)]
SOLVED = [episode("b", 1, success=True), episode("b", 5, success=True)]
FAILED = [episode("c", 1, success=False), episode("c", 1, success=False)]
SINGLE = [episode("d", 1, success=True)]
ALL = [*MIXED, *SOLVED, *FAILED, *SINGLE]


def test_advantages_are_relative_to_the_attempts_at_one_instance() -> None:
    assert relative_rewards([1, 0, 0, 0], deviation=False) == pytest.approx((0.75, -0.25, -0.25, -0.25))
    deviation = 0.5  # of the sample: sqrt((0.5625 + 3·0.0625) / 3)
    expected = (0.75 / (deviation + 1e-4), *(-0.25 / (deviation + 1e-4),) * 3)
    assert relative_rewards([1, 0, 0, 0], deviation=True) == pytest.approx(expected)
    assert relative_rewards([0.1 + 0.2, 0.3], deviation=True) == (0.0, 0.0), "a rounding error is no difference"


def test_groups_with_equal_rewards_are_counted_and_left_out() -> None:
    groups = groups_of(ALL, CENTRED)
    assert [group.members for group in groups] == [(0, 1, 2), (3, 4), (5, 6), (7,)]
    counts = count_groups(groups)
    assert (counts.groups, counts.informative, counts.all_solved, counts.all_failed, counts.single) == (4, 1, 1, 1, 1)
    assert counts.reward == pytest.approx(4 / 8) and counts.share == 0.25
    assert episode_advantages(groups, CENTRED) == pytest.approx({0: 2 / 3, 1: -1 / 3, 2: -1 / 3})


def test_another_seed_of_a_task_is_another_group() -> None:
    groups = groups_of([episode("a", 1, success=True), episode("a", 1, success=False, seed=1)], CENTRED)
    assert [group.informative for group in groups] == [False, False]


def test_milestones_make_a_group_of_failures_informative() -> None:
    near = episode("a", 1, 1, success=False, done=(0, 1, 3))
    far = episode("a", 1, 1, success=False, done=(0, 0, 0))
    assert not groups_of([near, far], CENTRED)[0].informative
    settings = GroupSettings(reward=EpisodeRewardSettings(milestones=0.2), deviation=False)
    groups = groups_of([near, far], settings)
    assert groups[0].rewards == pytest.approx((0.15, 0.0))
    assert episode_advantages(groups, settings) == pytest.approx({0: 0.075, 1: -0.075})


def test_the_reward_of_a_trajectory_is_its_mean_step_score_in_tiers() -> None:
    played = episode("a", 1, 1, 1, success=True, done=(0, 1, 2, 4))
    mean = (1 / 4 + 2 / 4 + 4 / 4) / 3
    assert mean_step_score(played, "progress") == pytest.approx(mean)
    assert episode_reward(played, EpisodeRewardSettings()) == 1
    assert episode_reward(played, EpisodeRewardSettings(steps=0.2)) == pytest.approx(1 + 0.2 * 0.75)
    assert episode_reward(played, EpisodeRewardSettings(steps=0.2, zones=0)) == pytest.approx(1 + 0.2 * mean)
    refused = [played.decisions[0], played.decisions[1].model_copy(update={"ok": False})]
    half = played.model_copy(update={"decisions": tuple(refused)})
    assert episode_reward(half, EpisodeRewardSettings(steps=1.0, step_score="executed")) == pytest.approx(1.75)
    none = played.model_copy(update={"done": (0, 0, 0, 0)})
    assert episode_reward(none, EpisodeRewardSettings(steps=1.0)) == 1
    with pytest.raises(ValueError, match="1 tier gives all scores above 0 one value"):
        EpisodeRewardSettings(zones=1)


@pytest.mark.parametrize(("done", "tier"), [(13, 1.0), (12, 0.75), (3, 0.75), (2, 0.5), (1, 0.5)])
def test_tiers_of_an_episode_have_the_bounds_of_a_point(done: int, tier: float) -> None:
    """Of 20 milestones; the bounds are exp(−1/2) = 0.607 and exp(−2) = 0.135 (SSL, App. B.1)."""
    played = episode("a", 1, success=False, done=(0, done)).model_copy(update={"milestones": 20})
    assert mean_step_score(played, "progress") == pytest.approx(done / 20)
    assert episode_reward(played, EpisodeRewardSettings(steps=1.0)) == tier
    assert episode_reward(played, EpisodeRewardSettings(steps=1.0)) == tier_value(done / 20)


def weights_of(normalization: Normalization, rows: tuple[Row, ...]) -> list[float]:
    return list(row_weights(rows, GroupSettings(normalization=normalization, constant_tokens=8)))


def test_each_normalization_is_the_mean_that_it_names() -> None:
    """Episodes of completions with (2), (2, 4), (3) tokens; the loss is the mean over rows of weight · tokens."""
    rows = rows_of(MIXED)
    tokens = [len(row.completion) for row in rows]
    assert tokens == [2, 2, 4, 3]

    def parts(normalization: Normalization) -> list[float]:
        """The share of the whole loss of each row."""
        return [
            weight * count / len(rows) for weight, count in zip(weights_of(normalization, rows), tokens, strict=True)
        ]

    assert parts("episode") == pytest.approx([1 / 3, 1 / 6, 1 / 6, 1 / 3])
    assert parts("sequence") == pytest.approx([1 / 4] * 4)
    assert parts("token") == pytest.approx([count / 11 for count in tokens])
    assert parts("constant") == pytest.approx([count / (4 * 8) for count in tokens])
    assert row_weights((), CENTRED) == ()
