"""The CPU plays checkpoints in bfloat16 where that is precise enough and it multiplies them; training reads float32."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from models.embedded import embedded_dir
from models.local.declarations import declare_precision, is_trained_in_bfloat16
from models.local.loading import load_generator, read_checkpoint
from tests.models.local.adapters import save_adapter


def checkpoint(folder: Path, stored: torch.dtype) -> Path:
    """The embedded model, stored in another type."""
    AutoModelForCausalLM.from_pretrained(embedded_dir(), dtype=stored).save_pretrained(folder)
    AutoTokenizer.from_pretrained(embedded_dir()).save_pretrained(folder)
    return folder


def multiplies_bfloat16(monkeypatch: pytest.MonkeyPatch, has: bool) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": has}, raising=False)


@pytest.mark.parametrize("has", [True, False])
@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("trained", [True, False, None])
def test_stored_or_trained_in_bfloat16(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: torch.dtype, trained: bool | None, has: bool
) -> None:
    folder = checkpoint(tmp_path / "model", stored)
    if trained is not None:
        declare_precision(folder, bf16=trained)
    multiplies_bfloat16(monkeypatch, has)
    half = has and (trained or stored == torch.bfloat16)
    generator, _ = load_generator(folder, None, "local:x")
    assert generator.model.dtype == (torch.bfloat16 if half else torch.float32)
    assert read_checkpoint(folder).model.dtype == torch.float32, "training reads float32"


def test_an_adapter_is_merged_before_it_is_rounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = save_adapter(embedded_dir(), tmp_path / "adapter", size=0.001)
    declare_precision(adapter, bf16=True)
    multiplies_bfloat16(monkeypatch, True)
    exact = read_checkpoint(embedded_dir(), adapter).model
    played = read_checkpoint(embedded_dir(), adapter, playing=True).model
    assert (exact.dtype, played.dtype) == (torch.float32, torch.bfloat16)
    expected = {name: weight.to(torch.bfloat16) for name, weight in exact.state_dict().items()}
    assert all(torch.equal(weight, expected[name]) for name, weight in played.state_dict().items())


def test_an_adapter_without_a_declaration_is_played_in_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = save_adapter(embedded_dir(), tmp_path / "adapter", size=0.001)
    multiplies_bfloat16(monkeypatch, True)
    assert read_checkpoint(embedded_dir(), adapter, playing=True).model.dtype == torch.float32


def test_the_first_declaration_counts(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    declare_precision(tmp_path / "b", bf16=True)
    assert is_trained_in_bfloat16(tmp_path / "a", tmp_path / "b")
    declare_precision(tmp_path / "a", bf16=False)
    assert not is_trained_in_bfloat16(tmp_path / "a", tmp_path / "b")
