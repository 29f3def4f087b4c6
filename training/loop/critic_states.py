"""The states that critics read: the policy's prompt and, by setting, how many milestones are done there.

The policy of the loop is not shown its milestones, and the rater's answer is known exactly at every step. A critic that
reads the prompt alone has to guess it. The policy's own rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from training.data.rows import Row
from training.data.trajectories import Trajectory


def with_milestones(rows: Sequence[Row], trajectories: Sequence[Trajectory], tokenizer: Any) -> tuple[Row, ...]:
    """*rows* with the number of milestones that are done at their state, at the end of the prompt; rows of trajectories
    without a plan, or with several, as they are."""
    known: dict[tuple[int, int], tuple[int, ...]] = {}
    states: list[Row] = []
    for row in rows:
        trajectory = trajectories[row.trajectory]
        if not trajectory.milestones:
            states.append(row)
            continue
        status = trajectory.done[row.time], trajectory.milestones
        if status not in known:
            text = f"\nMilestones done: {status[0]} of {status[1]}"
            known[status] = tuple(tokenizer.encode(text, add_special_tokens=False))
        states.append(replace(row, prompt=(*row.prompt, *known[status])))
    return tuple(states)
