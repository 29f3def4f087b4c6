"""Group-relative advantages of whole episodes: M-GRPO of WebAgent-R1 (Wei et al. 2025).

A group are the attempts at one task instance. An episode's advantage is its reward relative to its group's, and every
completion of the episode has this advantage. Groups whose rewards are all equal have no gradient and are left out
(dynamic sampling, DAPO, Yu et al. 2025). Plain numbers, so that they can be inspected before any training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from pydantic import Field

from envs.core.record import Record
from envs.core.tasks import TaskRef
from training.data.rows import Row
from training.data.trajectories import Trajectory
from training.mira.episode_rewards import EpisodeRewardSettings, episode_reward

Normalization = Literal["episode", "sequence", "token", "constant"]
OldLogprobs = Literal["recorded", "scored"]
EPSILON = 1e-4
"""Added to the standard deviation, as in TRL."""
SAME = 1e-9
"""Rewards that differ by less are equal."""


class GroupSettings(Record):
    """How groups of attempts are rewarded, compared and weighted."""

    reward: EpisodeRewardSettings = EpisodeRewardSettings()
    deviation: bool = True
    """Divide advantages by the group's standard deviation (WebAgent-R1, GRPO); off, they are only centred (SSL App.
    B.5, Dr. GRPO)."""
    normalization: Normalization = "episode"
    """Weight of a token in the loss. `episode`: episodes count alike, in an episode completions, in a completion tokens
    (WebAgent-R1). `sequence`: completions count alike. `token`: tokens count alike. `constant`: a token counts
    `1 / constant_tokens`, whatever the lengths (Dr. GRPO)."""
    constant_tokens: int = Field(default=64, ge=1)
    """Divisor of the normalization `constant`."""
    old_logprobs: OldLogprobs = "recorded"
    """Where the log-probabilities of the ratio come from. `recorded`: at play, those of the policy that acted.
    `scored`: computed with the policy before the update, so that the ratio is exactly 1 at first where player and
    trainer differ in precision (bfloat16, a server)."""
    unreadable: bool = True
    """Learn from answers without an action, too, in episodes that were worse than their group. Failures without any
    action then count in their group; off, they are left out."""
    redraws: int = Field(default=2, ge=0)
    """Most further rounds of a phase in which new tasks are played in place of groups with equal rewards. 0: the number
    of rollouts of a phase is fixed."""


@dataclass(frozen=True, slots=True)
class Group:
    """The attempts at one task instance."""

    task: TaskRef
    members: tuple[int, ...]
    """Indices of the trajectories."""
    rewards: tuple[float, ...]
    """In the order of `members`."""
    solved: int
    """Number of successes."""

    @property
    def informative(self) -> bool:
        """Whether rewards differ. A group of one never is."""
        return max(self.rewards) - min(self.rewards) > SAME

    @property
    def mean(self) -> float:
        return fmean(self.rewards)


class GroupCounts(Record):
    """What became of a phase's groups."""

    groups: int = 0
    informative: int = 0
    """Groups with different rewards, which are learned from."""
    all_solved: int = 0
    """Groups with equal rewards that were solved in every attempt."""
    all_failed: int = 0
    """Groups with equal rewards that were solved in no attempt."""
    single: int = 0
    """Groups with one episode left: the others are broken or have no decision."""
    reward: float | None = None
    """Mean reward of all episodes."""

    @property
    def share(self) -> float:
        """Share of informative groups; 0 without groups."""
        return self.informative / max(1, self.groups)


def groups_of(trajectories: Sequence[Trajectory], settings: GroupSettings) -> tuple[Group, ...]:
    """The groups, in the order of their first episode."""
    members: dict[TaskRef, list[int]] = {}
    for index, episode in enumerate(trajectories):
        members.setdefault(episode.task, []).append(index)
    return tuple(
        Group(
            task=task,
            members=tuple(places),
            rewards=tuple(episode_reward(trajectories[place], settings.reward) for place in places),
            solved=sum(trajectories[place].success for place in places),
        )
        for task, places in members.items()
    )


def count_groups(groups: Sequence[Group]) -> GroupCounts:
    equal = [group for group in groups if not group.informative and len(group.members) > 1]
    rewards = [reward for group in groups for reward in group.rewards]
    return GroupCounts(
        groups=len(groups),
        informative=sum(group.informative for group in groups),
        all_solved=sum(group.solved == len(group.members) for group in equal),
        all_failed=sum(group.solved == 0 for group in equal),
        single=sum(len(group.members) == 1 for group in groups),
        reward=fmean(rewards) if rewards else None,
    )


def relative_rewards(rewards: Sequence[float], *, deviation: bool) -> tuple[float, ...]:
    """`r_i − mean(r)`, with *deviation* divided by `std(r) + 1e-4` (the sample's, as in TRL). Equal rewards give 0."""
    mean = fmean(rewards)
    apart = [reward - mean for reward in rewards]
    if max(rewards) - min(rewards) <= SAME:
        return (0.0,) * len(apart)
    scale = stdev(rewards) + EPSILON if deviation else 1.0
    return tuple(value / scale for value in apart)


def episode_advantages(groups: Sequence[Group], settings: GroupSettings) -> dict[int, float]:
    """The advantage of each episode of an informative group, by the trajectory's index."""
    return {
        member: advantage
        for group in groups
        if group.informative
        for member, advantage in zip(
            group.members, relative_rewards(group.rewards, deviation=settings.deviation), strict=True
        )
    }


def row_weights(rows: Sequence[Row], settings: GroupSettings) -> tuple[float, ...]:
    """The weight of each token of each of *rows*, which are all the rows that are learned from.

    The loss is the mean over rows of `weight · Σ_tokens`. Over all rows this is the mean over episodes, completions or
    tokens that `normalization` names. A batch of some of them weights a token in the same way, whatever else is in it.
    """
    if not rows:
        return ()
    steps: dict[int, int] = {}
    for row in rows:
        steps[row.trajectory] = steps.get(row.trajectory, 0) + 1
    tokens = sum(len(row.completion) for row in rows)
    match settings.normalization:
        case "episode":
            a_step = len(rows) / len(steps)
            return tuple(a_step / (steps[row.trajectory] * len(row.completion)) for row in rows)
        case "sequence":
            return tuple(1 / len(row.completion) for row in rows)
        case "token":
            return (len(rows) / tokens,) * len(rows)
        case "constant":
            return (1 / settings.constant_tokens,) * len(rows)
