"""Whole runs on model servers that misbehave, in both protocols: retried to success, or a typed error in the trace."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from agent.config import RunConfig
from agent.results import EpisodeResult
from agent.run.runner import run_suite, run_task
from envs.core.tasks import TaskSelection
from envs.core.trace_store import read_trace
from models import transport
from tests.agent.shop import Shop
from tests.models.providers.servers import (
    Act,
    Body,
    Close,
    CutOff,
    Drip,
    Hang,
    Received,
    Reply,
    Status,
    misbehaving_server,
)
from tests.timing import HANG_S, Bound, LoopClock

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]

STOP = Reply('exit(message="ordered")')
HUNG_S, DEADLINE_S = 3.0, 60.0
"""Deadline of a model call: where the server hangs, and elsewhere."""
STARTUP_S = 30.0
"""Of Chromium, on a busy machine; the model's own deadline comes on top."""

TROUBLE: list[tuple[str, list[Act], str | None]] = [
    ("busy, then well", [Status(429, retry_after="0"), STOP], None),
    ("error, then well", [Status(500), Status(503), STOP], None),
    ("cut off, then well", [CutOff(), STOP], None),
    ("closed, then well", [Close(), STOP], None),
    ("no JSON, then well", [Body("<html>gateway</html>"), STOP], None),
    ("no action, then well", [Reply("I think I should click."), STOP], None),
    ("too long, then well", [Reply("do(", finish="length"), STOP], None),
    ("says nothing, then well", [Reply(""), STOP], None),
    ("busy for too long", [Status(429, retry_after="3600")], "ModelBusy"),
    ("hangs", [Hang()] * 9, "ModelTimeout"),
    ("drips", [Drip()] * 9, "ModelTimeout"),
    ("unknown model", [Status(404)], "ModelRejected"),
    ("refused", [Reply(refusal="no")], "ModelRejected"),
    ("never an action", [Reply("no")] * 9, "max_parse_errors"),
]


async def run(protocol: str, acts: list[Act], shop: Shop, out: Path, monkeypatch: pytest.MonkeyPatch) -> EpisodeResult:
    async with misbehaving_server(acts) as server:
        monkeypatch.setenv("GEMINI_API_KEY", "a-key")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.gemini_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.anthropic_url)
        return await run_task(
            "Order for bob",
            shop.url,
            policy=POLICY[protocol],
            planner="none",
            judge="none",
            out=out,
            base_url=server.openai_url if protocol == "openai" else None,
            model_deadline_s=HUNG_S if isinstance(acts[0], Hang | Drip) else DEADLINE_S,
        )


POLICY = {"openai": "openai:m", "gemini": "gemini:gemini-2.5-flash", "anthropic": "anthropic:claude-sonnet-4-5"}
BY_GEMINI = {"busy, then well", "hangs", "unknown model", "never an action"}
BY_ANTHROPIC = {"too long, then well", "says nothing, then well"}
"""Cases that are played by other protocols too. tests/models/providers/test_misbehaving_servers.py calls all in all."""
PLAYED = [
    pytest.param(protocol, acts, error, id=f"{name}-{protocol}")
    for name, acts, error in TROUBLE
    for protocol, names in (("openai", {name}), ("gemini", BY_GEMINI), ("anthropic", BY_ANTHROPIC))
    if name in names
]


