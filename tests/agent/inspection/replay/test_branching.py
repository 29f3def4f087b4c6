"""A branch repeats its parent's steps, hands over, names its parent, and continues after an interruption."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.config import parse_config
from agent.episode.policy import Turn
from agent.inspection.replay import branch_trace
from agent.progress import Event, StepDone
from agent.results import RunResult
from agent.run.prompt_profiles import with_profile
from agent.run.runner import resume, run_task
from envs.core.actions import Action, Click, Goto, Stop
from envs.core.errors import BadInput
from envs.core.trace import Parent
from envs.core.trace_store import Trace, read_trace
from tests.agent.inspection.replay import orders as pages
from tests.agent.inspection.replay.orders import Orders
from tests.agent.roles import Roles
from tests.agent.shop import scripted
from tests.models.providers.servers import misbehaving_server

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]


NO_ROLES: Mapping[str, Any] = {"planner": "none", "judge": "none"}


async def parent(orders: Orders, out: Path) -> Path:
    """Opens the help, goes back, and ships the wrong order."""
    astray = (Click(ref=4), Goto(url=orders.url), Click(ref=1), Stop(answer="shipped 17"))
    result = await run_task("Ship order 19", orders.url, policy=scripted(astray), out=out, fsync=False)
    orders.shipped.clear()
    return out / result.run_id / result.trace


def ships_19(turn: Turn) -> Action:
    """Ships order 19; called from step 3 on."""
    assert turn.step >= 3
    line = next((row for row in turn.view.observation.text.splitlines() if row.startswith("19 ")), "")
    return Click(ref=int(line.partition("[")[2].partition("]")[0])) if line else Stop(answer="shipped 19")


def trace_of(run: RunResult) -> Trace:
    return read_trace(run.folder / run.episodes[0].trace)


async def test_a_branch_repeats_steps_hands_over_and_names_its_parent(orders: Orders, tmp_path: Path) -> None:
    path = await parent(orders, tmp_path / "parent")
    orders.page = pages.all_at_once
    run = await branch_trace(path, scripted(ships_19), at=3, out=tmp_path / "branch", may_act=True)
    assert (orders.shipped, run.episodes[0].answer) == (["19"], "shipped 19")
    trace, before = trace_of(run), read_trace(path)
    named = Parent(run_id=before.header.run_id, episode_id=before.header.episode_id, step=2)
    assert trace.header.parent == named
    assert [step.intent.action.kind for step in trace.steps] == ["click", "goto", "click", "stop"]
    assert [bool(step.intent.notes) for step in trace.steps] == [True, True, False, False]
    assert trace.header.config["limits"] == before.header.config["limits"]


@pytest.mark.parametrize("kept", [1, 2, 3], ids=lambda kept: f"after step {kept}")
async def test_an_interrupted_branch_continues(orders: Orders, tmp_path: Path, kept: int) -> None:
    path = await parent(orders, tmp_path / "parent")

    def interrupt(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == kept:
            signal.raise_signal(signal.SIGTERM)

    out = tmp_path / "branch"
    run = await branch_trace(path, scripted(ships_19), at=3, out=out, may_act=True, listeners=(interrupt,))
    assert not run.complete
    again = await resume(run.folder, policy=scripted(ships_19))
    assert orders.shipped == ["19"], again.episodes[0].error
    kinds = [step.intent.action.kind for step in trace_of(again).steps]
    assert (kinds, again.episodes[0].answer) == (["click", "goto", "click", "stop"], "shipped 19")
    assert trace_of(again).header.parent is not None


async def test_a_step_that_cannot_be_repeated_ends_the_branch_as_broken(orders: Orders, tmp_path: Path) -> None:
    path = await parent(orders, tmp_path / "parent")
    orders.page = lambda rows: pages.plain(rows).partition("<a ")[0]
    run = await branch_trace(path, scripted(ships_19), at=3, out=tmp_path / "branch", may_act=True)
    episode = run.episodes[0]
    assert (episode.outcome, orders.shipped) == ("broken", [])
    assert episode.error is not None and episode.error.startswith("BranchLost: step 1 of")
    assert "no link 'Help centre' is on the page" in episode.error


async def test_a_step_that_leads_elsewhere_ends_the_branch_as_broken(orders: Orders, tmp_path: Path) -> None:
    path = await parent(orders, tmp_path / "parent")
    orders.moved_to = "/support"
    run = await branch_trace(path, scripted(ships_19), at=2, out=tmp_path / "branch", may_act=True)
    error = run.episodes[0].error
    assert error is not None and error.startswith("BranchLost: step 1 of") and "it led to 127.0.0.1/support" in error


async def test_a_branch_with_another_policy_has_the_prompts_of_its_model(orders: Orders, tmp_path: Path) -> None:
    """The small policy's prompt profile, which the trace records, would also leave out the verdict."""
    small: Mapping[str, Any] = {"k": 2, "limits": {"max_steps": 1}, "fsync": False, "planner": "same", "judge": "same"}
    begun = await run_task("Ship order 19", orders.url, policy="embedded", out=tmp_path / "parent", **small)
    kept: Mapping[str, Any] = {"may_act": True, "limits": {"max_steps": 2}}
    async with misbehaving_server(Roles()) as server:
        path = begun.trace_path
        options: Mapping[str, Any] = {**kept, "base_url": server.openai_url}
        run = await branch_trace(path, "openai:m", at=1, out=tmp_path / "branch", **options)
        own = await branch_trace(path, "openai:m", at=1, out=tmp_path / "own", profile="small", **options, **NO_ROLES)
    fresh = with_profile(parse_config({"policy": "openai:m"}), "open")
    set_by_profiles = ("profile", "language", "max_actions_per_turn", "max_notes")
    recorded, config = read_trace(path).header.config, trace_of(run).header.config
    assert recorded["profile"] == "compact"
    assert {key: config[key] for key in set_by_profiles} == {key: getattr(fresh, key) for key in set_by_profiles}
    assert (run.episodes[0].outcome, config["k"]) == ("success", 2), "the large model judges"
    chosen = trace_of(own).header.config
    assert (chosen["profile"], chosen["max_notes"]) == ("small", 0), "what the branch names itself counts"


