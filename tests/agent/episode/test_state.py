"""The state of the graph holds plain JSON values only, and equals itself after LangGraph's serializer."""

from __future__ import annotations

import dataclasses
import json
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agent.episode.state import State, Update, rows_of
from envs.core.record import storable
from envs.core.tasks import Milestone

FULL = State(
    step=3,
    plan=rows_of((Milestone(id="m1", text="Log in"), Milestone(id="m2", text="Pay"))),
    z=(True, False),
    next_milestone=1,
    cause="loop",
    detail="x",
    problems=["y"],
    answer="42",
)


def test_update_and_state_have_the_same_fields() -> None:
    hints = {field.name: field.type for field in dataclasses.fields(State)}
    assert set(hints) == set(get_type_hints(Update))


@pytest.mark.parametrize("state", [State(), FULL])
def test_state_is_plain_json_and_survives_the_serializer(state: State) -> None:
    update = state.as_update()
    assert State(**json.loads(json.dumps(update))) == state
    serde = JsonPlusSerializer()
    assert State(**serde.loads_typed(serde.dumps_typed(update))) == state
    assert State(**update) == state


@given(st.text(alphabet=st.characters()).map(storable))
def test_whatever_passed_the_edge_survives_the_serializer(text: str) -> None:
    serde = JsonPlusSerializer()
    assert serde.loads_typed(serde.dumps_typed({"problems": [text]})) == {"problems": [text]}


def test_lone_surrogates_and_nul_are_made_storable_once() -> None:
    clean = storable("a\ud800b\0c")
    assert clean == "a\ufffdb\ufffdc"
    assert storable(clean) == clean
