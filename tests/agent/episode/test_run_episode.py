"""Episodes in real Chromium, driven by script: outcomes, limits, errors, approval."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from agent.episode.approval import ApprovalRequest
from agent.episode.policy import REPEATS_NO_OP, ModelPolicy, Policy, Turn
from agent.progress import EpisodeEnded, EpisodeStarted, Event, PlanMade, RunEnded, RunStarted, StepDone
from agent.results import EpisodeResult
from agent.run.runner import run_open, run_suite, run_task
from envs.core.action_languages import PROGRAM
from envs.core.actions import UNAPPROVED, Action, Click, Reason, Scroll, Status, Stop, Type, Wait
from envs.core.errors import BadInput
from envs.core.tasks import TaskSelection
from envs.core.trace_store import RunLock, RunLocked, Trace, read_trace
from envs.security.allowlist_proxy import AllowlistProxy
from models.base import ChatReply, ChatRequest, ModelTimeout, Usage
from models.providers.scripted_model import Answer, ScriptedModel
from tests.agent.shop import TICKING, Shop, config, scripted

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]

ORDER = (Type(ref=1, text="bob"), Click(ref=2), Stop(answer="ordered"))


def trace_of(out: Path, result: EpisodeResult) -> Trace:
    return read_trace(out / result.run_id / result.trace)


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def model_policy(script: object) -> Policy:
    return ModelPolicy(ScriptedModel(script), PROGRAM, "full")  # pyright: ignore[reportArgumentType]


async def test_open_task_from_start_to_answer(shop: Shop, tmp_path: Path) -> None:
    events: list[Event] = []
    result = await run_task("Order for bob", shop.url, policy=scripted(ORDER), out=tmp_path, listeners=[events.append])
    assert shop.orders == ["who=bob"]
    assert (result.outcome, result.ended_by, result.answer) == ("unjudged", "stop", "ordered")
    trace = read_trace(result.trace_path)
    assert [step.intent.action for step in trace.steps] == list(ORDER)
    assert all(step.commit is not None and step.commit.result.ok for step in trace.steps)
    assert trace.header.instruction == "Order for bob"
    assert trace.footer is not None and trace.footer.totals.steps == 3
    kinds = [type(event) for event in events]
    assert kinds == [RunStarted, EpisodeStarted, PlanMade, StepDone, StepDone, StepDone, EpisodeEnded, RunEnded]
    rows = (tmp_path / result.run_id / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(row)["episode_id"] for row in rows] == [result.episode_id]
    assert "folder" not in json.loads(rows[0]), "a run that was moved would tell a wrong one"


@pytest.mark.parametrize("event_type", [EpisodeStarted, StepDone], ids=["before it acts", "after a step"])
async def test_a_run_that_is_stopped_closes_its_boundary(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event_type: type[Event]
) -> None:
    """Its port may become another program's, which no later run of this process may take for a boundary."""
    ports: list[int] = []
    start = AllowlistProxy.start

    async def started(boundary: AllowlistProxy) -> AllowlistProxy:
        await start(boundary)
        ports.append(int(boundary.server.rpartition(":")[2]))
        return boundary

    def stop(event: Event) -> None:
        if isinstance(event, event_type):
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(AllowlistProxy, "start", started)
    run = await run_open(config(), "Order for bob", shop.url, tmp_path, [stop], policy=scripted(ORDER))
    assert (run.complete, len(ports)) == (False, 1)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", ports[0])


async def test_suite_success_and_failure_with_milestones_and_category(tmp_path: Path) -> None:
    def play(turn: Turn) -> Action:
        if turn.task.seed == 1 and turn.step == 3:
            return Stop()
        return (Type(ref=1, text=turn.view.instruction.split('"')[1]), Type(ref=2, text="wrong"), Wait(), Stop())[
            min(turn.step, 4) - 1
        ]

    run = await run_suite(config(), TaskSelection("miniwob", ("login-user",), (0, 1)), tmp_path, policy=scripted(play))
    assert [episode.outcome for episode in run.episodes] == ["failure", "failure"]
    first = run.episodes[0]
    assert first.z == (True, False, False)
    assert first.failure is not None and first.failure.category == "stop_at_wrong_page"
    assert run.complete


