"""Trajectories and rows for tests, made up in a line."""

from __future__ import annotations

from envs.tasks import TaskRef
from training.data.rows import Row
from training.data.trajectories import Decision, Tokens, Trajectory


def trajectory(name: str, actions: tuple[tuple[int, ...], ...], *, success: bool, seed: int = 0) -> Trajectory:
    """One whose decisions are these action tokens, after a prompt that says task and step."""
    return Trajectory(
        run_id="r",
        episode_id=f"{name}-{seed}",
        task=TaskRef(suite="miniwob", name=name, seed=seed),
        attempt=1,
        category="form",
        policy="p",
        success=success,
        reward=float(success),
        milestones=2,
        done=(*range(len(actions)), 2)[: len(actions) + 1],
        decisions=tuple(
            Decision(
                step=number,
                tokens=Tokens(prompt=(10 + seed, 20 + number), action=action),
                said=" ".join(map(str, action)),
                ok=True,
            )
            for number, action in enumerate(actions, 1)
        ),
    )


def rows_of(trajectories: tuple[Trajectory, ...]) -> tuple[Row, ...]:
    return tuple(
        Row(one.tokens.prompt, one.tokens.action, index, time)
        for index, of in enumerate(trajectories)
        for time, one in enumerate(of.decisions)
        if one.tokens is not None
    )
