"""The checkpoint contract: plain values in, equal plain values out, and nothing is ever constructed."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import get_type_hints

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agent.episode.state import State, Update, rows_of, serializer
from agent.run.checkpoints import check_url, open_checkpoints
from envs.core.errors import BadInput
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
    serde = serializer()
    assert State(**serde.loads_typed(serde.dumps_typed(update))) == state
    assert State(**update) == state


@given(st.text(alphabet=st.characters()).map(storable))
def test_whatever_passed_the_edge_survives_the_serializer(text: str) -> None:
    serde = serializer()
    assert serde.loads_typed(serde.dumps_typed({"problems": [text]})) == {"problems": [text]}


def test_lone_surrogates_and_nul_are_made_storable_once() -> None:
    clean = storable("a\ud800b\0c")
    assert clean == "a\ufffdb\ufffdc"
    assert storable(clean) == clean


SPRUNG: list[str] = []


class Trap:
    """Tells if it was ever constructed from a checkpoint."""

    def __init__(self, *values: str) -> None:
        SPRUNG.extend(values)


def load_forged(serde: JsonPlusSerializer) -> list[str]:
    """What a forged checkpoint constructs, over all extension codes of the format."""
    SPRUNG.clear()
    for code in range(8):
        payload = ormsgpack.packb((Trap.__module__, "Trap", "sprung", "__init__"))
        with suppress(Exception):  # refusing loudly is as good
            serde.loads_typed(("msgpack", ormsgpack.packb(ormsgpack.Ext(code, payload))))
    return SPRUNG


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://host/db", "begin with postgresql://, got 'mysql'"),
        ("postgresql://ann:s3cret@host/db", "leave it to PGPASSWORD"),
        ("postgresql://ann@host/db?password=s3cret", "leave it to PGPASSWORD"),
    ],
)
def test_addresses_that_are_no_postgres_or_hold_a_password(url: str, says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        check_url(url)
    assert "s3cret" not in str(caught.value)
    check_url("postgresql://ann@host/db")


@pytest.mark.slow  # the lock is waited for
def test_a_locked_database_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    async def opened(path: Path) -> None:
        async with open_checkpoints(path, None):
            pass

    path = tmp_path / "checkpoints.sqlite"
    with closing(sqlite3.connect(path)) as holder:
        holder.execute("CREATE TABLE t (x)")
        holder.commit()
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            asyncio.run(opened(path))
    assert path.exists() and not list(tmp_path.glob("*.damaged"))


def test_a_forged_checkpoint_constructs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, Trap.__module__, sys.modules[__name__])
    assert load_forged(JsonPlusSerializer(allowed_msgpack_modules=True)), "control: unpinned, the trap springs"
    assert not load_forged(serializer())


def test_pickle_is_refused() -> None:
    with pytest.raises(NotImplementedError):
        serializer().loads_typed(("pickle", b"cos\nsystem\n(S'true'\ntR."))
