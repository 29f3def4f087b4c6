"""Rewards of whole episodes for group-relative training: the checker's, and optional rewards for milestones and steps.

`R = C(τ) + w_m·(share of milestones done) + α·Ŝ(τ)`, and the sum of a package's rewards of steps
(:mod:`training.mira.added_rewards`), where C is the checker's reward, S(τ) the mean step score of the
trajectory and Ŝ the value of the zone that holds S (SSL, Wu et al. 2026, Eq. 2 to 4), see
:func:`training.tiers.tier_value`. SSL scores a step by the distance of a click from a labelled element.
In a live episode no step is labelled, because several paths may lead to the goal. The score of a step is therefore what
the environment shows of it: the share of milestones done after it, or whether the action was carried out.
"""

from __future__ import annotations

from statistics import fmean
from typing import Literal

from pydantic import Field, field_validator

from envs.core.record import Record
from training.data.trajectories import Trajectory
from training.mira.added_rewards import AddedReward, added_rewards
from training.tiers import tier_value

StepScore = Literal["progress", "executed"]


class EpisodeRewardSettings(Record):
    """The reward of an episode. The default is the checker's alone, as in WebAgent-R1."""

    milestones: float = Field(default=0.0, ge=0)
    """Weight of the share of milestones done at the end."""
    steps: float = Field(default=0.0, ge=0)
    """α: weight of the trajectory's tiered mean step score (SSL: 0.2)."""
    step_score: StepScore = "progress"
    """Score of a step. `progress`: share of milestones done after it. `executed`: 1 if its action was carried out, else
    0."""
    zones: int = Field(default=4, ge=0, le=16)
    """K, the number of tiers of the mean step score, at least 2 (SSL: 4); 0 uses the mean itself (RL-Continuous)."""
    added: AddedReward | None = None
    """A reward of steps of an installed package, whose sum is added."""

    @field_validator("zones")
    @classmethod
    def _has_tiers(cls, zones: int) -> int:
        if zones == 1:
            raise ValueError("1 tier gives all scores above 0 one value: use 0 for the score itself, or 2 to 16")
        return zones


def episode_reward(episode: Trajectory, settings: EpisodeRewardSettings) -> float:
    """R of one episode, at least 0 and at most 1 + `milestones` + `steps`, if none is `added`. Without milestones their
    share is 0."""
    reward = episode.reward
    if settings.milestones:
        reward += settings.milestones * _share_done(episode, -1)
    if settings.steps and episode.decisions:
        score = mean_step_score(episode, settings.step_score)
        reward += settings.steps * (tier_value(score, settings.zones) if settings.zones else score)
    if settings.added is not None:
        reward += sum(added_rewards(settings.added, episode))
    return reward


def mean_step_score(episode: Trajectory, kind: StepScore) -> float:
    """S(τ) of Eq. 3: the mean score of the steps, in [0, 1]. Raises ValueError without a step."""
    if not episode.decisions:
        raise ValueError("an episode without a step has no step score")
    match kind:
        case "progress":
            return fmean(_share_done(episode, time) for time in range(1, len(episode.decisions) + 1))
        case "executed":
            return fmean(decision.ok for decision in episode.decisions)


def _share_done(episode: Trajectory, time: int) -> float:
    return episode.done[time] / episode.milestones if episode.milestones else 0.0
