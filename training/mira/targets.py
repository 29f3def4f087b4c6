"""What the critics and the actor are trained towards, computed once for all rows and kept where one can look at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from envs.core.action_languages import LANGUAGES, ParseError
from envs.core.actions import Action
from envs.core.record import Record
from training.data.rows import Row
from training.data.trajectories import Trajectory
from training.mira.advantages import (
    ValueTarget,
    advantages,
    outcome_rewards,
    shaped_rewards,
    value_targets,
    webrl_code_advantages,
)
from training.mira.progress import fit_for_critic, progress_labels


class TargetSettings(Record):
    """How a trajectory becomes numbers (MiRA paper: Eq. 1, 10, 11). The defaults are the paper's where it says."""

    alpha: float = Field(default=0.3, ge=0)
    """Weight of shaping; 0 is "no potential critic"."""
    gamma: float = Field(default=0.9, gt=0, le=1)
    mix: float = Field(default=0.5, ge=0, le=1)
    """λ of Eq. 10, which the paper does not give; 1 is "TD only"."""
    value_target: ValueTarget = "discounted"
    """See :func:`training.mira.advantages.value_targets`."""
    shape_failures: bool = False
    """The paper restricts shaping to successes (§5.3)."""
    discounted_shaping: bool = False
    """γ inside the difference, as in potential-based shaping."""
    advantage: Literal["eq10", "webrl_code"] = "eq10"
    """`webrl_code`: see :func:`training.mira.advantages.webrl_code_advantages`."""


def row_advantages(
    trajectories: Sequence[Trajectory],
    rows: Sequence[Row],
    potentials: Sequence[float],
    values: Sequence[float],
    settings: TargetSettings,
) -> tuple[float, ...]:
    """`A_t` of every row from the critics' words on its state, *potentials* and *values* in the order of *rows*.

    The state after the last action has no row. Its potential is 1 after a success, as its label is, and after a failure
    that of the last state: nothing was gained. Raises ValueError where a trajectory has only some of its rows.
    """
    found = [0.0] * len(rows)
    for index, places in _places(trajectories, rows).items():
        trajectory = trajectories[index]
        rewards = outcome_rewards(len(places), success=trajectory.success)
        if trajectory.success or settings.shape_failures:
            states = [potentials[place] for place in places]
            states.append(1.0 if trajectory.success else states[-1])
            inner = settings.gamma if settings.discounted_shaping else 1.0
            rewards = shaped_rewards(rewards, states, settings.alpha, gamma=inner)
        said = [values[place] for place in places]
        if settings.advantage == "eq10":
            of_trajectory = advantages(rewards, said, gamma=settings.gamma, mix=settings.mix)
        else:
            of_trajectory = webrl_code_advantages(rewards, said, success=trajectory.success, gamma=settings.gamma)
        for place, advantage in zip(places, of_trajectory, strict=True):
            found[place] = advantage
    return tuple(found)


def row_values(trajectories: Sequence[Trajectory], rows: Sequence[Row], settings: TargetSettings) -> tuple[float, ...]:
    """The value critic's target of every row: from every state of every trajectory, true outcomes alone."""
    found = [0.0] * len(rows)
    for index, places in _places(trajectories, rows).items():
        targets = value_targets(
            len(places), success=trajectories[index].success, gamma=settings.gamma, kind=settings.value_target
        )
        for place, target in zip(places, targets, strict=True):
            found[place] = target
    return tuple(found)


def row_progress(trajectories: Sequence[Trajectory], rows: Sequence[Row]) -> dict[int, float]:
    """`p*` by the row's place, for the rows that the potential critic learns from: those of successes with milestones
    that pass the filter of :func:`training.mira.progress.fit_for_critic`."""
    found: dict[int, float] = {}
    for index, places in _places(trajectories, rows).items():
        trajectory = trajectories[index]
        actions = [_action(decision.said) for decision in trajectory.decisions]
        if trajectory.success and trajectory.milestones and fit_for_critic(actions):
            labels = progress_labels(trajectory.done, trajectory.milestones)
            found |= dict(zip(places, labels, strict=False))
    return found


def _action(said: str) -> Action | str:
    """What *said* does, in either language, whatever is noted beside it; the words themselves where they do nothing."""
    for spoken in LANGUAGES.values():
        try:
            return spoken.parse(said).action
        except ParseError:
            continue
    return said


def _places(trajectories: Sequence[Trajectory], rows: Sequence[Row]) -> Mapping[int, Sequence[int]]:
    """The places of each trajectory's rows, in the order of its steps."""
    found: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        found.setdefault(row.trajectory, []).append(place)
    for index, places in found.items():
        places.sort(key=lambda place: rows[place].time)
        steps = len(trajectories[index].decisions)
        if [rows[place].time for place in places] != list(range(steps)):
            raise ValueError(
                f"trajectory {index} has {steps} decisions, but rows of times {[rows[p].time for p in places]}"
            )
    return found
