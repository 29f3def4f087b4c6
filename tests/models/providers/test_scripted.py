from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from models.base import (
    ChatReply,
    ChatRequest,
    Message,
    ModelBusy,
    ModelInvalidAnswer,
    ModelTimeout,
    ModelUnavailable,
    Usage,
)
from models.providers.scripted_model import ScriptedModel


class Plan(BaseModel):
    steps: list[str]


def asked(text: str = "go", schema: type[BaseModel] | None = None, deadline_s: float = 5.0) -> ChatRequest:
    return ChatRequest((Message("user", text),), schema=schema, deadline_s=deadline_s)


async def test_answers_in_order_and_records_requests() -> None:
    model = ScriptedModel(["one", "two"])
    replies = [await model.complete(asked(text)) for text in ("a", "b")]
    assert [reply.text for reply in replies] == ["one", "two"]
    assert [request.messages[0].text for request in model.requests] == ["a", "b"]
    assert replies[0].usage == Usage(cost_usd=0.0)
    with pytest.raises(ModelUnavailable, match="only 2 answers"):
        await model.complete(asked())


async def test_a_function_answers() -> None:
    async def echo(request: ChatRequest) -> str:
        return request.messages[-1].text.upper()

    assert (await ScriptedModel(echo).complete(asked("hello"))).text == "HELLO"


async def test_scripted_errors_and_whole_replies() -> None:
    whole = ChatReply(
        "text", Usage(tokens_in=9), "m", 1.0, prompt_token_ids=(1,), completion_token_ids=(2,), logprobs=(-0.5,)
    )
    model = ScriptedModel([ModelBusy("429"), whole])
    with pytest.raises(ModelBusy, match="429"):
        await model.complete(asked())
    reply = await model.complete(asked())
    assert (reply.usage.tokens_in, reply.completion_token_ids, reply.logprobs) == (9, (2,), (-0.5,))


async def test_schema_repair_and_deadline_are_those_of_a_server() -> None:
    model = ScriptedModel(["no", '{"steps": ["a"]}', "no", "no"])
    reply = await model.complete(asked(schema=Plan))
    assert (reply.parsed, reply.attempts) == (Plan(steps=["a"]), 2)
    with pytest.raises(ModelInvalidAnswer):
        await model.complete(asked(schema=Plan))

    async def never(_: ChatRequest) -> str:
        await asyncio.Event().wait()
        return ""

    with pytest.raises(ModelTimeout):
        await ScriptedModel(never).complete(asked(deadline_s=0.05))


async def test_a_file_of_answers_objects_and_rules(tmp_path: Path) -> None:
    script = tmp_path / "answers.json"
    script.write_text(json.dumps(["first", {"steps": ["a"]}, {"when": "login", "answer": {"steps": []}}]))
    model = ScriptedModel.from_file(script)
    assert model.spec == f"scripted:{script}"
    texts = [(await model.complete(asked(text))).text for text in ("x", "login now", "y", "login again")]
    assert texts == ["first", '{"steps": []}', '{"steps": ["a"]}', '{"steps": []}']


async def test_a_jsonl_file_has_an_entry_a_line(tmp_path: Path) -> None:
    script = tmp_path / "answers.jsonl"
    script.write_text('"click [3]"\n\n{"steps": ["é"]}\n', encoding="utf-8")
    model = ScriptedModel.from_file(script)
    assert (await model.complete(asked())).text == "click [3]"
    assert (await model.complete(asked(schema=Plan))).parsed == Plan(steps=["é"])


@pytest.mark.parametrize(
    ("text", "says"), [("{", "is not JSON"), ('{"a": 1}', "must be a JSON list"), ("", "is not JSON")]
)
def test_a_file_that_is_no_script(tmp_path: Path, text: str, says: str) -> None:
    script = tmp_path / "answers.json"
    script.write_text(text)
    with pytest.raises(ModelUnavailable, match=says):
        ScriptedModel.from_file(script)


def test_a_script_that_is_no_text(tmp_path: Path) -> None:
    script = tmp_path / "answers.json"
    script.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelUnavailable):
        ScriptedModel.from_file(script)


async def test_an_answer_of_a_script_may_hold_a_unicode_line_separator(tmp_path: Path) -> None:
    script = tmp_path / "answers.jsonl"
    script.write_text("".join(f'"{text}"\n\n' for text in ("a\u2028b", "c\u0085d")), encoding="utf-8")
    model = ScriptedModel.from_file(script)
    assert [(await model.complete(asked())).text for _ in range(2)] == ["a\u2028b", "c\u0085d"]
