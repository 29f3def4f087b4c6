"""The prompt style that a checkpoint declares."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.local.prompt_style import DECLARATION, declare_style, declared_style, style_of_spec


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "base").mkdir()
    return tmp_path / "base"


def test_a_declared_style_is_read_back_and_can_be_changed(base: Path) -> None:
    declare_style(base, "full")
    declare_style(base, "compact")
    assert style_of_spec(f"local:{base}") == "compact"
    assert [path.name for path in base.iterdir()] == [DECLARATION]


def test_an_adapters_style_comes_before_its_bases(base: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    declare_style(base, "full")
    assert style_of_spec(f"local:{base}+{adapter}") == "full"
    declare_style(adapter, "compact")
    assert style_of_spec(f"local:{base}+{adapter}") == "compact"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"prompt_style": "short"}', '{"prompt_style": ["full"]}'])
def test_an_unknown_declaration_is_ignored(base: Path, text: str) -> None:
    (base / DECLARATION).write_text(text)
    assert declared_style(base) is None


def test_an_unknown_style_is_not_declared(base: Path) -> None:
    declare_style(base, None)
    assert list(base.iterdir()) == [] and declared_style(base) is None


@pytest.mark.parametrize("spec", ["openai:gpt-4o", "vllm:http://127.0.0.1:8000/v1#m", "gpt-4o", "local:"])
def test_other_models_declare_nothing(spec: str) -> None:
    assert style_of_spec(spec) is None


def test_the_embedded_model_declares_compact_prompts() -> None:
    assert style_of_spec("embedded") == "compact"
