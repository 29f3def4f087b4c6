"""What `--start` may name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from models.local.declarations import declarations
from models.local.loading import read_checkpoint
from tests.mira_command import mira
from tests.models.local.adapters import save_adapter
from tests.models.local.gguf_files import write_gguf
from training.engine.checkpoints import load_policy
from training.serving.adapters import check_servable
from training.starts import start_folder


def test_a_folder_and_the_embedded_model() -> None:
    assert start_folder("embedded") == embedded_dir()
    assert start_folder("nowhere/at-all") == Path("nowhere/at-all"), "its reader says that it is missing"


def test_a_gguf_file_is_converted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_gguf(tmp_path / "model.gguf")
    folder = start_folder(str(tmp_path / "model.gguf"))
    assert folder.is_relative_to(tmp_path / "cache") and start_folder(str(tmp_path)) == folder
    model, tokenizer = load_policy(folder, padded=True)
    assert model(input_ids=tokenizer("go", return_tensors="pt").input_ids).logits.isfinite().all()


def test_a_gguf_file_with_an_adapter_is_exported_as_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_gguf(tmp_path / "model.gguf")
    base = start_folder(str(tmp_path / "model.gguf"))
    adapter = save_adapter(base, tmp_path / "adapter")
    source, out = f"{tmp_path / 'model.gguf'}+{adapter}", tmp_path / "start"
    assert mira(monkeypatch, "export", source, "--to", str(out), "--dtype", "float32") == 0
    assert "logits differ" in capsys.readouterr().out
    exported, read = load_policy(out, padded=True)[0], read_checkpoint(base, adapter, on_cpu=True).model
    assert all(
        torch.allclose(exported.state_dict()[name], weight, atol=1e-6) for name, weight in read.state_dict().items()
    )


def test_the_start_for_the_sites_is_an_adapter_that_servers_take() -> None:
    """On every layer of Qwen2.5-Coder-0.5B, in bfloat16."""
    folder = Path("benchmarks/starts/sites-0.5b")
    tensors = load_file(folder / "adapter_model.safetensors")
    config = json.loads((folder / "adapter_config.json").read_text())
    assert check_servable(config, tensors) == 8 and len(tensors) == 24 * 7 * 2
    assert {tensor.dtype for tensor in tensors.values()} == {torch.bfloat16}
    assert declarations(folder) == {
        "prompt_style": "compact",
        "reasons": "none",
        "milestones": "shown",
        "precision": "bfloat16",
    }


def test_several_gguf_files_are_one_line(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).touch()
    with pytest.raises(BadInput, match="holds 2 GGUF files, name one"):
        start_folder(str(tmp_path))
