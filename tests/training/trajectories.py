"""Builders of trajectories and rows for tests."""

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
    """The episode `NAME-SEED` of the run `r`; without *done* no milestone is ever done."""
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


def worded(*completions: str, page: str = "x") -> tuple[Decision, ...]:
    """Decisions of a policy that is not local: each has the prompt *page*."""
    return tuple(
        Decision(step=step, tokens=None, messages=(("user", page),), completion=text, ok=True)
        for step, text in enumerate(completions, 1)
    )


def sampled(*pairs: tuple[tuple[int, ...], tuple[int, ...]], logprob: float | None = None) -> tuple[Decision, ...]:
    """Decisions of the embedded model: (prompt, completion) of each step, each completion token with *logprob*."""
    return tuple(
        Decision(
            step=step,
            tokens=Tokens(
                prompt=prompt,
                completion=completion,
                logprobs=None if logprob is None else (logprob,) * len(completion),
            ),
            completion=embedded_tokenizer().decode(completion, skip_special_tokens=True),
            ok=True,
        )
        for step, (prompt, completion) in enumerate(pairs, 1)
    )


def acted(name: str, actions: Sequence[tuple[int, ...]], *, success: bool, seed: int = 0) -> Trajectory:
    """An episode with the completions *actions* after prompts of seed and step; its second milestone is the last."""
    decisions = sampled(*(((10 + seed, 20 + step), action) for step, action in enumerate(actions, 1)))
    done = (*range(len(actions)), 2)[: len(actions) + 1]
    return trajectory(decisions, name=name, seed=seed, success=success, milestones=2, done=done)


def rows_of(trajectories: Sequence[Trajectory]) -> tuple[Row, ...]:
    """One row for each decision with token ids."""
    return tuple(
        Row(decision.tokens.prompt, decision.tokens.completion, index, time)
        for index, episode in enumerate(trajectories)
        for time, decision in enumerate(episode.decisions)
        if decision.tokens is not None
    )
