from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from models.base import ChatRequest, Message, ModelInvalidAnswer
from models.providers.scripted_model import ScriptedModel
from models.schema_export import exported
from models.structured import parse_answer, unfenced


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    name: str
    count: int = 1


class Order(BaseModel):
    """An order."""

    parts: tuple[Part, ...]
    colour: Colour
    note: str | None = None
    weight: Annotated[float, Field(ge=0, description="kilograms")] = 0.0


WHOLE = '{"parts": [{"name": "a", "count": 2}], "colour": "red", "note": null, "weight": 1}'


@pytest.mark.parametrize(
    "text",
    [WHOLE, f"  {WHOLE}\n", f"```json\n{WHOLE}\n```", f"```\n{WHOLE}```", f"```JSON\r\n{WHOLE}\r\n```\n"],
    ids=["plain", "spaces", "fence", "bare-fence", "crlf-fence"],
)
def test_whole_answers(text: str) -> None:
    order = parse_answer(text, Order)
    assert order == Order(parts=(Part(name="a", count=2),), colour=Colour.RED, weight=1.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("I would buy it.", "not JSON"),
        (f"Here it is: {WHOLE}", "not JSON"),
        (f"{WHOLE} Done.", "not JSON"),
        (f"{WHOLE}{WHOLE}", "not JSON"),
        (f"```json\n{WHOLE}\n```\n```json\n{WHOLE}\n```", "not JSON"),
        (WHOLE[:-10], "not JSON"),
        (WHOLE.replace('"note"', '"colour"'), "'colour' appears twice"),
        (WHOLE.replace('"name": "a",', '"name": "a", "name": "b",'), "'name' appears twice"),
        (WHOLE.replace('"weight": 1', '"weight": NaN'), "NaN"),
        (WHOLE.replace('"weight": 1', '"weight": -Infinity'), "-Infinity"),
        (WHOLE.replace('"weight": 1', '"weight": 1e999'), "1e999"),
        (WHOLE.replace('"weight": 1', '"weight": -1'), "weight: "),
        (WHOLE.replace('"weight": 1', '"weight": true'), "weight: "),
        (WHOLE.replace('"weight": 1', '"height": 1'), "height: Extra"),
        (WHOLE.replace('"count": 2', '"count": 2, "size": 3'), "parts.0.size: Extra"),
        (WHOLE.replace('"count": 2', '"count": "2"'), "parts.0.count: "),
        (WHOLE.replace('"count": 2', '"count": 2.5'), "parts.0.count: "),
        (WHOLE.replace('"red"', '"green"'), "colour: "),
        (WHOLE.replace('"red"', "0"), "colour: "),
        ('{"parts": []}', "colour: Field required"),
        (f"[{WHOLE}]", "(top): "),
        ("null", "(top): "),
        ('"' + "[" * 100_000 + '"', "(top): "),
        ("[" * 100_000, "not JSON"),
        ("9" * 10_000, "not JSON"),
        (WHOLE.replace('"a"', '"\\ud800"'), "Order"),
    ],
)
def test_anything_else_is_an_invalid_answer(text: str, says: str) -> None:
    with pytest.raises(ModelInvalidAnswer) as caught:
        parse_answer(text, Order)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


@settings(max_examples=60)
@given(st.text(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_text_is_an_order_or_a_typed_error(text: str) -> None:
    try:
        assert isinstance(parse_answer(text, Order), Order)
    except ModelInvalidAnswer as error:
        assert str(error)


@given(st.builds(Part, name=st.text(st.characters(codec="utf-8")), count=st.integers(-(2**62), 2**62)))
def test_what_a_schema_writes_it_reads(part: Part) -> None:
    assert parse_answer(part.model_dump_json(), Part) == part


def test_even_a_lenient_schema_is_read_strictly() -> None:
    class Lenient(BaseModel):
        model_config = ConfigDict(extra="ignore")
        count: int

    for text in ('{"count": 1, "more": 2}', '{"count": "1"}'):
        with pytest.raises(ModelInvalidAnswer):
            parse_answer(text, Lenient)


@pytest.mark.parametrize("before", ["<think>so {1}</think>\n", "\n<thinking>\nwell\n</thinking>", "so, well </think> "])
def test_thoughts_before_the_answer_are_no_part_of_it(before: str) -> None:
    assert unfenced(f'{before}{{"a": 1}}') == unfenced(f'{before}```json\n{{"a": 1}}\n```') == '{"a": 1}'


def test_an_answer_about_thoughts_stays() -> None:
    raw = '{"a": "<think>x</think>"}'
    assert unfenced(raw) == raw


def test_a_fence_inside_the_answer_stays() -> None:
    assert unfenced('{"code": "```x```"}') == '{"code": "```x```"}'


async def test_one_repair_and_no_more() -> None:
    model = ScriptedModel(["nonsense", "more nonsense", WHOLE])
    with pytest.raises(ModelInvalidAnswer) as caught:
        await model.complete(ChatRequest((Message("user", "order"),), schema=Order))
    assert len(model.requests) == caught.value.attempts == 2
    first, second = model.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[-2] == Message("assistant", "nonsense")


def nodes(schema: Any) -> list[dict[str, Any]]:
    """Every schema node below *schema*, itself included."""
    found: list[dict[str, Any]] = [schema]
    for key, child in schema.items():
        if key in ("properties", "$defs"):
            found += [node for grandchild in child.values() for node in nodes(grandchild)]
        elif isinstance(child, dict):
            found += nodes(child)
        elif key == "anyOf":
            found += [node for grandchild in child for node in nodes(grandchild)]
    return found


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: float


class Square(BaseModel):
    kind: Literal["square"]
    side: float = Field(gt=0, lt=10)


class Drawing(BaseModel):
    shapes: list[Annotated[Circle | Square, Field(discriminator="kind")]]
    title: str = Field(default="untitled", min_length=1, max_length=80, pattern="^[a-z]+$")
    size: tuple[int, int] = (1, 1)


@pytest.mark.parametrize("schema", [Order, Drawing, Part])
def test_exported_schemas_are_closed_and_plain(schema: type[BaseModel]) -> None:
    sent = exported(schema)
    assert sent.strict
    for node in nodes(sent.json_schema):
        allowed = {"$ref", "type", "enum", "const", "description", "required", "properties"}
        assert set(node) <= allowed | {"additionalProperties", "items", "anyOf", "$defs"}
        if "properties" in node:
            assert node["required"] == list(node["properties"])
            assert node["additionalProperties"] is False
    assert exported(schema) is sent


def test_a_free_form_mapping_is_not_strict() -> None:
    class Loose(BaseModel):
        values: dict[str, int]

    sent = exported(Loose)
    assert not sent.strict
    assert sent.json_schema["properties"]["values"]["additionalProperties"] == {"type": "integer"}


def test_a_field_may_be_called_like_a_keyword() -> None:
    class Odd(BaseModel):
        type: str
        properties: int
        additionalProperties: bool  # noqa: N815 - the name is the test

    assert list(exported(Odd).json_schema["properties"]) == ["type", "properties", "additionalProperties"]
    assert exported(Odd).strict
