"""The MCP server's tools, called by the client of the SDK over both generations of the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

from agent.config import parse_config
from agent.mcp.server import ServerSettings, TaskTools, check_settings, make_server, start_origins
from envs.core.errors import BadInput
from models.base import ModelUnavailable
from tests.agent.shop import Shop
from tests.timing import HANG_S

PROTOCOLS = ("legacy", "2026-07-28")
"""The initialize handshake with requests of the server during a call, and the protocol without either."""
ORDER = [
    'do(action="Type", argument="Ines", element="1")',
    'do(action="Click", element="2")',
    'exit(message="ordered")',
]


class User:
    """The user of the client, who answers questions with *action*."""

    def __init__(self, action: str = "accept") -> None:
        self.action = action
        self.questions: list[str] = []
        self.progress: list[tuple[float, float | None, str | None]] = []
        self.asked = asyncio.Event()

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        del context
        self.questions.append(params.message)
        self.asked.set()
        if self.action == "never":
            await asyncio.Event().wait()
        return ElicitResult.model_validate({"action": self.action, "content": {}})

    async def watch(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append((progress, total, message))


def settings(folder: Path, shop: Shop, answers: list[str], **values: Any) -> ServerSettings:
    """Settings of a server whose policy's answers come from a file."""
    file = folder / "answers.json"
    file.write_text(json.dumps(answers), encoding="utf-8")
    config = parse_config({"policy": f"scripted:{file}", "planner": "none", "judge": "none", **values}, "test")
    return ServerSettings(config, start_origins([shop.url]), folder / "runs")


@asynccontextmanager
async def client_of(tools: TaskTools, protocol: str, user: User | None, **options: Any) -> AsyncGenerator[Client]:
    """A client in this process; without a *user* it shows no questions."""
    callback = None if user is None else user.answer
    async with Client(make_server(tools, "1"), mode=protocol, elicitation_callback=callback, **options) as client:
        yield client


def value(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def error(result: CallToolResult) -> str:
    assert result.is_error
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def order(shop: Shop) -> dict[str, Any]:
    return {"instruction": "Order for Ines", "url": shop.url}


@pytest.mark.browser
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_task_reports_its_steps_and_the_user_approves_its_order(
    tmp_path: Path, shop: Shop, protocol: str
) -> None:
    user, tools = User(), TaskTools(settings(tmp_path, shop, ORDER, approve=["submit"]))
    async with client_of(tools, protocol, user) as client:
        done = value(await client.call_tool("run_task", order(shop), progress_callback=user.watch))
    assert (done["outcome"], done["ended_by"], done["answer"]) == ("unjudged", "stop", "ordered")
    assert len(shop.orders) == 1 and "Ines" in shop.orders[0]
    (question,) = user.questions
    assert 'click button "Buy"' in question and shop.url in question
    assert [step.split(". ")[0] for step in done["steps"]] == ["1", "2", "3"]
    messages = [message for _, _, message in user.progress]
    assert messages[0] == f"run {done['run_id']} starts" and 'type "Ines"' in str(messages[1])
    assert {total for _, total, _ in user.progress} == {30.0}
    assert (tmp_path / "runs" / done["run_id"] / "run.json").is_file()


@pytest.mark.browser
@pytest.mark.parametrize(
    ("protocol", "action"),
    [(PROTOCOLS[0], "decline"), (PROTOCOLS[1], "cancel"), (PROTOCOLS[0], "no forms"), (PROTOCOLS[1], "no forms")],
)
async def test_an_order_that_the_user_does_not_approve_is_not_made(
    tmp_path: Path, shop: Shop, protocol: str, action: str
) -> None:
    user, tools = User(action), TaskTools(settings(tmp_path, shop, ORDER, approve=["submit"]))
    async with client_of(tools, protocol, None if action == "no forms" else user) as client:
        done = value(await client.call_tool("run_task", order(shop)))
    assert shop.orders == [] and done["declined"] == 1
    assert "declined" in done["steps"][1], done["steps"]


@pytest.mark.browser
async def test_a_question_without_an_answer_declines_the_action(tmp_path: Path, shop: Shop) -> None:
    user, tools = User("never"), TaskTools(settings(tmp_path, shop, ORDER, approve=["submit"]), answer_s=0.2)
    async with client_of(tools, "legacy", user) as client:
        done = value(await client.call_tool("run_task", order(shop)))
    assert shop.orders == [] and done["declined"] == 1


@pytest.mark.browser
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_cancelled_task_can_be_resumed(tmp_path: Path, shop: Shop, protocol: str) -> None:
    tools = TaskTools(settings(tmp_path, shop, ORDER))
    shop.slow_order.clear()
    async with client_of(tools, protocol, User()) as client:
        call = asyncio.create_task(client.call_tool("run_task", order(shop)))
        assert await asyncio.to_thread(shop.order_came.wait, HANG_S)
        call.cancel()
        shop.slow_order.set()
        await asyncio.wait({call})
        if tools.running:
            await asyncio.wait(tools.running)
        (run,) = (tmp_path / "runs").iterdir()
        done = value(await client.call_tool("resume_run", {"run_id": run.name}))
    assert done["answer"] == "ordered" and done["run_id"] == run.name
    assert len(shop.orders) == 1


@pytest.mark.browser
async def test_an_answer_has_the_form_that_the_client_asks_for(tmp_path: Path, shop: Shop) -> None:
    tools = TaskTools(settings(tmp_path, shop, ['exit(message="{\\"orders\\": 3}")']))
    schema = {"type": "object", "properties": {"orders": {"type": "integer"}}, "required": ["orders"]}
    async with client_of(tools, "legacy", None) as client:
        done = value(await client.call_tool("run_task", {**order(shop), "answer_schema": schema}))
        refused = await client.call_tool("run_task", {**order(shop), "answer_schema": {"type": "no type"}})
    assert json.loads(done["answer"]) == {"orders": 3}
    assert "answer_schema" in error(refused) or "schema" in error(refused)


@pytest.mark.parametrize(
    ("start", "url", "message"),
    [
        pytest.param(["https://shop.example"], "https://other.example/", "may not begin at https://other", id="other"),
        pytest.param(["*.shop.example"], "https://shop.example/", "may not begin at https://shop.ex", id="subdomains"),
        pytest.param(
            ["any"], "http://127.0.0.1:8000/", "or a private network: tasks may begin there only", id="machine"
        ),
        pytest.param(
            ["any"], "http://0x7f.1/", "or a private network: tasks may begin there only", id="another spelling"
        ),
        pytest.param(["any"], "http://localhost/", "or a private network: tasks may begin there only", id="localhost"),
        pytest.param(["any"], "http://10.0.0.7/", "or a private network: tasks may begin there only", id="private"),
        pytest.param(["any"], "file:///etc/passwd", "no http or https address", id="file"),
    ],
)
async def test_the_operator_decides_where_a_task_may_begin(
    tmp_path: Path, start: list[str], url: str, message: str
) -> None:
    tools = TaskTools(ServerSettings(parse_config({}, "test"), start_origins(start), tmp_path / "runs"))
    async with client_of(tools, "legacy", None) as client:
        refused = await client.call_tool("run_task", {"instruction": "Look", "url": url})
    assert message in error(refused)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("run_id", "message"), [("../secret", "must be letters"), ("20260101-120000-abcd", "no run")])
