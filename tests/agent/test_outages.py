"""Whole runs whose model goes away, port and all: played through, or played on with `resume`, and counted once."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent.analyzing import survey
from agent.comparing import compare
from agent.gathering import gather
from agent.listing import episode_row
from agent.progress import Event, ModelWaits
from agent.replay import branch_trace
from agent.replay.recorded import Recording
from agent.results import EpisodeResult
from agent.runner import resume, run_task
from envs.trace_store import Trace, read_trace
from models import transport
from tests.agent.roles import Role, Roles
from tests.agent.shop import Shop
from tests.models.outages import OutageClock
from tests.models.servers import MisbehavingServer, misbehaving_server
from training.data.trajectories import select
from training.evaluation.reading import read_played

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


async def ordered(server: MisbehavingServer, shop: Shop, out: Path, **settings: Any) -> EpisodeResult:
    given = {"planner": "same", "judge": "same", "k": 2, "fsync": False, **settings}
    return await run_task("Order for bob", shop.url, policy="openai:m", out=out, base_url=server.openai_url, **given)


def trace_of(result: EpisodeResult) -> Trace:
    return read_trace(result.trace_path)


MOMENTS: list[tuple[Role, int]] = [("planner", 1), ("policy", 3), ("judge", 1)]


@pytest.mark.parametrize("seconds", [5, 30, 90])
@pytest.mark.parametrize("moment", MOMENTS, ids=[moment[0] for moment in MOMENTS])
async def test_a_short_outage_loses_no_episode(
    moment: tuple[Role, int], seconds: float, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role, nth = moment
    clock = OutageClock(seconds)
    monkeypatch.setattr(transport, "CLOCK", clock)
    heard: list[Event] = []
    async with misbehaving_server(Roles(role, nth)) as server:
        clock.watch(server)
        result = await ordered(server, shop, tmp_path, listeners=[heard.append])
    assert (result.outcome, result.answer, result.resumable) == ("success", "ordered", False)
    assert clock.slept >= seconds and shop.orders == ["who=bob"]
    waits = [event for event in heard if isinstance(event, ModelWaits)]
    assert len(waits) == len(clock.waits) and {wait.role for wait in waits} == {role}


class Broken(NamedTuple):
    role: Role
    nth: int
    """The request of the role at which the server goes away."""
    outcome: str
    steps: int
    """Committed by then."""


BROKEN = [
    Broken("planner", 1, "broken", 0),
    Broken("policy", 1, "broken", 0),
    Broken("policy", 3, "broken", 2),
    Broken("rater", 1, "broken", 0),
    Broken("rater", 3, "broken", 2),
    Broken("judge", 1, "unjudged", 3),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: f"{case.role}-{case.nth}")
async def test_an_episode_that_a_model_broke_is_played_on_and_counts_once(
    case: Broken, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role, nth, outcome, steps = case
    clock = OutageClock(math.inf)
    monkeypatch.setattr(transport, "CLOCK", clock)
    roles = Roles(role, nth)
    async with misbehaving_server(roles) as server:
        clock.watch(server)
        broken = await ordered(server, shop, tmp_path)
        assert (broken.outcome, broken.resumable, broken.totals.steps) == (outcome, True, steps)
        assert broken.error is not None and "cannot reach" in broken.error
        assert read_outcomes(broken) == {outcome}
        await server.come_back()
        clock.watch(server)
        (result,) = (await resume(tmp_path / broken.run_id)).episodes
    assert (result.outcome, result.answer, result.resumable) == ("success", "ordered", False)
    assert shop.orders == ["who=bob"], "nothing that was committed is sent again"
    trace = trace_of(result)
    assert [(step.intent.step, step.commit is not None) for step in trace.steps] == [(1, True), (2, True), (3, True)]
    (resumed,) = (event for event in trace.events if event.name == "resumed")
    assert f"after step {steps}" in resumed.detail and "cannot reach" in resumed.detail
    assert len(trace.plans) == 1 and roles.answered["planner"] == 1
    assert result.totals.steps == 3 and result.totals.model_calls >= 5
    assert read_outcomes(result) == {"success"}
    rows = (tmp_path / result.run_id / "results.jsonl").read_text().splitlines()
    assert [json.loads(row)["outcome"] for row in rows] == ["success"]


def read_outcomes(result: EpisodeResult) -> set[str]:
    """What each reader says of the one episode of a run. A broken one is nothing to learn from."""
    path = result.trace_path
    files = gather([path.parent.parent])
    selection = select((file.read(), file.blobs) for file in files)
    footer = Recording.read(files[0]).footer
    (played,) = read_played(files).played
    ((surveyed, count),) = survey([path.parent.parent]).outcomes.items()
    compared = compare(files, files).a.outcomes
    assert (count, len(compared)) == (1, 1)
    assert footer is not None and surveyed is not None
    learned = "success" if [one.success for one in selection.kept] == [True] else next(iter(selection.left_out)).value
    return {episode_row(path).outcome, footer.outcome, played.outcome, surveyed, *compared, learned}


async def test_an_outage_that_goes_on_breaks_it_again_and_it_can_still_be_resumed(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = OutageClock(math.inf)
    monkeypatch.setattr(transport, "CLOCK", clock)
    async with misbehaving_server(Roles("policy", 3)) as server:
        clock.watch(server)
        broken = await ordered(server, shop, tmp_path)
        for _ in range(2):
            (again,) = (await resume(tmp_path / broken.run_id)).episodes
            assert (again.outcome, again.resumable, again.totals.steps) == ("broken", True, 2)
        await server.come_back()
        (result,) = (await resume(tmp_path / broken.run_id)).episodes
    assert (result.outcome, shop.orders) == ("success", ["who=bob"])
    assert [event.name for event in trace_of(result).events].count("resumed") == 3


async def test_a_branch_begins_where_the_model_went_away(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = OutageClock(math.inf)
    monkeypatch.setattr(transport, "CLOCK", clock)
    async with misbehaving_server(Roles("policy", 2)) as server:
        clock.watch(server)
        broken = await ordered(server, shop, tmp_path, planner="none", judge="none")
        await server.come_back()
        run = await branch_trace(
            broken.trace_path, "openai:m", out=tmp_path / "b", may_act=True, base_url=server.openai_url
        )
    (episode,) = run.episodes
    trace = trace_of(episode)
    assert (episode.answer, shop.orders) == ("ordered", ["who=bob"])
    assert trace.header.parent is not None and trace.header.parent.step == 1
    assert [bool(step.intent.notes) for step in trace.steps] == [True, False, False]


async def test_a_branch_begins_where_the_planner_went_away(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = OutageClock(math.inf)
    monkeypatch.setattr(transport, "CLOCK", clock)
    async with misbehaving_server(Roles("planner", 1)) as server:
        clock.watch(server)
        broken = await ordered(server, shop, tmp_path)
        await server.come_back()
        run = await branch_trace(
            broken.trace_path, "openai:m", out=tmp_path / "b", may_act=True, base_url=server.openai_url
        )
    assert (run.episodes[0].outcome, shop.orders) == ("success", ["who=bob"])
