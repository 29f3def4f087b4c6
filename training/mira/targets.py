"""Computes the training targets of critics and actor for all rows: values, progress labels and advantages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from envs.core.record import Record
from training.data.rows import Row
from training.data.trajectories import Trajectory
from training.mira.added_rewards import AddedReward, added_rewards
from training.mira.advantages import (
    ValueTarget,
    advantages,
    outcome_rewards,
    shaped_rewards,
    value_targets,
    webrl_code_advantages,
)
from training.mira.credit import group_baselines, mixed_values
from training.mira.progress import fit_for_critic, progress_labels


class TargetSettings(Record):
    """Parameters of rewards and advantages (MiRA paper: Eq. 1, 10, 11). Defaults are the paper's where it has them."""

    alpha: float = Field(default=0.3, ge=0)
    """Weight of reward shaping; 0 is "no potential critic"."""
    gamma: float = Field(default=0.9, gt=0, le=1)
    mix: float = Field(default=0.5, ge=0, le=1)
    """λ of Eq. 10, which the paper does not give; 1 is "TD only"."""
    value_target: ValueTarget = "discounted"
    """See :func:`training.mira.advantages.value_targets`."""
    shape_failures: bool = False
    """Shape the rewards of failures, too. The paper restricts shaping to successes (§5.3)."""
    discounted_shaping: bool = False
    """Use γ inside the difference, as in potential-based shaping."""
    advantage: Literal["eq10", "webrl_code"] = "eq10"
    """`webrl_code`: see :func:`training.mira.advantages.webrl_code_advantages`."""
    group_weight: float = Field(default=0.0, ge=0, le=1)
    """Weight w of the mean outcome of all attempts at one instance in the baseline of Eq. 10, `(1−w)·V + w·mean`; 1 is
    the group's mean alone, 0 the paper's V alone. Replayed trajectories and single attempts have V alone."""
    added: AddedReward | None = None
    """A reward of steps of an installed package, added to the rewards above. V still estimates the outcome alone."""


def row_advantages(
    trajectories: Sequence[Trajectory],
    rows: Sequence[Row],
    potentials: Sequence[float],
    values: Sequence[float],
    settings: TargetSettings,
    *,
    new: int | None = None,
) -> tuple[float, ...]:
    """`A_t` of every row, from the critics' outputs for its state: *potentials* and *values*, in the order of *rows*.

    The state after the last action has no row. Its potential is 1 after a success, like its label. After a failure it
    is that of the last state, so that nothing is gained. *new*: the number of this phase's own trajectories, which come
    first; None: all. Raises ValueError where a trajectory lacks some of its rows.
    """
    groups = group_baselines(trajectories, len(trajectories) if new is None else new)
    row_results = [0.0] * len(rows)
    for index, places in _places(trajectories, rows).items():
        trajectory = trajectories[index]
        rewards = outcome_rewards(len(places), success=trajectory.success)
        if trajectory.success or settings.shape_failures:
            states = [potentials[place] for place in places]
            states.append(1.0 if trajectory.success else states[-1])
            inner = settings.gamma if settings.discounted_shaping else 1.0
            rewards = shaped_rewards(rewards, states, settings.alpha, gamma=inner)
        if settings.added is not None:
            own_rewards = added_rewards(settings.added, trajectory)
            rewards = tuple(reward + more for reward, more in zip(rewards, own_rewards, strict=True))
        discounts = value_targets(len(places), success=True, gamma=settings.gamma, kind=settings.value_target)
        baseline = groups[index] if settings.group_weight else None
        own = mixed_values([values[place] for place in places], baseline, settings.group_weight, discounts)
        if settings.advantage == "eq10":
            results = advantages(rewards, own, gamma=settings.gamma, mix=settings.mix)
        else:
            results = webrl_code_advantages(rewards, own, success=trajectory.success, gamma=settings.gamma)
        for place, advantage in zip(places, results, strict=True):
            row_results[place] = advantage
    return tuple(row_results)


def row_values(trajectories: Sequence[Trajectory], rows: Sequence[Row], settings: TargetSettings) -> tuple[float, ...]:
    """The value critic's target of every row. It depends on the true outcome of the row's trajectory only."""
    row_targets = [0.0] * len(rows)
    for index, places in _places(trajectories, rows).items():
        targets = value_targets(
            len(places), success=trajectories[index].success, gamma=settings.gamma, kind=settings.value_target
        )
        for place, target in zip(places, targets, strict=True):
            row_targets[place] = target
    return tuple(row_targets)


def row_progress(trajectories: Sequence[Trajectory], rows: Sequence[Row]) -> dict[int, float]:
    """`p*` by the row's index, for the rows that the potential critic learns from: those of successes with milestones
    that pass the filter of :func:`training.mira.progress.fit_for_critic`."""
    labels: dict[int, float] = {}
    for index, places in _places(trajectories, rows).items():
        trajectory = trajectories[index]
        actions = [decision.action or decision.completion for decision in trajectory.decisions]
        if trajectory.success and trajectory.milestones and fit_for_critic(actions):
            own = progress_labels(trajectory.done, trajectory.milestones)
            labels |= dict(zip(places, own, strict=False))
    return labels


def _places(trajectories: Sequence[Trajectory], rows: Sequence[Row]) -> Mapping[int, Sequence[int]]:
    """The indices of each trajectory's rows, in the order of its steps."""
    by_trajectory: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        by_trajectory.setdefault(row.trajectory, []).append(place)
    for index, places in by_trajectory.items():
        places.sort(key=lambda place: rows[place].time)
        steps = len(trajectories[index].decisions)
        if [rows[place].time for place in places] != list(range(steps)):
            raise ValueError(
                f"trajectory {index} has {steps} decisions, but rows of times {[rows[p].time for p in places]}"
            )
    return by_trajectory
