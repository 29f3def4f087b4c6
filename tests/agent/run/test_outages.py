"""Runs whose model server goes down: they finish, or `resume` continues them, and each episode counts once."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from agent.episode.policy import Turn
from agent.inspection.analyze import survey
from agent.inspection.compare import compare
from agent.inspection.listing import episode_row
from agent.inspection.replay import branch_trace
from agent.inspection.replay.recorded import Recording
from agent.inspection.replay.retracing import BranchLost
from agent.progress import Event, ModelWaits
from agent.results import EpisodeResult
from agent.run.discover_traces import discover_traces
from agent.run.oracle import miniwob_oracle
from agent.run.resume import recover
from agent.run.runner import resume, run_suite
from envs.core.actions import Action
from envs.core.errors import ResetFailed
from envs.core.tasks import EpisodeStart, TaskSelection
from envs.core.trace import Degraded
from envs.core.trace_store import Trace, read_trace
from envs.suites.miniwob.environment import MiniwobEnvironment
from models import transport
from models.base import ModelBusy
from tests.agent.mira_process import run_mira
from tests.agent.roles import Role, Roles, ordered
from tests.agent.run.test_resume import HEADER, ONE_STEP, event
from tests.agent.shop import Shop, config, scripted
from tests.models.providers.outages import OutageClock
from tests.models.providers.servers import misbehaving_server
from training.data.trajectories import select
from training.loop.evaluation.reading import read_played

ROOT = Path(__file__).parents[3]

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]


def trace_of(result: EpisodeResult) -> Trace:
    return read_trace(result.trace_path)


MOMENTS: list[tuple[Role, int]] = [("planner", 1), ("policy", 3), ("judge", 1)]


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [(MOMENTS[0], 30), (MOMENTS[1], 5), (MOMENTS[1], 90), (MOMENTS[2], 30)],
    ids=["planner-30", "policy-5", "policy-90", "judge-30"],
)
async def test_a_short_outage_loses_no_episode(
    moment: tuple[Role, int], seconds: float, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role, nth = moment
    clock = OutageClock(seconds)
    monkeypatch.setattr(transport, "CLOCK", clock)
    events: list[Event] = []
    async with misbehaving_server(Roles(role, nth)) as server:
        clock.watch(server)
        result = await ordered(server, shop, tmp_path, listeners=[events.append])
    assert (result.outcome, result.answer, result.resumable) == ("success", "ordered", False)
    assert clock.away_s >= seconds and shop.orders == ["who=bob"]
    waits = [event for event in events if isinstance(event, ModelWaits)]
    assert len(waits) == len(clock.waits) and {wait.role for wait in waits} == {role}


class Broken(NamedTuple):
    role: Role
    nth: int
    """Number of the role's request at which the server goes down."""
    outcome: str
    steps: int
    """Steps committed before."""


BROKEN = [
    Broken("planner", 1, "broken", 0),
    Broken("policy", 1, "broken", 0),
    Broken("policy", 3, "broken", 2),
    Broken("rater", 2, "broken", 2),
    Broken("judge", 1, "unjudged", 3),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: f"{case.role}-{case.nth}")