@pytest.mark.parametrize("overlap", [False, True])
async def test_overlapped_reflection_counts_one_step_later_and_ends_alike(tmp_path: Path, overlap: bool) -> None:
    selection = TaskSelection("miniwob", ("login-user",), (0,))
    run = await run_suite(config(overlap_reflect=overlap), selection, tmp_path)
    ratings = [step.intent.rating.z for step in read_trace(run.folder / run.episodes[0].trace).steps]
    after_one, after_two = (True, False, False), (True, True, False)
    nothing = (False, False, False)
    assert ratings == ([nothing, nothing, after_one] if overlap else [nothing, after_one, after_two])
    assert run.episodes[0].z == (True, True, True)


async def test_a_limit_ends_the_episode_as_a_result(shop: Shop, tmp_path: Path) -> None:
    shop.front = TICKING
    script = [Scroll(direction="down"), Wait()] * 20
    run = await run_open(
        config(limits={"max_steps": 4}, planner="none"), "Look", shop.url, tmp_path, policy=scripted(script)
    )
    (result,) = run.episodes
    assert (result.ended_by, result.totals.steps, result.error) == ("max_steps", 4, None)


async def test_tokens_and_cost_are_limits_too(shop: Shop, tmp_path: Path) -> None:
    shop.front = TICKING

    async def answer(request: ChatRequest) -> Answer:
        usage = Usage(tokens_in=90, tokens_out=10, cost_usd=0.5)
        return ChatReply('do(action="Wait")', usage, "m", 0.0)

    for limits, ended_by, steps in (({"max_tokens": 250}, "max_tokens", 3), ({"max_cost_usd": 1.0}, "max_cost", 2)):
        run = await run_open(config(limits=limits), "Wait", shop.url, tmp_path, policy=model_policy(answer))
        assert (run.episodes[0].ended_by, run.episodes[0].totals.steps) == (ended_by, steps)


async def test_a_model_that_fails_breaks_the_episode_and_only_that(tmp_path: Path) -> None:
    async def answer(request: ChatRequest) -> Answer:
        text = request.messages[-1].text
        return ModelTimeout("no answer in 1 s") if '"ONE"' in text or "okay" in text else "exit()"

    selection = TaskSelection("miniwob", ("click-button", "click-test"), (0,))
    run = await run_suite(config(), selection, tmp_path, policy=model_policy(answer))
    broken, failed = run.episodes
    assert (broken.outcome, broken.ended_by) == ("broken", "error")
    assert broken.error == "ModelTimeout: no answer in 1 s"
    assert failed.outcome == "failure"
    footer = read_trace(run.folder / broken.trace).footer
    assert footer is not None and footer.judged_by == "none"


async def test_a_bug_in_a_policy_is_recorded_by_type(shop: Shop, tmp_path: Path) -> None:
    def bug(turn: Turn) -> Action:
        raise KeyError("oops")

    result = await run_task("x", shop.url, policy=scripted(bug), out=tmp_path)
    assert (result.outcome, result.error) == ("broken", "KeyError: 'oops'")


async def test_unparsable_answers_are_reported_repaired_and_bounded(shop: Shop, tmp_path: Path) -> None:
    shop.front = TICKING
    model = ScriptedModel(["I think so", 'do(action="Wait")', "hm", "hm", "hm", "hm", "exit()"])
    settings = config(limits={"max_parse_errors": 2})
    run = await run_open(settings, "x", shop.url, tmp_path, policy=ModelPolicy(model, PROGRAM, "full"))
    (result,) = run.episodes
    assert (result.ended_by, result.totals.steps) == ("error", 1)
    assert result.error is not None and "max_parse_errors" in result.error
    assert "no action" in model.requests[1].messages[-1].text
    assert "no action" in model.requests[4].messages[-1].text, "the next prompt names the error"
    trace = read_trace(run.folder / result.trace)
    assert [event.name for event in trace.events] == ["parse_error", "parse_error"]
    assert len(trace.steps[0].intent.calls) == 2 and trace.steps[0].intent.calls[0].error


async def test_answers_that_cannot_be_read_call_for_a_new_plan_once(shop: Shop, tmp_path: Path) -> None:
    plans = tmp_path / "plans.json"
    plans.write_text(json.dumps([{"m1": "Buy tea"}, {"m1": "Press the button"}]), encoding="utf-8")
    model = ScriptedModel([*["hm"] * 6, "exit()"])
    settings = config(planner=f"scripted:{plans}", k=1, judge="none", limits={"max_parse_errors": 4})
    run = await run_open(settings, "x", shop.url, tmp_path, policy=ModelPolicy(model, PROGRAM, "full"))
    (result,) = run.episodes
    trace = read_trace(run.folder / result.trace)
    assert [(record.cause, record.step) for record in trace.plans] == [("initial", 1), ("parse_error", 1)]
    assert result.ended_by == "stop"


