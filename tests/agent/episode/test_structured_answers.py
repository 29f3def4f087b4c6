"""Answers that must fit a schema of the user's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from agent.config import RunConfig, parse_config
from agent.episode.policy import ActionProposal, Turn
from agent.episode.structured_answers import AnswerSchema
from agent.run.runner import run_open
from envs.core.action_languages import Parsed
from envs.core.actions import Stop, Type
from envs.core.errors import BadInput
from envs.core.trace_store import read_trace
from tests.agent.shop import Shop, config, scripted

SCHEMA = {
    "type": "object",
    "properties": {"price": {"type": "number"}},
    "required": ["price"],
    "additionalProperties": False,
}


class Price(BaseModel):
    """The same schema as a pydantic model."""

    model_config = ConfigDict(extra="forbid")

    price: float


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
        (b'{"$ref": "#/nope"}', "has a reference to '/nope', which it does not hold"),
        (b'{"properties": {"a": {"$ref": "http://127.0.0.1:9/a.json"}}}', "'http://127.0.0.1:9/a.json'"),
        (b'{"items": {"$ref": "file:///etc/hosts"}}', "'file:///etc/hosts'"),
    ],
)
def test_a_bad_schema_file_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "schema.json"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=says):
        AnswerSchema.of(path)
    with pytest.raises(BadInput, match="cannot be read"):
        AnswerSchema.of(tmp_path / "none.json")


def test_a_bad_schema_without_a_file_is_one_line() -> None:
    with pytest.raises(BadInput, match="the answer schema is not a JSON Schema: 'nothing' is not valid"):
        AnswerSchema.of({"type": "nothing"})
    with pytest.raises(BadInput, match="the answer schema has a reference to '/nope', which it does not hold"):
        AnswerSchema.of({"$ref": "#/nope"})


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        pytest.param("a.json", "a.json", id="file"),
        pytest.param(Path("a.json"), "a.json", id="path"),
        pytest.param(json.dumps(SCHEMA), SCHEMA, id="text"),
        pytest.param(SCHEMA | {"required": ("price",)}, SCHEMA, id="dict"),
        pytest.param(Price, Price.model_json_schema(), id="model"),
        pytest.param(None, None, id="none"),
    ],
)
def test_a_run_stores_a_schema_as_json_values_and_reads_it_back(given: Any, stored: Any) -> None:
    config = parse_config({"answer_schema": given})
    assert config.resolved()["answer_schema"] == stored
    assert RunConfig.model_validate_json(json.dumps(config.resolved())) == config


class Odd(BaseModel):
    """No JSON Schema describes it."""

    call: Callable[[], int]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param('{"type": ', "this is no JSON Schema: Expecting value", id="broken text"),
        pytest.param({"a": {1}}, "this is no JSON Schema: Object of type set", id="no JSON value"),
        pytest.param({"maximum": float("nan")}, "this is no JSON Schema: Out of range float", id="not a number"),
        pytest.param('{"a":' * 100_000, "this is no JSON Schema: ", id="deep"),
        pytest.param(Odd, "this is no JSON Schema: ", id="model without a schema"),
        pytest.param(5, "give a file, a JSON Schema as a dict or as JSON text {…}, or a pydantic model", id="number"),
        pytest.param(" ", "this names nothing", id="empty"),
    ],
)
def test_what_is_no_schema_is_refused_by_key(given: Any, says: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_config({"answer_schema": given})
    assert f"key 'answer_schema': {says}" in str(error.value) and "\n" not in str(error.value)


def test_a_reference_within_the_schema_is_followed() -> None:
    schema = AnswerSchema({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}})
    assert schema.problem('"x"') is None and schema.problem("3") is not None
    apart = AnswerSchema({"$ref": "http://y/", "$defs": {"a": {"$id": "http://y/", "type": "string"}}})
    assert apart.problem('"x"') is None and apart.problem("3") is not None


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
@pytest.mark.parametrize("form", ["file", "text", "dict", "model"])
async def test_the_error_is_reported_and_the_policy_asked_again(shop: Shop, tmp_path: Path, form: str) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA), encoding="utf-8")
    schema = {"file": str(path), "text": json.dumps(SCHEMA), "dict": SCHEMA, "model": Price}[form]
    instructions: list[str] = []

    def answer(turn: object) -> Stop:
        view = turn.view  # type: ignore[attr-defined]
        instructions.append(view.instruction)
        return Stop(answer='{"price": 3}') if view.problems else Stop(answer="three")

    run = await run_open(config(answer_schema=schema), "Price?", shop.url, tmp_path / "runs", policy=scripted(answer))
    assert run.episodes[0].answer == '{"price": 3}'
    assert '"required"' in instructions[0]
    trace = read_trace(run.folder / run.episodes[0].trace)
    assert [event.name for event in trace.events] == ["parse_error"]
    assert trace.header.instruction == "Price?"


class FormThenStop:
    """Fills in the form and stops in one answer; its first price is no JSON."""

    spec = "scripted"

    def __init__(self) -> None:
        self.problems: list[tuple[str, ...]] = []

    async def propose(self, turn: Turn) -> ActionProposal:
        self.problems.append(turn.view.problems)
        answer = '{"price": 3}' if turn.view.problems else "three"
        return ActionProposal(Type(ref=1, text="bob"), raw="", then=(Parsed(Stop(answer=answer)),))


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_an_answer_after_further_actions_is_checked_before_any_of_them(shop: Shop, tmp_path: Path) -> None:
    policy = FormThenStop()
    run = await run_open(config(answer_schema=SCHEMA), "Price?", shop.url, tmp_path, policy=policy)
    (episode,) = run.episodes
    trace = read_trace(run.folder / episode.trace)
    assert episode.answer == '{"price": 3}'
    assert [step.intent.action.kind for step in trace.steps] == ["type", "stop"]
    assert [event.name for event in trace.events] == ["parse_error"]
    assert len(policy.problems) == 2 and "is not JSON" in policy.problems[1][0]
