"""Critics that see how many milestones are done, which the policy never does."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.core.errors import BadInput
from tests.training.trajectories import embedded_tokenizer, sampled, trajectory
from training.data.rows import Row
from training.loop.critic_states import with_milestones
from training.loop.loop import Loop
from training.loop.settings import load_settings


def test_critics_read_the_status_and_the_policy_does_not() -> None:
    tokenizer = embedded_tokenizer()
    planned = trajectory(sampled(((5, 6), (7,)), ((5, 6), (8,))), milestones=3, done=(0, 2, 3))
    plain = trajectory(sampled(((5, 6), (7,))), seed=1)
    rows = [Row((5, 6), (7,), 0, 0), Row((5, 6), (8,), 0, 1), Row((5, 6), (7,), 1, 0)]
    before = list(rows)
    states = with_milestones(rows, (planned, plain), tokenizer)
    texts = [tokenizer.decode(row.prompt[2:]) for row in states]
    assert [text.strip() for text in texts] == ["Milestones done: 0 of 3", "Milestones done: 2 of 3", ""]
    assert rows == before and [row.completion for row in states] == [row.completion for row in rows]


def test_the_value_of_unopened_tasks_needs_a_critic_without_them(tmp_path: Path) -> None:
    settings = load_settings(None, ["value.milestones=true", "curriculum.value_band={}"])
    with pytest.raises(BadInput, match=r"set value\.milestones to false"):
        Loop.open(tmp_path / "run", settings)
