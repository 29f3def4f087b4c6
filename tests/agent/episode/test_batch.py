"""Several actions in one answer, through the whole agent: trace, prompts, approval, limits, resume, rater."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.cli.show_trace import show_trace
from agent.config import RATIONALE_CHARS
from agent.episode.approval import ApprovalRequest
from agent.episode.batch import cut_words
from agent.episode.policy import ModelPolicy, Turn
from agent.inspection.report import write_report
from agent.run.components import open_components
from agent.run.runner import resume, run_open, run_task
from envs.core.action_languages import PROGRAM
from envs.core.actions import Action, Click, Goto, Stop, Type
from envs.core.trace_store import BlobStore, Trace, read_trace
from models.providers.scripted_model import ScriptedModel
from tests.agent.batching import ScriptedAnswers
from tests.agent.roles import ORDER, Roles
from tests.agent.shop import Shop, config
from tests.models.providers.servers import Received, misbehaving_server

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120), pytest.mark.usefixtures("shared_chromium")]

ORDERED = [Type(ref=1, text="bob"), Click(ref=2)]
THOUGHT = "The form is empty, so I fill in Kestrel7-Quartz and send it; then the order is done and I can stop."


async def played(
    shop: Shop, folder: Path, script: Callable[[Turn], Sequence[Action]], approver: Any = None, **settings: Any
) -> Trace:
    policy = ScriptedAnswers(script, PROGRAM)
    more: dict[str, Any] = {} if approver is None else {"approver": approver}
    run = await run_open(config(**settings), "Order", shop.url, folder, run_id="r", policy=policy, **more)
    return read_trace(run.folder / run.episodes[0].trace)


def in_turns(*answers: Sequence[Action]) -> Callable[[Turn], Sequence[Action]]:
    left = list(answers)
    return lambda turn: left.pop(0) if left else [Stop()]


def places(trace: Trace) -> list[tuple[int, int] | None]:
    batches = [intent.batch for intent, _ in trace.steps]
    return [None if batch is None else (batch.place, batch.size) for batch in batches]


def stops(trace: Trace) -> list[str]:
    return [event.detail.partition(":")[0] for event in trace.events if event.name == "batch_stopped"]


async def test_every_action_has_its_own_step_and_the_answer_is_kept_once(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PW", "Kestrel7-Quartz")
    first = f"# Thought: {THOUGHT}\n# Note: bob orders\n{ORDER[0]}\n# Element: the button\n{ORDER[1]}\n{ORDER[2]}"
    model = ScriptedModel([first, ORDER[2]])
    policy = ModelPolicy(model, PROGRAM, "full", max_actions=4, rationale_chars=60)
    run = await run_open(config(secrets=("PW=env:PW",)), "Order", shop.url, tmp_path, run_id="r", policy=policy)
    path = run.folder / run.episodes[0].trace
    trace = read_trace(path)
    assert shop.orders == ["who=bob"]
    assert places(trace) == [(1, 3), (2, 3), None]
    typed, clicked, stopped = (intent for intent, _ in trace.steps)
    assert [len(intent.calls) for intent in (typed, clicked, stopped)] == [1, 0, 1]
    assert (typed.notes, clicked.notes, clicked.raw) == (("Note: bob orders",), ("Element: the button",), "")
    assert typed.rationale == "The form is empty, so I fill in <secret>PW</secret> and send it" or (
        typed.rationale.startswith("The form is empty") and len(typed.rationale) <= 80
    )
    assert typed.seen.digest != clicked.seen.digest, "the page is observed before every action"
    assert stops(trace) == ["address"]
    system, prompt = (message.text for message in model.requests[1].messages)
    assert "up to 4 that fill in a form" in system and "at most 60 characters" in system
    assert "the last action of your answer was not done, because the address changed" in prompt
    assert 'type "bob" into textbox "Name"' in prompt and 'click button "Buy"' in prompt
    written = path.read_text() + "".join(str(file.read_bytes()) for file in (run.folder / "blobs").rglob("*.*"))
    assert "Kestrel7" not in written
    show_trace(trace, BlobStore(run.folder / "blobs"))
    shown = capsys.readouterr().out
    assert "thought: The form is empty" in shown.replace("\n", " ") and "action 2 of 3" in shown
    write_report([run.folder], out=tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text()
    assert "Thought: The form is empty" in report and "action 2 of 3" in report


async def test_the_rater_is_asked_once_a_batch_and_the_policy_once(shop: Shop, tmp_path: Path) -> None:
    class InBatches(Roles):
        def _text(self, role: Any, received: Received) -> str:
            if role != "policy":
                return super()._text(role, received)
            return "\n".join(ORDER[:2]) if self.asked["policy"] == 1 else ORDER[2]

    single, several = Roles(), InBatches()
    for name, roles in (("single", single), ("several", several)):
        shop.orders.clear()
        async with misbehaving_server(roles) as server:
            result = await run_task(
                "Order for bob",
                shop.url,
                policy="openai:m",
                planner="same",
                judge="same",
                k=2,
                thinking=0,
                confirm_stop="off",
                base_url=server.openai_url,
                out=tmp_path / name,
            )
        assert (result.outcome, shop.orders) == ("success", ["who=bob"])
    assert (single.asked["policy"], several.asked["policy"]) == (3, 2)
    assert single.asked["rater"] - several.asked["rater"] == 1


async def test_a_later_action_that_needs_approval_is_chosen_again(shop: Shop, tmp_path: Path) -> None:
    asked: list[ApprovalRequest] = []

    async def agrees(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    trace = await played(shop, tmp_path, in_turns(ORDERED, [Click(ref=2), Stop()]), agrees, approve=("submit",))
    assert places(trace) == [(1, 2), (1, 2), None] and stops(trace) == ["approval", "address"]
    assert [request.step for request in asked] == [2] and 'click button "Buy"' in asked[0].action
    assert shop.orders == ["who=bob"]


async def test_after_a_declined_action_the_rest_is_dropped(shop: Shop, tmp_path: Path) -> None:
    async def refuses(request: ApprovalRequest) -> bool:
        return False

    answer = [Click(ref=2), Type(ref=1, text="bob")]
    trace = await played(shop, tmp_path, in_turns(answer), refuses, approve=("submit",))
    assert (places(trace), stops(trace), shop.orders) == ([(1, 2), None], ["failed"], [])


@pytest.mark.parametrize(
    ("answer", "most", "sizes"),
    [
        ([Type(ref=1, text=name) for name in "abc"], 2, [(1, 2), (2, 2)]),
        ([Type(ref=1, text="a"), Goto(url="/about"), Click(ref=1)], 8, [(1, 2), (2, 2)]),
        ([Goto(url="/about"), Click(ref=1)], 8, [None]),
        (ORDERED, 1, [None]),
    ],
    ids=["too many", "a page is opened", "a page is opened first", "one a turn"],
)
async def test_what_may_not_be_batched_is_not_done_and_the_policy_sees_it(
    answer: Sequence[Action], most: int, sizes: list[tuple[int, int] | None], shop: Shop, tmp_path: Path
) -> None:
    problems: list[str] = []

    def script(turn: Turn) -> Sequence[Action]:
        problems.extend(turn.view.problems)
        return [Stop()] if turn.past else answer

    trace = await played(shop, tmp_path, script, max_actions_per_turn=most)
    assert places(trace) == [*sizes, None]
    assert problems == [cut_words(1)]


async def test_limits_count_the_actions(shop: Shop, tmp_path: Path) -> None:
    trace = await played(shop, tmp_path, in_turns(ORDERED), limits={"max_steps": 1})
    assert trace.footer is not None
    assert (trace.footer.ended_by, trace.footer.totals.steps, shop.orders) == ("max_steps", 1, [])


async def test_after_a_resume_the_policy_is_asked_again_with_what_was_not_done(shop: Shop, tmp_path: Path) -> None:
    trace = await played(shop, tmp_path, in_turns(ORDERED))
    lines = trace.path.read_bytes().splitlines(keepends=True)
    cut = next(i for i, line in enumerate(lines) if re.search(rb'"kind":\s*"commit"', line))
    trace.path.write_bytes(b"".join(lines[: cut + 1]))
    (tmp_path / "r" / "results.jsonl").unlink()
    turns: list[Turn] = []

    def script(turn: Turn) -> Sequence[Action]:
        turns.append(turn)
        return [Stop()]

    await resume(tmp_path / "r", policy=ScriptedAnswers(script, PROGRAM))
    (turn,) = turns
    assert (turn.step, turn.view.problems) == (
        2,
        ("your last answer had 2 actions, and 1 of them was sent; the page is shown as it is now",),
    )


@pytest.mark.parametrize(
    ("settings", "asks"),
    [
        ({"profile": "large"}, (8, RATIONALE_CHARS, None)),
        ({"profile": "compact"}, (1, 0, None)),
        ({"policy": "openai:gpt-5"}, (8, 0, None)),
        ({"policy": "openai:gpt-5", "policy_thinking": 0}, (8, RATIONALE_CHARS, 0)),
        ({"policy": "gemini:gemini-2.5-pro", "policy_thinking": "auto"}, (8, 0, "auto")),
        ({"policy": "gemini:gemini-2.5-flash-lite"}, (8, RATIONALE_CHARS, None)),
        ({"policy": "openai:m", "policy_thinking": "auto", "rationale": 50}, (8, 50, 8192)),
        ({"policy": "openai:m", "rationale": 0, "max_actions_per_turn": 1}, (1, 0, None)),
    ],
)
async def test_what_a_run_asks_of_its_policy(
    settings: Mapping[str, Any], asks: tuple[int, int, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("GEMINI_API_KEY", "test")
    script = tmp_path / "answers.json"
    script.write_text("[]")
    values = {"policy": f"scripted:{script}", "planner": "none", "judge": "none", **settings}
    async with open_components(config(**values), "open") as components:
        policy = components.policy
        assert isinstance(policy, ModelPolicy)
        assert (policy.max_actions, policy.rationale_chars, policy.thinking) == asks