async def test_an_action_that_changed_nothing_is_not_simply_done_again(shop: Shop, tmp_path: Path) -> None:
    """Hovering the same control twice leaves the page as it was; typing does not."""
    hover, typed = 'do(action="Hover", element="2")', 'do(action="Type", argument="bob", element="1")'
    model = ScriptedModel([typed, hover, hover, "exit()"])
    run = await run_open(
        config(), "x", shop.url, tmp_path, policy=ModelPolicy(model, PROGRAM, "full", retry_temperature=1)
    )
    (result,) = run.episodes
    assert (result.ended_by, result.totals.steps) == ("stop", 3)
    assert [request.temperature for request in model.requests] == [0.0, 0.0, 0.0, 1.0]
    calls = [[call.error for call in step.intent.calls] for step in read_trace(run.folder / result.trace).steps]
    assert calls == [[None], [None], [REPEATS_NO_OP, None]]


async def test_token_ids_and_prompts_reach_the_trace(shop: Shop, tmp_path: Path) -> None:
    reply = ChatReply(
        "exit()",
        Usage(5, 0, 0, 2, 0.0),
        "local",
        0.1,
        prompt_token_ids=(1, 2),
        completion_token_ids=(3,),
        logprobs=(-0.5,),
    )
    run = await run_open(config(), "Look here", shop.url, tmp_path, policy=model_policy([reply]))
    (call,) = read_trace(run.folder / run.episodes[0].trace).steps[0].intent.calls
    assert (call.prompt_token_ids, call.completion_token_ids, call.logprobs) == ((1, 2), (3,), (-0.5,))
    assert call.prompt_blob is not None
    assert "Look here" in (run.folder / "blobs" / call.prompt_blob).read_text(encoding="utf-8")


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_person_decides_about_submitting(shop: Shop, tmp_path: Path, allowed: bool) -> None:
    asked: list[ApprovalRequest] = []

    async def person(request: ApprovalRequest) -> bool:
        asked.append(request)
        return allowed

    settings = config(approve=("submit",))
    run = await run_open(settings, "Order", shop.url, tmp_path, policy=scripted(ORDER), approver=person)
    assert len(asked) == 1 and asked[0].step == 2 and asked[0].classes == ("submit",)
    assert asked[0].action == 'click button "Buy": do(action="Click", element="2")'
    assert len(shop.orders) == int(allowed)
    trace = read_trace(run.folder / run.episodes[0].trace)
    expected = ("approved" if allowed else "declined", asked[0].action)
    assert [(event.name, event.detail) for event in trace.events] == [expected]
    commit = trace.steps[1].commit
    assert commit is not None and commit.result.status is (Status.OK if allowed else Status.BLOCKED)


async def hangs(request: ChatRequest) -> str:
    await asyncio.Event().wait()
    return "YES"


