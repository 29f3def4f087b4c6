"""Tools: the user's Python functions, which the policy calls between its actions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent import Tool, resume, run_open, run_task
from agent.episode.approval import ApprovalRequest
from agent.episode.policy import ModelPolicy
from agent.episode.prompts import Style
from agent.episode.tools import NO_TOOLS, Toolbox, as_tools
from agent.inspection.replay import replay_trace
from agent.profiles.profile import named
from agent.progress import Event, StepDone
from agent.results import RunResult
from envs.core.action_languages import LANGUAGES, PROGRAM, Language
from envs.core.action_languages.choices import PageChoices
from envs.core.action_languages.grammar import grammar
from envs.core.actions import Click, Reason, Status, Stop, Type, UseTool
from envs.core.errors import BadInput
from envs.core.trace_store import read_trace
from models.providers.scripted_model import ScriptedModel
from tests.agent.shop import Shop, config, scripted

CALL = 'do(action="Use Tool", tool="code", input="ann")'
BUY = [
    CALL,
    'do(action="Type", argument="4711-ann", element="1")',
    'do(action="Click", element="2")',
    'exit(message="done")',
]


def code(account: str) -> str:
    """Returns the one-time code of an account.

    The policy is not shown this paragraph."""
    if account == "bob":
        raise ValueError("bob has no account")
    return f"4711-{account}"


async def total(amounts: list[float], *, tax: float = 0.0) -> float:
    """Adds amounts."""
    return sum(amounts) + tax


def check() -> None:
    """Checks something."""


TOOLS = Toolbox(as_tools([code, total, check]))


def trace_in(folder: Path) -> Path:
    (path,) = folder.glob("*/episodes/*.jsonl")
    return path


def prompts_of(model: ScriptedModel) -> list[str]:
    return ["\n".join(message.text for message in request.messages) for request in model.requests]


def test_each_tool_is_described_in_one_line() -> None:
    assert dict(TOOLS.usages) == {
        "code": "code: Returns the one-time code of an account. Input: the account as text",
        "total": "total: Adds amounts. Input: JSON object of amounts (list), tax (number, optional)",
        "check": "check: Checks something. Input: none",
    }


@pytest.mark.parametrize(
    ("tool", "text", "status", "shown"),
    [
        pytest.param("code", "ann", Status.OK, "4711-ann", id="text"),
        pytest.param(
            "code", '{"account": "ann"}', Status.OK, '4711-{"account": "ann"}', id="text that looks like JSON"
        ),
        pytest.param("code", "bob", Status.FAILED, "the tool failed: bob has no account", id="error"),
        pytest.param("total", '{"amounts": [1, 2.5]}', Status.OK, "3.5", id="JSON, default"),
        pytest.param("total", '{"amounts": ["3"], "tax": 1}', Status.OK, "4.0", id="JSON, converted"),
        pytest.param("total", '{"amounts": "many"}', Status.FAILED, "amounts: Input should be a valid list", id="type"),
        pytest.param("total", "{}", Status.FAILED, "amounts: Missing required argument", id="missing"),
        pytest.param("total", "1, 2", Status.FAILED, "the input is no JSON", id="no JSON"),
        pytest.param("total", "[1]", Status.FAILED, "the input is not an object: write a JSON object of", id="list"),
        pytest.param("check", "", Status.OK, "", id="nothing"),
        pytest.param(
            "cod", "ann", Status.FAILED, "there is no tool 'cod'; tools are: code, total, check", id="unknown"
        ),
    ],
)
async def test_a_call_ends_with_a_result_or_with_a_reason(tool: str, text: str, status: Status, shown: str) -> None:
    result = await TOOLS.call(UseTool(tool=tool, input=text), lambda part: part)
    assert result.status is status
    assert shown in (result.output if status is Status.OK else result.message)


async def test_a_tool_that_takes_too_long_fails_and_long_results_are_cut() -> None:
    never = threading.Event()

    def slow() -> str:
        """Waits."""
        never.wait()
        return ""

    def long() -> str:
        """Talks."""
        return "x" * 5_000

    box = Toolbox([Tool(slow, timeout_s=0.05), Tool(long)])
    late = await box.call(UseTool(tool="slow"), lambda part: part)
    never.set()
    assert late.reason is Reason.TOOL_FAILED and late.message == "the tool failed: it took longer than 0.05 s"
    cut = (await box.call(UseTool(tool="long"), lambda part: part)).output
    assert len(cut) == 2_000 and cut.endswith("x…")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: Tool(lambda: 1), "a name is letters", id="no name"),
        pytest.param(lambda: Tool(lambda: 1, name="one"), "say what it does", id="no description"),
        pytest.param(lambda: Tool(print), "print: parameter 'args' has no name", id="any number"),
        pytest.param(lambda: Toolbox([Tool(code), Tool(code)]), "two tools are called code", id="twice"),
    ],
)
def test_a_function_that_is_no_tool_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        make()


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_only_tools_of_the_run_can_be_called(language: Language) -> None:
    assert language.parse(language.show(UseTool(tool="code", input='{"a": "b\n]"}'))).action == UseTool(
        tool="code", input='{"a": "b\n]"}'
    )
    rules = grammar(language, PageChoices(tools=("code", "total")))
    assert "code" in rules and "total" in rules
    assert "tool" not in grammar(language, PageChoices())
    assert "tool" not in language.reference.lower()


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
@pytest.mark.parametrize("profile", ["large", "small"])
async def test_the_policy_reads_what_a_tool_returns_and_types_it(shop: Shop, tmp_path: Path, profile: str) -> None:
    model, events = ScriptedModel(BUY), list[Event]()
    style: Style = "full"
    policy = ModelPolicy(model, PROGRAM, style, profile=named(profile))
    run = await run_open(
        config(), "Buy for ann", shop.url, tmp_path, (events.append,), policy=policy, tools=[code, total]
    )
    assert run.episodes[0].answer == "done" and shop.orders == ["who=4711-ann"]
    first, second, third, *_ = prompts_of(model)
    assert "code: Returns the one-time code of an account. Input: the account as text" in first
    assert 'do(action="Use Tool", tool=' in first and "not shown this paragraph" not in first
    assert "4711-ann" not in first and "4711-ann" in second.split("the tool returned")[1]
    log = {"large": 'use tool code with "ann"', "small": 'do(action="Use Tool", tool="code", input="ann"): done'}
    assert "the tool returned" not in third and log[profile] in third
    assert next(event.words for event in events if isinstance(event, StepDone)) == 'use tool code with "ann"'
    replayed = await replay_trace(trace_in(tmp_path), may_act=True)
    assert replayed.steps[0].note == "not sent: in the recording, it called a tool"
    assert [step.verdict for step in replayed.steps] == ["same"] * 4


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_without_tools_no_prompt_mentions_them(shop: Shop, tmp_path: Path) -> None:
    model = ScriptedModel(["exit()"])
    await run_open(config(), "Look", shop.url, tmp_path, policy=ModelPolicy(model, PROGRAM, "full"))
    assert "tool" not in prompts_of(model)[0].lower()


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
@pytest.mark.parametrize(("answer", "calls"), [(True, ["ann"]), (False, [])])
async def test_a_tool_can_need_approval(shop: Shop, tmp_path: Path, answer: bool, calls: Sequence[str]) -> None:
    called, asked = list[str](), list[tuple[tuple[str, ...], str]]()

    def order(item: str) -> str:
        """Orders an item."""
        called.append(item)
        return "ordered"

    async def person(request: ApprovalRequest) -> bool:
        asked.append((request.classes, request.action))
        return answer

    script = [UseTool(tool="order", input="ann"), Stop()]
    run = await run_open(
        config(approve=["tool"]), "x", shop.url, tmp_path, approver=person, policy=scripted(script), tools=[order]
    )
    assert asked == [(("tool",), 'do(action="Use Tool", tool="order", input="ann")')]
    assert called == calls and run.episodes[0].declined == 1 - len(calls)


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_a_secret_in_what_a_tool_returns_is_masked(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PW", "correct horse")

    def leak(what: str) -> str:
        """Says something."""
        if what == "fail":
            raise ValueError("correct horse, " + "x" * 250 + " correct horse")  # the second is cut
        return f"it is correct horse ({what})"

    model = ScriptedModel(
        [f'do(action="Use Tool", tool="leak", input="{what}")' for what in ("x", "fail")] + ["exit()"]
    )
    policy = ModelPolicy(model, PROGRAM, "full")
    await run_open(config(secrets=["PW=env:SHOP_PW"]), "x", shop.url, tmp_path, policy=policy, tools=[leak])
    prompts = prompts_of(model)
    assert "it is <secret>PW</secret> (x)" in prompts[1] and "the tool failed: <secret>PW</secret>, xxx" in prompts[2]
    assert not any("correct" in text for text in (*prompts, trace_in(tmp_path).read_text()))


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_a_resume_needs_the_tools_and_calls_none_again(shop: Shop, tmp_path: Path) -> None:
    called: list[str] = []

    def counted(account: str) -> str:
        """Returns a code."""
        called.append(account)
        return "4711"

    script = [UseTool(tool="counted", input="ann"), Type(ref=1, text="4711"), Click(ref=2), Stop(answer="done")]
    run: RunResult = await run_open(
        config(limits={"max_steps": 1}), "x", shop.url, tmp_path, policy=scripted(script), tools=[counted]
    )
    assert run.episodes[0].ended_by == "max_steps"
    more: dict[str, Any] = {"policy": scripted(script), "limits": {"max_steps": 9}}
    with pytest.raises(BadInput, match=r"there is no tool 'counted': pass it from Python \(tools=\[…\]\)"):
        await resume(run.folder, **more)
    again = await resume(run.folder, tools=[counted], **more)
    assert again.episodes[0].answer == "done" and called == ["ann"]
    assert read_trace(trace_in(tmp_path)).header.config["tools"] == ["counted"]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        pytest.param("embedded", "the policy embedded has compact prompts, which list no tools", id="compact"),
        pytest.param("anthropic-browser:claude", "acts with its vendor's tools", id="vendor"),
    ],
)
async def test_a_policy_whose_prompts_list_no_tools_is_refused(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, message: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    with pytest.raises(BadInput, match=message):
        await run_task("x", shop.url, policy=policy, out=tmp_path, tools=[code], judge="none", planner="none")
    assert not NO_TOOLS


@pytest.mark.browser
async def test_the_command_takes_tools_of_packages(shop: Shop, tmp_path: Path) -> None:
    from tests.agent.mira_process import run_mira

    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps(['do(action="Use Tool", tool="acme", input="ann")', "exit()"]))
    words = ["run", "Look", "--url", shop.url, "--policy", f"scripted:{answers}", "--out", "runs", "--json"]
    acme = Path(__file__).parents[2] / "data" / "acme"
    done = run_mira(*words, "--tools", "acme", cwd=tmp_path, packages=[acme])
    assert done.returncode == 0, done.stderr
    commit = read_trace(trace_in(tmp_path / "runs")).steps[0].commit
    assert commit is not None and commit.result.output == "4711-ann"
    unknown = run_mira(*words, "--tools", "acmee", cwd=tmp_path, packages=[acme])
    assert unknown.returncode == 2 and "there is no tool 'acmee'" in unknown.stderr and "acme" in unknown.stderr