async def test_an_episode_that_a_model_broke_is_resumed_and_counts_once(
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


@pytest.mark.parametrize("role", ["planner", "rater"])
async def test_an_outage_of_planner_or_rater_alone_is_waited_for_and_breaks_no_episode(
    role: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy needs no model. The rater is asked once more, at the end, and not at every step in between."""
    clock = OutageClock(math.inf)
    monkeypatch.setattr(transport, "CLOCK", clock)
    roles = Roles(role, 1)
    selection = TaskSelection("miniwob", ("login-user",), (0,))
    async with misbehaving_server(roles) as server:
        clock.watch(server)
        values = {"planner": "openai:m", "judge": "same", "k": 2, "policy": "oracle", "limits": {"max_seconds": 0}}
        settings = config(**values, base_url=server.openai_url)
        run = await run_suite(settings, selection, tmp_path)
    (result,) = run.episodes
    trace = trace_of(result)
    assert (result.outcome, result.resumable, result.error) == ("success", False, None)
    assert clock.slept >= transport.RETRY_WINDOW_S, "it was waited for first"
    noted = [(event.name, event.step) for event in trace.events if event.name.endswith("_error")]
    steps = len(trace.steps)
    expected = [("planner_error", 1)] if role == "planner" else [("rater_error", 2), ("rater_error", steps)]
    assert noted == [*expected, ("judge_error", steps)]
    assert (result.degraded.planner, result.degraded.rater) == ((1, 0) if role == "planner" else (0, 2))
    assert (
        read_outcomes(result) == {"success"} and compare(files := discover_traces([run.folder]), files).a.degraded == 1
    )


def test_a_plan_that_an_outage_prevented_is_asked_for_again_unless_a_step_was_taken() -> None:
    failed = event(1, "planner_error")
    assert [recover((HEADER, failed, *steps)).planned for steps in ((), ONE_STEP)] == [False, True]
    assert recover((HEADER, failed, *ONE_STEP, event(2, "rater_error"))).degraded == Degraded(planner=1, rater=1)


def read_outcomes(result: EpisodeResult) -> set[str]:
    """Outcome of a run's single episode in each reader. Training leaves a broken one out."""
    path = result.trace_path
    files = discover_traces([path.parent.parent])
    selection = select((file.read(), file.blobs) for file in files)
    footer = Recording.read(files[0]).footer
    (played,) = read_played(files).played
    ((surveyed, count),) = survey([path.parent.parent]).outcomes.items()
    compared = compare(files, files).a.outcomes
    assert (count, len(compared)) == (1, 1)
    assert footer is not None and surveyed is not None
    learned = (
        "success" if [episode.success for episode in selection.kept] == [True] else next(iter(selection.left_out)).value
    )
    return {episode_row(path).outcome, footer.outcome, played.outcome, surveyed, *compared, learned}


async def test_a_longer_outage_breaks_the_episode_again_and_it_stays_resumable(
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


async def test_the_episodes_seconds_end_the_window_and_the_outage_does_not_use_them_up(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = OutageClock(math.inf)
    monkeypatch.setattr(transport, "CLOCK", clock)
    async with misbehaving_server(Roles("policy", 3)) as server:
        clock.watch(server)
        broken = await ordered(server, shop, tmp_path, limits={"max_seconds": 60}, planner="none", judge="none")
        assert (broken.outcome, broken.ended_by, broken.resumable) == ("broken", "error", True)
        assert broken.error is not None and "would pass the deadline of" in broken.error and clock.slept < 60
        await server.come_back()
        (result,) = (await resume(tmp_path / broken.run_id)).episodes
    assert (result.answer, result.ended_by, shop.orders) == ("ordered", "stop", ["who=bob"])


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


def away_at(step: int, gone: list[Turn]) -> Callable[[Turn], Action]:
    """The solver, with a model failure at its first attempt at *step*."""

    def act(turn: Turn) -> Action:
        if turn.step == step and turn.task.seed == 0 and not gone:
            gone.append(turn)
            raise ModelBusy("HTTP 503: away")
        return miniwob_oracle(turn)

    return act


async def test_in_a_suite_only_episodes_that_a_model_broke_are_resumed(tmp_path: Path) -> None:
    """The page is rebuilt with the committed actions, and the trace has each of them once."""
    policy = scripted(away_at(3, []))
    selection = TaskSelection("miniwob", ("login-user",), (0, 1))
    run = await run_suite(config(), selection, tmp_path, run_id="r", policy=policy)
    assert [(episode.outcome, episode.resumable) for episode in run.episodes] == [("broken", True), ("success", False)]
    assert (run.complete, run.resumable) == (True, 1)
    before = run.episodes[1].trace_path.read_bytes()
    again = await resume(run.folder, policy=policy)
    assert [(episode.outcome, episode.totals.steps) for episode in again.episodes] == [("success", 3), ("success", 3)]
    assert again.resumable == 0 and run.episodes[1].trace_path.read_bytes() == before
    assert [step.intent.step for step in trace_of(again.episodes[0]).steps] == [1, 2, 3]
    rows = (run.folder / "results.jsonl").read_text().splitlines()
    assert [json.loads(row)["outcome"] for row in rows] == ["success", "success"]
    reported = await resume(run.folder, policy=policy)
    assert reported.episodes == again.episodes, "now it is only reported"


async def test_an_outdated_row_is_removed_while_its_episode_is_resumed(tmp_path: Path) -> None:
    gone: list[Turn] = []
    seen: list[list[str]] = []

    def act(turn: Turn) -> Action:
        if gone:
            seen.append((tmp_path / "r" / "results.jsonl").read_text().splitlines())
        return away_at(3, gone)(turn)

    selection = TaskSelection("miniwob", ("login-user",), (0,))
    await run_suite(config(), selection, tmp_path, run_id="r", policy=scripted(act))
    assert len((tmp_path / "r" / "results.jsonl").read_text().splitlines()) == 1
    await resume(tmp_path / "r", policy=scripted(act))
    assert seen == [[]]


async def test_a_world_that_cannot_be_brought_back_now_leaves_the_episode_resumable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = scripted(away_at(3, []))
    selection = TaskSelection("miniwob", ("login-user",), (0,))
    run = await run_suite(config(), selection, tmp_path, run_id="r", policy=policy)

    async def gone(*_: object) -> EpisodeStart:
        raise ResetFailed("the server is gone")

    with monkeypatch.context() as patched:
        patched.setattr(MiniwobEnvironment, "restore_state", gone)
        (lost,) = (await resume(run.folder, policy=policy)).episodes
    assert (lost.outcome, lost.resumable, lost.totals.steps) == ("broken", True, 2)
    assert lost.error == "ResetFailed: the server is gone"
    (result,) = (await resume(run.folder, policy=policy)).episodes
    assert (result.outcome, result.totals.steps) == ("success", 3)
    assert [event.name for event in trace_of(result).events] == ["not_resumed", "resumed"]


async def test_a_branch_that_cannot_be_walked_again_is_nothing_to_resume(tmp_path: Path) -> None:
    def lost(turn: Turn) -> Action:
        raise BranchLost("step 1 of r/e: no link is there")

    selection = TaskSelection("miniwob", ("click-test",), (0,))
    (episode,) = (await run_suite(config(), selection, tmp_path, policy=scripted(lost))).episodes
    assert (episode.outcome, episode.resumable) == ("broken", False)


def test_the_command_reports_missing_answers_and_exits_with_1(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "judge.json").write_text(json.dumps(["Hard to say."] * 3))
    (tmp_path / "policy.json").write_text(json.dumps(['exit(message="done")']))
    roles = ("--policy", f"scripted:{tmp_path}/policy.json", "--planner", "none")
    words = ("run", "Order", "--url", shop.url, *roles, "--judge", f"scripted:{tmp_path}/judge.json")
    done = mira(*words, "--out", str(tmp_path / "runs"))
    message = " ".join(done.stdout.split())
    assert done.returncode == 1 and "not JSON for Judgement" in message
    assert "1 of 1 episodes lack a model's answer or their page; continue with: mira resume" in message
    (trace,) = (tmp_path / "runs").glob("*/episodes/*.jsonl")
    assert "resume the run to continue from here" in mira("show", str(trace)).stdout
    verdict = {"reason": "It is done.", "unmet": [], "success": True}
    (tmp_path / "judge.json").write_text(json.dumps([verdict]))
    again = mira("resume", str(trace.parent.parent), "--json")
    (episode,) = json.loads(again.stdout)["episodes"]
    assert (again.returncode, episode["outcome"], episode["resumable"]) == (0, "success", False)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--retry-window", "300"], 2, "a model call ends after model_deadline_s = 120 s"),
        (["--retry-window", "300", "--model-deadline", "200"], 2, "model_deadline_s = 200 s"),
        (["--retry-window", "-1"], 2, "--retry-window"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_retry_window_that_no_call_has_time_for_is_refused(
    options: list[str], code: int, message: str, tmp_path: Path
) -> None:
    done = mira("run", "x", "--url", "http://127.0.0.1:9", "--out", str(tmp_path / "runs"), *options)
    assert (done.returncode, done.stdout) == (code, "") and message in done.stderr


def mira(*words: str) -> subprocess.CompletedProcess[str]:
    return run_mira(*words)
