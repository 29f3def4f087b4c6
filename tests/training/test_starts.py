"""What `--start` may name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from models.local.loading import read_checkpoint
from tests.mira_command import mira
from tests.models.local.adapters import save_adapter
from tests.models.local.gguf_files import write_gguf
from training.engine.checkpoints import load_policy
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


def test_several_gguf_files_are_one_line(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).touch()
    with pytest.raises(BadInput, match="holds 2 GGUF files, name one"):
        start_folder(str(tmp_path))
