"""An answer of planner, rater or judge that cannot be parsed is an event in the trace; the episode continues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.config import RunConfig
from agent.inspection.compare import compare
from agent.run.discover_traces import discover_traces
from agent.run.environments import SuiteMaker
from agent.run.runner import resume, run_open, run_suite
from envs.browser.chromium import Chromium
from envs.core.actions import Click, Stop, Wait
from envs.core.settings import SessionSettings
from envs.core.tasks import Environment, Score, Suite, TaskSelection
from envs.core.trace import Degraded
from envs.core.trace_store import Trace, read_trace
from envs.suites.open_web import OpenTaskSuite
from envs.suites.webarena.evaluators import JudgeFailed
from judges.fuzzy import FuzzySettings, ModelFuzzyJudge
from models.providers.scripted_model import ScriptedModel
from tests.agent.roles import Role, Roles, ordered
from tests.agent.shop import Shop, config, scripted
from tests.models.providers.servers import misbehaving_server
from training.loop.evaluation.reading import read_played
from training.loop.evaluation.summary import evaluate

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]

HARD_TO_SAY = "That is hard to say."


def events(trace: Trace) -> list[tuple[str, int]]:
    return [(event.name, event.step) for event in trace.events]


def garbled(role: Role, *requests: int) -> dict[tuple[Role, int], str]:
    return {(role, number): HARD_TO_SAY for number in requests}


@pytest.mark.parametrize("overlap", [False, True], ids=["in turn", "overlapped"])
async def test_one_unreadable_rating_is_an_event_and_the_next_page_is_rated_again(
    overlap: bool, shop: Shop, tmp_path: Path
) -> None:
    roles = Roles(garbled=garbled("rater", 1, 2))
    async with misbehaving_server(roles) as server:
        result = await ordered(server, shop, tmp_path, thinking=0, overlap_reflect=overlap)
    trace = read_trace(result.trace_path)
    assert (result.outcome, result.error, shop.orders) == ("success", None, ["who=bob"])
    assert events(trace) == [("rater_error", 2)] and "ModelInvalidAnswer" in trace.events[0].detail
    assert roles.answered["rater"] == 2, "before the third step, and at the end"
    assert trace.footer is not None and trace.footer.degraded == result.degraded == Degraded(rater=1)
    (call,) = trace.events[0].calls
    assert (call.role, call.attempts) == ("rater", 2)
    assert trace.footer is not None and trace.footer.rating is not None and trace.footer.rating.source == "model"


async def test_the_next_page_is_rated_again_though_nothing_has_changed_on_it(shop: Shop, tmp_path: Path) -> None:
    """By itself the sparing budget asks nobody about a page that is the same as before."""
    (tmp_path / "planner.json").write_text(json.dumps([{"m1": "A zebra is seen", "m2": "A lion is seen"}]))
    nothing = NOTHING_YET | {"reason": "no animals"}
    (tmp_path / "rater.json").write_text(json.dumps([HARD_TO_SAY, HARD_TO_SAY, *[nothing] * 9]))
    planner, judge = (f"scripted:{tmp_path / name}.json" for name in ("planner", "rater"))
    settings = config(planner=planner, judge=judge, k=2, limits={"max_steps": 4})
    run = await run_open(settings, "x", shop.url, tmp_path, policy=scripted([Wait()] * 4))
    trace = read_trace(run.folder / run.episodes[0].trace)
    assert [event.name for event in trace.events][:1] == ["rater_error"]
    reasons = [step.intent.rating.reason for step in trace.steps]
    assert reasons[0] == "no action was taken yet"
    assert reasons[1].startswith("not rated: ModelInvalidAnswer") and reasons[2] == "no animals"
    assert reasons[3].startswith("nothing that bears")


@pytest.mark.parametrize("how", [HARD_TO_SAY, "", '{"milestones": {}}'], ids=["prose", "empty", "another schema"])
async def test_a_rater_that_is_never_readable_takes_nothing_from_the_judge(
    how: str, shop: Shop, tmp_path: Path
) -> None:
    async with misbehaving_server(Roles(garbled={("rater", n): how for n in range(1, 20)})) as server:
        result = await ordered(server, shop, tmp_path)
    assert (result.outcome, result.z) == ("success", (False, False))
    assert events(read_trace(result.trace_path)) == [("rater_error", n) for n in (2, 3, 3)]


async def test_one_unreadable_verdict_is_asked_for_again(shop: Shop, tmp_path: Path) -> None:
    roles = Roles(garbled=garbled("judge", 1))
    async with misbehaving_server(roles) as server:
        result = await ordered(server, shop, tmp_path)
    assert (result.outcome, result.resumable, roles.asked["judge"]) == ("success", False, 2)
    assert events(read_trace(result.trace_path)) == []


async def test_a_verdict_that_stays_unreadable_is_no_score_and_can_be_had_later(shop: Shop, tmp_path: Path) -> None:
    roles = Roles(garbled=garbled("judge", 1, 2))
    async with misbehaving_server(roles) as server:
        result = await ordered(server, shop, tmp_path)
        assert (result.outcome, result.reward, result.ended_by) == ("unjudged", None, "stop")
        assert result.resumable and result.error is not None and "not JSON for Judgement" in result.error
        assert events(read_trace(result.trace_path)) == [("judge_error", 3)]
        asked = roles.asked["policy"]
        (again,) = (await resume(tmp_path / result.run_id)).episodes
    assert (again.outcome, again.ended_by, again.answer, again.error) == ("success", "stop", "ordered", None)
    assert (roles.asked["policy"], shop.orders) == (asked, ["who=bob"]), "nothing but the verdict was asked for"
    assert again.totals.tokens_in == 100 * sum(roles.asked.values()), "what the first verdicts cost is counted"


async def test_a_verdict_that_is_missing_after_a_limit_does_not_lengthen_the_episode(
    shop: Shop, tmp_path: Path
) -> None:
    roles = Roles(garbled=garbled("judge", 1, 2))
    async with misbehaving_server(roles) as server:
        result = await ordered(server, shop, tmp_path, limits={"max_steps": 2})
        (again,) = (await resume(tmp_path / result.run_id)).episodes
    assert (result.outcome, again.outcome) == ("unjudged", "success")
    assert (again.ended_by, again.totals.steps, roles.asked["policy"]) == ("max_steps", 2, 2)


NOTHING_YET = {
    "milestones": {key: {"quote": "", "answer": "no"} for key in ("m1", "m2")},
    "current_complete": False,
    "next_milestone": "m1",
    "reason": "nothing is expanded",
}
PLAN = {"m1": "The section is expanded", "m2": "Submit is clicked"}


@pytest.mark.parametrize(
    ("plan", "ratings"),
    [
        pytest.param([HARD_TO_SAY, HARD_TO_SAY], [], id="planner"),
        pytest.param([PLAN], [HARD_TO_SAY, HARD_TO_SAY, NOTHING_YET, NOTHING_YET], id="rater"),
    ],
)
async def test_episodes_with_unreadable_answers_count_in_the_rates(
    plan: list[object], ratings: list[object], tmp_path: Path
) -> None:
    (tmp_path / "planner.json").write_text(json.dumps(plan))
    (tmp_path / "rater.json").write_text(json.dumps(ratings))
    planner, judge = (f"scripted:{tmp_path / name}.json" for name in ("planner", "rater"))
    settings = RunConfig(policy="oracle", planner=planner, judge=judge, k=2, thinking=0)
    run = await run_suite(settings, TaskSelection("miniwob", ("click-collapsible",), (0,)), tmp_path)
    files = discover_traces([run.folder])
    (played,) = read_played(files).played
    assert (played.judged, played.success) == (True, True)
    arm = compare(files, files).a
    assert (arm.outcomes, arm.success.value, arm.degraded) == ({"success": 1}, 1.0, 1)
    assert (played.degraded, evaluate(read_played(files)).degraded, run.degraded) == (True, 1, 1)


async def test_a_replan_that_cannot_be_read_keeps_the_plan(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "planner.json").write_text(json.dumps([{"m1": "Bob is named", "m2": "The order is sent"}] + ["hm"] * 9))
    settings = config(planner=f"scripted:{tmp_path / 'planner.json'}", judge="none", k=2, limits={"max_steps": 6})
    run = await run_open(settings, "x", shop.url, tmp_path, policy=scripted(lambda turn: Click(ref=99)))
    trace = read_trace(run.folder / run.episodes[0].trace)
    assert [len(plan.milestones) for plan in trace.plans] == [2]
    named = [event for event in trace.events if event.name == "planner_error"]
    assert 1 <= len(named) <= 3, "at most max_replans"
    assert {len(step.intent.rating.z) for step in trace.steps} == {2}
    assert run.episodes[0].ended_by == "max_steps"


def compared_by(judge: ModelFuzzyJudge, url: str) -> SuiteMaker:
    """An open task with a checker that compares the answer by meaning, as WebArena's do."""

    async def check(answer: str | None, environment: Environment) -> Score:
        try:
            met = await judge("What did bob order?", "a lamp", answer or "")
        except JudgeFailed as error:
            return Score(status="broken", reward=0.0, evidence=f"not checked: {error}")
        return Score(status="success" if met else "failure", reward=float(met), evidence="")

    def make(chromium: Chromium, folder: Path, settings: SessionSettings) -> Suite:
        task = "What did bob order?"
        return OpenTaskSuite(chromium, folder, settings, instruction=task, url=url, checker=check)

    return make


