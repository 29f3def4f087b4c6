"""Rewards of steps that installed packages add to the training of MiRA and its baselines: entry points of the group
`mira.step_rewards`.

A run names one as `targets.added.kind` (its numbers are added to the rewards of the steps, before advantages) or, for
advantages within groups, as `groups.reward.added.kind` (their sum is added to the reward of the episode).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer, ValidationError

from envs.core.errors import BadInput
from envs.core.plain_values import first_problem
from envs.core.record import Record
from models.registry import STEP_REWARDS as GROUP
from models.registry import Registry
from training.data.trajectories import Decision, Trajectory

__all__ = ["Decision", "StepReward", "StepRewardEntry", "Trajectory", "added_rewards"]


class StepReward(Record):
    """Base class of a package's reward of steps: its settings as fields, and the function that rewards an episode.

    A subclass sets the default of `kind` to the name of its entry.
    """

    kind: str = "NAME"

    @abstractmethod
    def of_episode(self, episode: Trajectory) -> Sequence[float]:
        """One finite number for each of `episode.decisions`, in their order. It is added to the reward of that step, in
        successes and failures. Equal episodes must get equal numbers: an interrupted phase computes them again."""


@dataclass(frozen=True, slots=True)
class StepRewardEntry:
    """A reward of steps that a run names by the entry's name."""

    settings: type[StepReward]


STEP_REWARDS: Final = Registry(GROUP, StepRewardEntry, {}, error=BadInput)


def _named(value: object) -> StepReward:
    """The reward whose settings are *value*; `kind` names the entry point. Raises ValueError for anything else."""
    if isinstance(value, StepReward):
        return value
    name = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(name, str):
        raise ValueError("a reward is named by its key kind")
    try:
        settings = STEP_REWARDS.load(name).settings
    except BadInput as error:
        raise ValueError(str(error)) from error
    try:
        return settings.model_validate(value)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from error


AddedReward = Annotated[StepReward, BeforeValidator(_named), PlainSerializer(StepReward.model_dump)]
"""A reward of steps of an installed package, by `kind`."""


def added_rewards(reward: StepReward, episode: Trajectory) -> tuple[float, ...]:
    """The reward of each decision of *episode*. Raises BadInput, which names reward and episode, unless there is one
    finite number for each."""
    numbers = tuple(map(float, reward.of_episode(episode)))
    if len(numbers) == len(episode.decisions) and all(map(math.isfinite, numbers)):
        return numbers
    raise BadInput(
        f"the reward {reward.kind!r} ({GROUP}) gave {len(numbers)} numbers, {sum(map(math.isfinite, numbers))} of them"
        f" finite, for the {len(episode.decisions)} decisions of episode {episode.episode_id}: it must return one"
        " finite number for each"
    )