@pytest.mark.parametrize(("protocol", "acts", "error"), PLAYED)
async def test_a_run_ends_well_or_with_a_typed_error(  # noqa: PLR0917  # a case and its fixtures
    protocol: str, acts: list[Act], error: str | None, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Bound(HUNG_S if error == "ModelTimeout" else DEADLINE_S, STARTUP_S):
        result = await run(protocol, acts, shop, tmp_path, monkeypatch)
    trace = read_trace(tmp_path / result.run_id / result.trace)
    assert trace.footer is not None and not trace.torn
    if error is None:
        assert (result.outcome, result.answer) == ("unjudged", "ordered")
    else:
        assert result.error is not None and error in result.error
        assert result.outcome == ("unjudged" if error == "max_parse_errors" else "broken")
    assert shop.orders == []


async def test_a_server_that_hangs_once_does_not_end_the_episodes_time(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Symptom: without retries, an episode that still had time ended by `max_seconds` and was not resumable."""
    clock = LoopClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.now)
    monkeypatch.setattr(transport, "CLOCK", clock)
    async with misbehaving_server([Hang()], clock) as server:
        result = await run_task(
            "Order for bob",
            shop.url,
            policy="openai:m",
            planner="none",
            judge="none",
            out=tmp_path,
            base_url=server.openai_url,
            retry_window_s=0,
            model_deadline_s=2 * HANG_S,
            limits={"max_seconds": HANG_S},
        )
        assert len(server.requests) == 1
    assert (result.outcome, result.ended_by, result.resumable) == ("broken", "error", True)
    assert result.error is not None and result.error.startswith("ModelTimeout: no whole answer within ")


async def test_a_plan_that_cannot_be_read_is_an_event_and_is_paid_for(shop: Shop, tmp_path: Path) -> None:
    """The episode continues without a plan, and its trace says what that cost."""
    async with misbehaving_server([Reply("no plan"), Reply("no plan"), STOP]) as server:
        result = await run_task(
            "Order for bob",
            shop.url,
            policy="openai:m",
            planner="same",
            judge="none",
            out=tmp_path,
            base_url=server.openai_url,
        )
    trace = read_trace(tmp_path / result.run_id / result.trace)
    assert (result.outcome, result.answer, result.error) == ("unjudged", "ordered", None)
    (event,) = trace.events
    assert (event.name, event.step) == ("planner_error", 1) and "ModelInvalidAnswer" in event.detail
    assert [(call.role, call.attempts, call.tokens_in) for call in event.calls] == [("planner", 2, 200)]
    assert [plan.milestones for plan in trace.plans] == [()]
    assert result.totals.tokens_in == 300 and len(server.requests) == 3


def act_in_every_role(received: Received) -> Act:
    """One server as planner, AutoRater, policy and judge, identified by schema and static prompt."""
    asked = received.body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
    if "m1" in asked:
        return Reply(json.dumps({"m1": "The field Name holds bob", "m2": "The order is sent"}))
    if "milestones" in asked:
        rating = {"quote": "", "answer": "no"}
        ratings = dict.fromkeys(_open_milestones(received), rating)
        reply = {"milestones": ratings, "current_complete": False, "next_milestone": "m1", "reason": "nothing is typed"}
        return Reply(json.dumps(reply))
    if "unmet" in asked:
        return Reply(json.dumps({"reason": "nothing was ordered.", "unmet": ["an order"], "success": False}))
    return STOP


def _open_milestones(received: Received) -> list[str]:
    schema = received.body["response_format"]["json_schema"]["schema"]
    inner = schema["properties"]["milestones"]
    if "$ref" in inner:
        inner = schema["$defs"][inner["$ref"].rsplit("/", 1)[1]]
    return list(inner["properties"])


async def test_planner_rater_and_judge_by_api(shop: Shop, tmp_path: Path) -> None:
    async with misbehaving_server(act_in_every_role) as server:
        result = await run_task(
            "Order for bob",
            shop.url,
            policy="openai:m",
            planner="openai:m",
            judge="same",
            out=tmp_path,
            base_url=server.openai_url,
            k=2,
        )
    trace = read_trace(tmp_path / result.run_id / result.trace)
    assert [m.text for m in trace.plans[0].milestones] == ["The field Name holds bob", "The order is sent"]
    assert trace.footer is not None
    assert (result.outcome, trace.footer.judged_by) == ("failure", "judge")
    assert trace.footer.verdict == "NO: nothing was ordered. Not met: an order"
    assert result.z == (False, False)
    assert result.failure is not None and result.failure.category == "no_reasonable_attempt"
    assert result.totals.model_calls == len(server.requests) >= 3
    assert result.totals.tokens_in == 100 * len(server.requests)


NOTHING_YET = {
    "milestones": {key: {"quote": "", "answer": "no"} for key in ("m1", "m2")},
    "current_complete": False,
    "next_milestone": "m1",
    "reason": "nothing is expanded",
}


@pytest.mark.parametrize("ratings", [0, 1])
async def test_a_rater_that_fails_takes_no_verdict_from_the_checker(ratings: int, tmp_path: Path) -> None:
    (tmp_path / "rater.json").write_text(json.dumps([NOTHING_YET] * ratings))
    (tmp_path / "planner.json").write_text(json.dumps([{"m1": "The section is expanded", "m2": "Submit is clicked"}]))
    planner, judge = (f"scripted:{tmp_path / name}.json" for name in ("planner", "rater"))
    config = RunConfig(policy="oracle", planner=planner, judge=judge, k=2)
    done = await run_suite(config, TaskSelection("miniwob", ("click-collapsible",), (0,)), tmp_path)
    (result,) = done.episodes
    trace = read_trace(done.folder / result.trace)
    assert (result.outcome, len(trace.steps)) == ("success", 2), "two steps, rated before the second and at the end"
    noted = [(event.step, event.detail.partition(":")[0]) for event in trace.events if event.name == "rater_error"]
    assert noted == [(2, "ModelUnavailable")] * (ratings == 0) + [(2, "ModelUnavailable")]
    assert (result.degraded.rater, done.degraded) == (len(noted), 1)
