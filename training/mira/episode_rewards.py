"""Rewards of whole episodes for group-relative training: the checker's, and optional rewards for milestones and steps.

`R = C(τ) + w_m·(share of milestones done) + α·Ŝ(τ)`, where C is the checker's reward and S(τ) the mean step score of
the trajectory (SSL, Wu et al. 2026, Eq. 2 and 3). SSL scores a step by the distance of a click from a labelled element.
In a live episode no step is labelled, because several paths may lead to the goal. The score of a step is therefore what
the environment shows of it: the share of milestones done after it, or whether the action was carried out.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import Literal

from pydantic import Field

from envs.core.record import Record
from training.data.trajectories import Trajectory

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
    zones: int = Field(default=4, ge=0)
    """K, the number of tiers of the mean step score (SSL: 4); 0 uses the mean itself (RL-Continuous)."""


def episode_reward(episode: Trajectory, settings: EpisodeRewardSettings) -> float:
    """R of one episode, at least 0 and at most 1 + `milestones` + `steps`. Without milestones their share is 0."""
    reward = episode.reward
    if settings.milestones:
        reward += settings.milestones * _share_done(episode, -1)
    if settings.steps and episode.decisions:
        reward += settings.steps * tier(mean_step_score(episode, settings.step_score), settings.zones)
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


def tier(score: float, zones: int) -> float:
    """Ŝ: *score* rounded up to a multiple of `1 / zones` (zone k has the value `1 − (k − 1)/K`, App. B.1; 0 stays 0).
    Without zones *score* itself."""
    return math.ceil(score * zones - 1e-9) / zones if zones else score


def _share_done(episode: Trajectory, time: int) -> float:
    return episode.done[time] / episode.milestones if episode.milestones else 0.0
