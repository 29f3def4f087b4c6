"""Answers that must fit a schema of the user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.episode.structured_answers import AnswerSchema
from agent.run.runner import run_open
from envs.core.actions import Stop
from envs.core.errors import BadInput
from envs.core.trace_store import read_trace
from tests.agent.shop import Shop, config, scripted

SCHEMA = {
    "type": "object",
    "properties": {"price": {"type": "number"}},
    "required": ["price"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(None, "missing", id="none"),
        pytest.param("about 3", "not JSON", id="text"),
        pytest.param("{}", "'price' is a required property", id="missing-key"),
        pytest.param('{"price": "3"}', "at $.price", id="wrong-type"),
        pytest.param('{"price": 3, "x": 1}', "'x' was unexpected", id="extra"),
        pytest.param("[" * 100_000, "nested too deeply", id="deep"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(answer: str | None, says: str) -> None:
    problem = AnswerSchema(SCHEMA).problem(answer)
    assert problem is not None and says in problem and "\n" not in problem


def test_what_fits() -> None:
    assert AnswerSchema(SCHEMA).problem("N/A: nobody sells it") is None, "the task cannot be done"
    assert AnswerSchema(SCHEMA).problem('{"price": 3.5}') is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "is not JSON"),
        (b'{"type": "nothing"}', "is not a JSON Schema"),
        (b"\xff", "is not JSON"),
        (b'{"$ref": "#/nope"}', "has a reference to '/nope', which is not in the file"),
        (b'{"properties": {"a": {"$ref": "http://127.0.0.1:9/a.json"}}}', "'http://127.0.0.1:9/a.json'"),
        (b'{"items": {"$ref": "file:///etc/hosts"}}', "'file:///etc/hosts'"),
    ],
)
def test_a_bad_schema_file_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "schema.json"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=says):
        AnswerSchema.read(path)
    with pytest.raises(BadInput, match="cannot be read"):
        AnswerSchema.read(tmp_path / "none.json")


def test_a_reference_within_the_schema_is_followed() -> None:
    schema = AnswerSchema({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}})
    assert schema.problem('"x"') is None and schema.problem("3") is not None
    apart = AnswerSchema({"$ref": "http://y/", "$defs": {"a": {"$id": "http://y/", "type": "string"}}})
    assert apart.problem('"x"') is None and apart.problem("3") is not None


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_the_error_is_reported_and_the_policy_asked_again(shop: Shop, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA), encoding="utf-8")
    instructions: list[str] = []

    def answer(turn: object) -> Stop:
        view = turn.view  # type: ignore[attr-defined]
        instructions.append(view.instruction)
        return Stop(answer='{"price": 3}') if view.problems else Stop(answer="three")

    run = await run_open(
        config(answer_schema=str(path)), "Price?", shop.url, tmp_path / "runs", policy=scripted(answer)
    )
    assert run.episodes[0].answer == '{"price": 3}'
    assert '"required"' in instructions[0]
    trace = read_trace(run.folder / run.episodes[0].trace)
    assert [event.name for event in trace.events] == ["parse_error"]
    assert trace.header.instruction == "Price?"
