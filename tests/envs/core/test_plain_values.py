"""The source of an invalid key: the file, or the options that override it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from envs.core.errors import BadInput
from envs.core.plain_values import Layer, checked, source_of
from envs.core.settings import SessionSettings

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
