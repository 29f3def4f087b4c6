"""Trajectories of runs in Chromium: an oracle's demonstrations, and the embedded model's own samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config import parse_config
from agent.run.discover_traces import discover_traces
from agent.run.runner import run_suite
from envs.core.tasks import TaskSelection
from training.data.trajectories import prompt_of, select

pytestmark = pytest.mark.browser


async def played(policy: str, out: Path) -> Path:
    config = parse_config({"policy": policy, "fsync": False, "limits": {"max_steps": 5}}, "test")
    return (await run_suite(config, TaskSelection("miniwob", ("login-user",), (0,)), out)).folder


async def test_a_demonstration_has_the_prompts_of_a_policy(tmp_path: Path) -> None:
    files = discover_traces([await played("oracle", tmp_path)])
    (trajectory,) = select((file.read(), file.blobs) for file in files).kept
    assert (trajectory.success, trajectory.milestones, trajectory.done) == (True, 3, (0, 1, 2, 3))
    first, second, last = trajectory.decisions
    (message,) = prompt_of(first)
    assert message.text.startswith("Goal: Enter the username") and 'textbox "username"' in message.text
    assert first.completion.startswith('do(action="Type"') and last.completion.startswith('do(action="Click"')
    assert "Done: type" in prompt_of(second)[0].text


async def test_a_demonstration_is_no_model_call(tmp_path: Path) -> None:
    (episode,) = discover_traces([await played("oracle", tmp_path)])
    footer = episode.read().footer
    assert footer is not None and (footer.totals.model_calls, footer.totals.tokens_in) == (0, 0)


async def test_samples_of_the_embedded_model_keep_their_token_ids(tmp_path: Path) -> None:
    (episode,) = discover_traces([await played("embedded", tmp_path)])
    (trajectory,) = select([(episode.read(), episode.blobs)]).kept
    for decision in trajectory.decisions:
        assert decision.tokens is not None and decision.tokens.logprobs is not None
        assert len(decision.tokens.logprobs) == len(decision.tokens.completion)
        assert all(value <= 0 for value in decision.tokens.logprobs)
