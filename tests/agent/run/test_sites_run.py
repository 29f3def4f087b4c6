"""Runs of the sites with a scripted policy and with the embedded model, checked by their traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config import parse_config
from agent.episode.policy import Turn
from agent.run.runner import resume, run_suite
from envs.browser.chromium import Chromium
from envs.core.actions import Action
from envs.core.tasks import TaskSelection
from envs.core.trace_store import read_trace
from envs.suites.sites.golden import missing_packages
from tests.agent.shop import config, scripted
from tests.envs.browser.processes import belonging, kill
from tests.timing import until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing_packages("forum")), reason="the extra `sites` is not installed"),
]


async def test_the_oracle_leaves_a_trace_in_which_every_milestone_is_met(tmp_path: Path) -> None:
    settings = parse_config({"policy": "oracle", "planner": "reference", "fsync": False}, "test")
    run = await run_suite(settings, TaskSelection("sites", ("forum-reply",), (0,)), tmp_path)
    (episode,) = run.episodes
    assert (episode.outcome, episode.ended_by) == ("success", "stop")
    trace = read_trace(run.folder / episode.trace)
    assert trace.footer is not None and trace.footer.rating is not None
    assert trace.footer.rating.z == (True,) * 4
    assert trace.header.category == "forum"
    assert trace.header.start_url == "http://forum.test/"


async def test_the_embedded_model_runs_to_an_end(tmp_path: Path) -> None:
    """Success is not required: the model was not trained on such pages."""
    settings = parse_config({"policy": "embedded", "limits": {"max_steps": 3}, "fsync": False}, "test")
    run = await run_suite(settings, TaskSelection("sites", ("forum-topic-author",), (0,)), tmp_path)
    (episode,) = run.episodes
    assert episode.outcome in ("success", "failure")
    assert 1 <= episode.totals.steps <= 3


async def test_a_copy_of_a_site_is_rebuilt_where_a_raised_limit_continues_an_episode(tmp_path: Path) -> None:
    """A solver cannot start in the middle, so its actions are repeated from a script."""
    selection = TaskSelection("sites", ("shop-change-surname",), (0,))
    (whole,) = (await run_suite(config(policy="oracle"), selection, tmp_path)).episodes
    steps = read_trace(whole.trace_path).steps
    policy = scripted([step.intent.action for step in steps])
    filled_in = {"max_steps": len(steps) - 2}  # the form is sent by the next step
    run = await run_suite(config(limits=filled_in), selection, tmp_path, policy=policy)
    assert [(episode.outcome, episode.ended_by) for episode in run.episodes] == [("failure", "max_steps")]
    (result,) = (await resume(run.folder, policy=policy, limits={"max_steps": 40})).episodes
    assert (result.outcome, result.totals.steps) == ("success", len(steps))


async def test_a_browser_that_dies_is_no_failure_of_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once in the middle of an episode, once after its last action: the copies are rebuilt, the episode continues."""
    selection = TaskSelection("sites", ("shop-change-surname",), (0, 1))
    whole = await run_suite(config(policy="oracle"), selection, tmp_path)
    actions = {
        episode.task.seed: [step.intent.action for step in read_trace(episode.trace_path).steps]
        for episode in whole.episodes
    }
    started: list[str] = []
    start = Chromium.start

    async def noted(chromium: Chromium) -> None:
        await start(chromium)
        started.append(str(chromium.home))

    killed: dict[int, int] = {}

    def play(turn: Turn) -> Action:
        seed = turn.task.seed
        done = sum(action.result is not None and action.result.ok for action in turn.past)
        if seed not in killed and done == (2, len(actions[1]) - 1)[seed]:
            killed[seed] = turn.step
            kill(belonging(started[-1]))
            assert until(lambda: not belonging(started[-1]))
        return actions[seed][done]

    monkeypatch.setattr(Chromium, "start", noted)
    run = await run_suite(config(), selection, tmp_path, policy=scripted(play))
    assert set(killed) == {0, 1}
    assert [episode.outcome for episode in run.episodes] == ["success", "success"]
    for episode in run.episodes:
        assert "resumed" in [event.name for event in read_trace(episode.trace_path).events]