async def test_a_branch_sends_the_key_of_another_vendor_to_no_recorded_server(
    orders: Orders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-a-test")
    async with misbehaving_server(Roles()) as server:
        options: Mapping[str, Any] = {"base_url": server.openai_url, "limits": {"max_steps": 1}, "fsync": False}
        begun = await run_task(
            "Ship order 19", orders.url, policy="openai:m", out=tmp_path / "parent", **NO_ROLES, **options
        )
    with pytest.raises(BadInput, match=r"would send its key to .* give --base-url policy=URL"):
        await branch_trace(begun.trace_path, "anthropic:c", at=1, out=tmp_path / "branch", may_act=True)
    assert not (tmp_path / "branch").exists()


async def test_an_impossible_branch_is_refused_before_anything_is_written(orders: Orders, tmp_path: Path) -> None:
    path = await parent(orders, tmp_path / "parent")
    out = tmp_path / "branch"
    with pytest.raises(BadInput, match="--yes"):
        await branch_trace(path, "embedded", at=2, out=out)
    with pytest.raises(BadInput, match="steps 1 to 4"):
        await branch_trace(path, "embedded", at=5, out=out, may_act=True)
    with pytest.raises(BadInput, match="use --at"):
        await branch_trace(path, "embedded", out=out, may_act=True)
    with pytest.raises(BadInput, match="unknown key 'plannner'"):
        await branch_trace(path, "embedded", at=2, out=out, may_act=True, plannner="none")
    assert (orders.shipped, out.exists()) == ([], False)
