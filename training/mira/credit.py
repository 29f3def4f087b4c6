"""Choices of credit beyond the MiRA paper: which steps of a failure count, a baseline of the attempts at one instance,
and what a step of a long trajectory weighs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Literal

from training.data.rows import Row
from training.data.trajectories import Trajectory

FailuresFrom = Literal["start", "key_step", "last_milestone"]
"""First step of a failure that the actor learns from. `start`: every step, as in the paper. `key_step`: the key
decision step (§4.3) that the failure analyzer's rules give at the end of the episode, without the alignment with
successes of the task that `mira analyze` adds. `last_milestone`: the first step after the last milestone gained."""

Normalizer = Literal["constant", "trajectory"]
"""What a step weighs in the actor's loss. `constant`: the same in every trajectory (1/k of AsyncWebRL, and Eq. 12's
mean over steps). `trajectory`: 1/|τ|, so that every trajectory weighs the same, as in multi-step GRPO."""


def first_counted(trajectory: Trajectory, failures_from: FailuresFrom) -> int:
    """The first decision, 0 to T−1, that the actor learns from: 0 for a success, and for a failure without a known key
    step or without a milestone gained.

    A milestone that the last action of a failure gained is ignored: no step follows it that could have failed.
    """
    if trajectory.success or failures_from == "start":
        return 0
    if failures_from == "key_step":
        return _key_decision(trajectory)
    done, best, counted_from = trajectory.done, trajectory.done[0], 0
    for time in range(1, len(trajectory.decisions)):
        if done[time] > best:
            best, counted_from = done[time], time
    return counted_from


def _key_decision(trajectory: Trajectory) -> int:
    """The decision that holds the key step; an answer with several actions is one decision."""
    if trajectory.key_step is None:
        return 0
    before = [time for time, one in enumerate(trajectory.decisions) if one.step <= trajectory.key_step]
    return before[-1] if before else 0


def group_baselines(trajectories: Sequence[Trajectory], new: int) -> tuple[float | None, ...]:
    """The mean outcome, in [0, 1], of all attempts at the instance of each trajectory.

    Groups are formed among the first *new* trajectories, a phase's own. None for a single attempt and for replayed
    trajectories, whose failed attempts are not replayed.
    """
    groups: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for one in trajectories[:new]:
        groups[one.run_id, one.task.id].append(float(one.success))
    baselines: list[float | None] = []
    for index, one in enumerate(trajectories):
        group = groups[one.run_id, one.task.id] if index < new else []
        baselines.append(sum(group) / len(group) if len(group) > 1 else None)
    return tuple(baselines)


def mixed_values(
    values: Sequence[float], baseline: float | None, weight: float, discounts: Sequence[float]
) -> tuple[float, ...]:
    """`(1−w)·V(s_t) + w·d_t·b` for each step of a trajectory; V alone without a *baseline* b.

    *weight*: w in [0, 1]. *discounts*: `d_t`, the value target of a success at step t, so that both parts estimate the
    same quantity.
    """
    if baseline is None:
        return tuple(values)
    return tuple(
        (1 - weight) * value + weight * discount * baseline for value, discount in zip(values, discounts, strict=True)
    )


def step_weights(rows: Sequence[Row], normalizer: Normalizer) -> tuple[float, ...] | None:
    """The weight of each of the actor's *rows* in its loss, with mean 1; None where all weigh the same.

    |τ| is the number of the trajectory's rows among *rows*.
    """
    if normalizer == "constant":
        return None
    lengths = Counter(row.trajectory for row in rows)
    mean = len(rows) / max(1, len(lengths))
    return tuple(mean / lengths[row.trajectory] for row in rows)
