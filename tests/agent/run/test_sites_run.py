"""Runs of the sites with a scripted policy and with the embedded model, checked by their traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config import parse_config
from agent.run.runner import run_suite
from envs.core.tasks import TaskSelection
from envs.core.trace_store import read_trace
from envs.suites.sites.golden import missing_packages

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing_packages("forum")), reason="the extra `sites` is not installed"),
]


async def test_the_oracle_leaves_a_trace_in_which_every_milestone_is_met(tmp_path: Path) -> None:
    config = parse_config({"policy": "oracle", "planner": "reference", "fsync": False}, "test")
    run = await run_suite(config, TaskSelection("sites", ("forum-reply",), (0,)), tmp_path)
    (episode,) = run.episodes
    assert (episode.outcome, episode.ended_by) == ("success", "stop")
    trace = read_trace(run.folder / episode.trace)
    assert trace.footer is not None and trace.footer.rating is not None
    assert trace.footer.rating.z == (True,) * 4
    assert trace.header.category == "forum"
    assert trace.header.start_url == "http://forum.test/"


async def test_the_embedded_model_runs_to_an_end(tmp_path: Path) -> None:
    """Success is not required: the model was not trained on such pages."""
    config = parse_config({"policy": "embedded", "limits": {"max_steps": 3}, "fsync": False}, "test")
    run = await run_suite(config, TaskSelection("sites", ("forum-topic-author",), (0,)), tmp_path)
    (episode,) = run.episodes
    assert episode.outcome in ("success", "failure")
    assert 1 <= episode.totals.steps <= 3