async def test_only_runs_of_the_server_are_resumed(tmp_path: Path, run_id: str, message: str) -> None:
    tools = TaskTools(ServerSettings(parse_config({}, "test"), start_origins(["any"]), tmp_path / "runs"))
    async with client_of(tools, "legacy", None) as client:
        assert message in error(await client.call_tool("resume_run", {"run_id": run_id}))


async def test_a_state_that_the_server_did_not_give_answers_nothing(tmp_path: Path) -> None:
    tools = TaskTools(ServerSettings(parse_config({}, "test"), start_origins(["any"]), tmp_path / "runs"))
    async with client_of(tools, "2026-07-28", None) as client:
        with pytest.raises(MCPError):
            await client.session.call_tool("run_task", {"instruction": "", "url": ""}, request_state="made up")


@pytest.mark.parametrize(
    ("start", "values", "message"),
    [
        pytest.param([], {}, "say where tasks may begin", id="no origin"),
        pytest.param(["subresources:*"], {}, "--start names the origins of pages", id="subresources"),
        pytest.param(["any"], {"secrets": ["PW=env:MIRA_PW"]}, "secret PW: say where it may be used", id="secret"),
        pytest.param(["any"], {"session": {"upload_folder": "."}}, "anywhere: name the origins", id="upload"),
        pytest.param(["any"], {"attempts": 2}, "one attempt", id="attempts"),
        pytest.param(["any"], {"policy": "openai:gpt-4o"}, "OPENAI_API_KEY", id="key"),
    ],
)
async def test_settings_that_every_task_would_refuse_are_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: list[str], values: dict[str, Any], message: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises((BadInput, ModelUnavailable), match=message):
        await check_settings(ServerSettings(parse_config(values, "test"), start_origins(start), tmp_path))


@pytest.mark.browser
async def test_the_command_serves_a_client_on_stdin_and_stdout(tmp_path: Path, shop: Shop) -> None:
    (tmp_path / "answers.json").write_text(json.dumps(ORDER), encoding="utf-8")
    words = ["mcp", "--start", shop.url, "--policy", "scripted:answers.json", "--planner", "none", "--judge", "none"]
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "agent.cli", *words, "--out", "runs"], cwd=tmp_path, env=dict(os.environ)
    )
    async with Client(stdio_client(server)) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["run_task", "resume_run"]
        done = value(await client.call_tool("run_task", order(shop)))
    assert done["answer"] == "ordered" and len(shop.orders) == 1


@pytest.mark.browser
async def test_a_signal_ends_the_command_and_its_run_can_be_resumed(tmp_path: Path, shop: Shop) -> None:
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(ORDER), encoding="utf-8")
    words = ["mcp", "--start", shop.url, "--policy", f"scripted:{file}", "--planner", "none", "--judge", "none"]
    shop.slow_order.clear()
    server = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "agent.cli", *words, "--out", "runs"],
        cwd=tmp_path,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdin is not None
    for message in (
        {
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}}
            | {"clientInfo": {"name": "test", "version": "1"}},
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "run_task", "arguments": order(shop)}},
    ):
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    assert await asyncio.to_thread(shop.order_came.wait, HANG_S)
    server.send_signal(signal.SIGTERM)
    shop.slow_order.set()
    assert await asyncio.wait_for(server.wait(), HANG_S) == 130
    (run,) = (tmp_path / "runs").iterdir()
    tools = TaskTools(settings(tmp_path, shop, ORDER))
    async with client_of(tools, "legacy", None) as client:
        done = value(await client.call_tool("resume_run", {"run_id": run.name}))
    assert done["answer"] == "ordered" and len(shop.orders) == 1
