"""Errors about keys: their source, which is the file or the options that override it, and what was probably meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agent.config import RunConfig
from envs.core.errors import BadInput
from envs.core.plain_values import Layer, checked, source_of
from envs.core.record import Record
from envs.core.settings import SessionSettings
from training.loop.settings import LoopSettings

GIVEN = {"a": {"b": 1, "kind": "x", "z": [1, 2]}, "c": 2}


@pytest.mark.parametrize(
    ("key", "blamed"),
    [
        pytest.param(("c",), "--set", id="laid over"),
        pytest.param(("a", "b"), "--set", id="in a table"),
        pytest.param(("a", "z", 1), "--set", id="an item of a list"),
        pytest.param(("a", "x", "b"), "--set", id="behind the tag of a union"),
        pytest.param(("d",), "f.toml", id="in the file alone"),
        pytest.param(("a", "d"), "f.toml", id="in the file's table"),
        pytest.param(("d", "c"), "f.toml", id="of the same name elsewhere"),
        pytest.param((), "f.toml with --set", id="several keys together"),
        pytest.param(("a",), "f.toml with --set", id="several keys of a table"),
    ],
)
def test_a_bad_key_is_blamed_on_what_holds_it(key: Sequence[int | str], blamed: str) -> None:
    assert source_of(key, "f.toml", Layer("--set", GIVEN)) == blamed
    assert source_of(key, "f.toml", None) == source_of(key, "f.toml", Layer("--set", {})) == "f.toml"


def test_the_message_names_the_source() -> None:
    over = Layer("--set", {"max_tabs": 0})
    with pytest.raises(BadInput, match=r"^--set: key 'max_tabs'"):
        checked(SessionSettings, {"max_tabs": 0, "locale": "en"}, "f.toml", over)
    with pytest.raises(BadInput, match=r"^f\.toml: unknown key 'max_tab'"):
        checked(SessionSettings, {"max_tabs": 1, "max_tab": 0}, "f.toml", Layer("--set", {"max_tabs": 1}))


@pytest.mark.parametrize(
    ("kind", "values", "problem"),
    [
        pytest.param(
            RunConfig, {"max_steps": 3}, "unknown key 'max_steps'; did you mean 'limits.max_steps'?", id="table"
        ),
        pytest.param(RunConfig, {"polcy": "x"}, "unknown key 'polcy'; did you mean 'policy'?", id="misspelled"),
        pytest.param(
            LoopSettings,
            {"optimization": {"epochs": 3}},
            "unknown key 'optimization'; did you mean 'potential.optimization' or 'value.optimization' or "
            "'actor.optimization'?",
            id="several",
        ),
        pytest.param(RunConfig, {"colour": "red"}, "unknown key 'colour'", id="nothing like it"),
    ],
)
def test_an_unknown_key_names_what_was_probably_meant(kind: type[Record], values: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        checked(kind, values, "f.toml")
    assert str(caught.value) == f"f.toml: {problem}"