async def test_a_comparison_that_cannot_be_read_breaks_nothing_for_good(shop: Shop, tmp_path: Path) -> None:
    model = ScriptedModel([HARD_TO_SAY, HARD_TO_SAY, '{"reason": "Both say lamp.", "agrees": true}'])
    options: dict[str, Any] = {
        "policy": scripted([Stop(answer="lamp")]),
        "suite": compared_by(ModelFuzzyJudge(model), shop.url),
    }
    selection = TaskSelection("open", ("task",), (0,))
    run = await run_suite(config(planner="none", judge="none"), selection, tmp_path, **options)
    (broken,) = run.episodes
    assert (broken.outcome, broken.resumable, broken.ended_by) == ("broken", True, "stop")
    assert [event.name for event in read_trace(run.folder / broken.trace).events] == [], "the world is not to blame"
    (again,) = (await resume(run.folder, **options)).episodes
    assert (again.outcome, again.answer, again.totals.steps) == ("success", "lamp", 1)


async def test_a_comparison_has_the_time_of_the_episode_and_no_more(shop: Shop, tmp_path: Path) -> None:
    model = ScriptedModel(['{"reason": "Both say lamp.", "agrees": true}'])
    settings = config(planner="none", judge="none", limits={"max_seconds": 60})
    judge = ModelFuzzyJudge(model, FuzzySettings(deadline_s=120))
    options: dict[str, Any] = {"policy": scripted([Stop(answer="lamp")]), "suite": compared_by(judge, shop.url)}
    run = await run_suite(settings, TaskSelection("open", ("task",), (0,)), tmp_path, **options)
    assert run.episodes[0].outcome == "success"
    assert [request.deadline_s <= 60 for request in model.requests] == [True]
