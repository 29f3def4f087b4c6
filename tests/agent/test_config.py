"""A wrong configuration gives one line that names the key; a valid one equals itself after storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.config import RunConfig, load_config, parse_config
from envs.core.errors import BadInput
from envs.core.plain_values import merged

WRONG = [
    pytest.param({"polcy": "x"}, "unknown key 'polcy'", id="unknown-key"),
    pytest.param({"limits": {"max_step": 3}}, "unknown key 'limits.max_step'", id="unknown-nested-key"),
    pytest.param({"limits": {"max_steps": 0}}, "key 'limits.max_steps'", id="below-range"),
    pytest.param({"limits": {"max_seconds": float("inf")}}, "key 'limits.max_seconds'", id="no end"),
    pytest.param({"session": {"navigation_s": float("nan")}}, "key 'session.navigation_s'", id="no number"),
    pytest.param({"workers": "many"}, "key 'workers'", id="wrong-type"),
    pytest.param({"language": "french"}, "key 'language'", id="not-in-set"),
    pytest.param({"approve": ["everything"]}, "key 'approve.0'", id="approve-class"),
    pytest.param({"session": {"viewport": {"width": 1}}}, "key 'session.viewport.width'", id="deep"),
]


@pytest.mark.parametrize(("values", "says"), WRONG)
def test_wrong_value_is_one_line_naming_the_key(values: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_config(values, "test.toml")
    message = str(caught.value)
    assert message.startswith("test.toml: ")
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(b"workers = ", "cannot be read", id="no-toml"),
        pytest.param(b"\xff\xfe", "cannot be read", id="no-utf8"),
        pytest.param(b"unknown = 1", "unknown key 'unknown'", id="unknown-key"),
    ],
)
def test_bad_file_is_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=says) as caught:
        load_config(path)
    assert "\n" not in str(caught.value)


def test_a_bad_option_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("workers = 2\n[limits]\nmax_steps = 0\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"^options: key 'approve\.0'"):
        load_config(path, {"approve": ["everything"], "limits": {"max_steps": 3}})
    with pytest.raises(BadInput, match=r"^.*run\.toml: key 'limits\.max_steps'"):
        load_config(path, {"workers": 3})


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        load_config(tmp_path / "none.toml")


def test_options_win_over_the_file_key_by_key(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('policy = "openai:a"\n[limits]\nmax_steps = 7\nmax_seconds = 9\n', encoding="utf-8")
    loaded = load_config(path, {"limits": {"max_steps": 3}})
    assert (loaded.policy, loaded.limits.max_steps, loaded.limits.max_seconds) == ("openai:a", 3, 9)


def test_resolved_configuration_reads_back_equal() -> None:
    config = parse_config({"approve": ["submit"], "session": {"allow": ["a.example"], "upload_folder": "/tmp"}})
    assert RunConfig.model_validate(config.resolved()) == config


@pytest.mark.parametrize(
    "values",
    [
        {"secrets": {"PASSWORD": "hunter22"}},
        {"secrets": "hunter22"},
        {"secrets": [["hunter22"]]},
        {"session": {"http_credentials": "ann:hunter22"}},
        {"session": {"http_credentials": {"origin": "https://a.example", "value": "ann:hunter22"}}},
    ],
    ids=["table", "text", "list", "credentials", "value of credentials"],
)
def test_no_message_shows_a_password(values: dict[str, Any]) -> None:
    """Symptom: `got {'PASSWORD': 'hunter22'}`."""
    with pytest.raises(BadInput, match=r"secrets|http_credentials") as refused:
        parse_config(values)
    assert "hunter22" not in str(refused.value)


def test_merging_leaves_its_inputs_alone() -> None:
    base = {"a": {"b": 1}}
    assert merged(base, {"a": {"c": 2}}) == {"a": {"b": 1, "c": 2}}
    assert base == {"a": {"b": 1}}
