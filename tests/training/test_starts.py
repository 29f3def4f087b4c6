"""What `--start` may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.core.errors import BadInput
from models.embedded import embedded_dir
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


def test_several_gguf_files_are_one_line(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).touch()
    with pytest.raises(BadInput, match="holds 2 GGUF files, name one"):
        start_folder(str(tmp_path))
