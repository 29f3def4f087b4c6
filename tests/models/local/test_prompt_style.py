"""What a checkpoint says of the prompts that it answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.local.prompt_style import DECLARATION, declare_style, declared_style, style_of_spec


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "base").mkdir()
    return tmp_path / "base"


def test_what_is_declared_is_read_back_and_may_be_declared_anew(base: Path) -> None:
    declare_style(base, "full")
    declare_style(base, "compact")
    assert style_of_spec(f"local:{base}") == "compact"
    assert [path.name for path in base.iterdir()] == [DECLARATION]


def test_an_adapter_speaks_before_its_base(base: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    declare_style(base, "full")
    assert style_of_spec(f"local:{base}+{adapter}") == "full"
    declare_style(adapter, "compact")
    assert style_of_spec(f"local:{base}+{adapter}") == "compact"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"prompt_style": "short"}', '{"prompt_style": ["full"]}'])
def test_a_file_that_says_nothing_known_declares_nothing(base: Path, text: str) -> None:
    (base / DECLARATION).write_text(text)
    assert declared_style(base) is None


def test_nothing_is_declared_where_nothing_is_known(base: Path) -> None:
    declare_style(base, None)
    assert list(base.iterdir()) == [] and declared_style(base) is None


@pytest.mark.parametrize("spec", ["openai:gpt-4o", "vllm:http://127.0.0.1:8000/v1#m", "gpt-4o", "local:"])
def test_other_models_declare_nothing(spec: str) -> None:
    assert style_of_spec(spec) is None


def test_the_model_that_ships_is_a_small_one() -> None:
    assert style_of_spec("embedded") == "compact"
