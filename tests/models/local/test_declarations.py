"""The prompt style that a checkpoint declares."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.local.declarations import (
    DECLARATION,
    answers_without_reasons,
    copy_declarations,
    declaration,
    declare_no_reasons,
    declare_no_thoughts,
    declare_style,
    declare_thoughts,
    declared_style,
    style_of_spec,
    thoughts_of_spec,
)


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


def test_declarations_are_copied_with_the_adapters_first(base: Path, tmp_path: Path) -> None:
    """The profile belongs to the style: the adapter's style has no profile of its base."""
    adapter, merged, alone = (tmp_path / name for name in ("adapter", "merged", "alone"))
    for folder in (adapter, merged, alone):
        folder.mkdir()
    declare_style(base, "full", "small")
    declare_thoughts(base, "tags")
    declare_no_reasons(adapter)
    copy_declarations(alone, adapter, base)
    assert declaration(alone) == ("full", "small")
    declare_style(adapter, "compact")
    copy_declarations(merged, adapter, base)
    assert declaration(merged) == ("compact", "")
    assert thoughts_of_spec(f"local:{merged}") and answers_without_reasons(f"local:{merged}")
    assert answers_without_reasons(f"local:{base}+{adapter}") and not answers_without_reasons(f"local:{base}")


def test_an_adapter_without_thoughts_comes_before_its_base(base: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    declare_thoughts(base, "asked")
    assert thoughts_of_spec(f"local:{base}+{adapter}")
    declare_no_thoughts(adapter)
    assert not thoughts_of_spec(f"local:{base}+{adapter}") and thoughts_of_spec(f"local:{base}")


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


@pytest.mark.parametrize("form", ["openai:{}", "vllm:http://127.0.0.1:8000/v1#{}"])
def test_a_model_that_is_served_under_its_folders_name(base: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """`vllm serve DIR` and `transformers serve DIR` name it so."""
    declare_style(base, "compact")
    declare_thoughts(base, "asked")
    assert style_of_spec(form.format(base)) is None, "no checkpoint"
    (base / "config.json").write_text("{}")
    assert style_of_spec(form.format(base)) == "compact" and thoughts_of_spec(form.format(base)) == "asked"
    monkeypatch.chdir(base.parent)
    assert style_of_spec(form.format(base.name)) == "compact"
    monkeypatch.chdir(base)
    assert style_of_spec(form.format(base.name)) is None


def test_the_embedded_model_declares_compact_prompts() -> None:
    assert style_of_spec("embedded") == "compact"
