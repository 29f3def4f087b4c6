"""Trajectories and rows for tests, made up in a line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from transformers import AutoTokenizer

from envs.core.tasks import TaskRef
from models.embedded import embedded_dir
from training.data.rows import Row
from training.data.trajectories import Decision, Tokens, Trajectory


@lru_cache
def embedded_tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(embedded_dir(), local_files_only=True)


def trajectory(
    decisions: Sequence[Decision],
    *,
    name: str = "task",
    seed: int = 0,
    success: bool = True,
    milestones: int = 0,
    done: Sequence[int] = (),
) -> Trajectory:
    """The episode `NAME-SEED` of the run `r`; without *done* no milestone ever is."""
    return Trajectory(
        run_id="r",
        episode_id=f"{name}-{seed}",
        task=TaskRef(suite="miniwob", name=name, seed=seed),
        attempt=1,
        category="form",
        policy="p",
        success=success,
        reward=float(success),
        milestones=milestones,
        done=tuple(done) or (0,) * (len(decisions) + 1),
        decisions=tuple(decisions),
    )


def worded(*said: str, page: str = "x") -> tuple[Decision, ...]:
    """Of a policy that was not local: it was shown *page* each time."""
    return tuple(
        Decision(step=step, tokens=None, messages=(("user", page),), said=text, ok=True)
        for step, text in enumerate(said, 1)
    )


def sampled(*pairs: tuple[tuple[int, ...], tuple[int, ...]], logprob: float | None = None) -> tuple[Decision, ...]:
    """Of the embedded model: (prompt, action) of each step, each action token with *logprob*."""
    return tuple(
        Decision(
            step=step,
            tokens=Tokens(prompt=prompt, action=action, logprobs=None if logprob is None else (logprob,) * len(action)),
            said=embedded_tokenizer().decode(action, skip_special_tokens=True),
            ok=True,
        )
        for step, (prompt, action) in enumerate(pairs, 1)
    )


def acted(name: str, actions: Sequence[tuple[int, ...]], *, success: bool, seed: int = 0) -> Trajectory:
    """An episode with these action tokens after prompts that say seed and step; its second milestone is its last."""
    decisions = sampled(*(((10 + seed, 20 + step), action) for step, action in enumerate(actions, 1)))
    done = (*range(len(actions)), 2)[: len(actions) + 1]
    return trajectory(decisions, name=name, seed=seed, success=success, milestones=2, done=done)


def rows_of(trajectories: Sequence[Trajectory]) -> tuple[Row, ...]:
    """A row for each decision, as its tokens are."""
    return tuple(
        Row(one.tokens.prompt, one.tokens.action, index, time)
        for index, of in enumerate(trajectories)
        for time, one in enumerate(of.decisions)
        if one.tokens is not None
    )