@pytest.mark.parametrize("role", ["policy", "planner", "rater", "judge"])
async def test_no_model_call_outlasts_the_episodes_seconds(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    """A limit is a result, wherever it is met; what came until then is judged."""
    answers = {"slow": hangs, "plan": ['{"m1": "Look"}'], "policy": ["exit()"] * 9}

    def make_model(spec: str, **_: object) -> ScriptedModel:
        return ScriptedModel(answers[spec], spec=spec)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr("agent.run.components.make_model", make_model)
    settings = config(
        policy="slow" if role == "policy" else "policy",
        planner={"planner": "slow", "rater": "plan"}.get(role, "none"),
        judge="slow" if role in ("judge", "rater") else "none",
        k=1,
        limits={"max_seconds": 3},
    )
    run = await run_open(settings, "Look", shop.url, tmp_path)
    (episode,) = run.episodes
    assert (episode.outcome, episode.ended_by, episode.error) == ("unjudged", "max_seconds", None)
    assert episode.totals.seconds >= 3


async def test_no_download_slips_through_unasked(shop: Shop, tmp_path: Path) -> None:
    """Role and name do not show that this link starts a download: the session refuses it, then the person is asked."""
    asked: list[ApprovalRequest] = []

    async def person(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    shop.front = "<title>Shop</title><a href=/file>Prices</a>"
    script = [Click(ref=1), Wait(), Click(ref=1), Wait(), Stop()]
    settings = config(approve=("download",))
    run = await run_open(settings, "Get the prices", shop.url, tmp_path, policy=scripted(script), approver=person)
    assert [(request.step, request.classes) for request in asked] == [(3, ("download",))]
    steps = read_trace(run.folder / run.episodes[0].trace).steps
    results = [step.commit.result for step in steps if step.commit is not None]
    refused = next(result for result in results[:2] if result.message)
    assert refused.message == f"download 'prices.csv' {UNAPPROVED}"
    assert (refused.status, refused.reason) == (Status.BLOCKED, Reason.UNAPPROVED_DOWNLOAD)
    assert refused.unapproved_downloads == 1 and not results[0].downloads and not results[1].downloads
    assert [file.name for result in results[2:4] for file in result.downloads] == ["prices.csv"]
    assert names_in(run.folder / "downloads") == ["prices.csv"]


async def test_with_nobody_to_ask_it_is_declined_until_the_episode_ends(shop: Shop, tmp_path: Path) -> None:
    settings = config(approve=("submit",), limits={"max_replans": 0})
    run = await run_open(settings, "Order", shop.url, tmp_path, policy=scripted([Click(ref=2)] * 9))
    assert shop.orders == []
    assert (run.episodes[0].ended_by, run.episodes[0].totals.steps) == ("declined", 3)


async def test_lone_surrogates_of_a_page_are_stored_and_read_back(shop: Shop, tmp_path: Path) -> None:
    shop.front = "<title>T</title><p id=p></p><script>p.textContent='a\\ud800b'; document.title='x\\udfffy'</script>"
    result = await run_task("Read", shop.url, policy=scripted([Wait(), Stop(answer="a\ud800b")]), out=tmp_path)
    seen = trace_of(tmp_path, result).steps[0].intent.seen
    text = (tmp_path / result.run_id / "blobs" / seen.text_blob).read_text(encoding="utf-8")
    assert "a\ufffdb" in text
    assert seen.title == "x\ufffdy"
    assert result.outcome == "unjudged"


@pytest.mark.parametrize(
    ("name", "says"),
    [("click-buton", "did you mean 'click-button'"), ("zzzz", "has no task 'zzzz'")],
)
async def test_unknown_task_leaves_nothing_behind(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        await run_suite(config(), TaskSelection("miniwob", (name,), (0,)), tmp_path)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("names", [("a b", "a_b"), ("x" * 80 + "1", "x" * 80 + "2")], ids=["characters", "length"])
async def test_two_tasks_never_share_a_trace(tmp_path: Path, names: tuple[str, str]) -> None:
    with pytest.raises(BadInput, match="have the same episode id"):
        await run_suite(config(), TaskSelection("miniwob", names, (0,)), tmp_path, policy=scripted([Stop()]))
    assert names_in(tmp_path) == []


async def test_unreachable_address_leaves_nothing_behind(tmp_path: Path) -> None:
    gone = Shop()
    gone.close()
    with pytest.raises(BadInput, match="could not be opened"):
        await run_task("x", gone.url, policy=scripted(ORDER), out=tmp_path)
    assert names_in(tmp_path) == []


async def test_two_owners_of_one_run(shop: Shop, tmp_path: Path) -> None:
    run = await run_open(config(), "x", shop.url, tmp_path, policy=scripted([Stop()]))
    with RunLock(run.folder), pytest.raises(RunLocked):
        from agent.run.runner import resume

        await resume(run.folder, policy=scripted([Stop()]))


async def test_a_second_run_of_the_same_id_leaves_the_first_one_alone(shop: Shop, tmp_path: Path) -> None:
    """The other process has made the folder, and has not written `run.json` yet."""
    folder = tmp_path / "r"
    (folder / "episodes").mkdir(parents=True)
    with RunLock(folder):
        with pytest.raises(RunLocked):
            await run_open(config(), "x", shop.url, tmp_path, run_id="r", policy=scripted([Stop()]))
        assert sorted(names_in(folder)) == ["blobs", "downloads", "episodes", "lease"]
    run = await run_open(config(), "x", shop.url, tmp_path, run_id="r", policy=scripted([Stop()]))
    assert run.complete


async def test_a_run_that_is_cancelled_leaves_a_resumable_trace(shop: Shop, tmp_path: Path) -> None:
    shop.slow_order.clear()
    running = asyncio.create_task(run_open(config(), "x", shop.url, tmp_path, run_id="r", policy=scripted(ORDER)))
    assert await asyncio.to_thread(shop.order_came.wait, 30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    trace = read_trace(tmp_path / "r" / "episodes" / "task-0-a1.jsonl")
    assert trace.footer is None
    assert trace.steps[-1].commit is None
