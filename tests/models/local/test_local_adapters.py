"""`local:DIR+ADAPTER` with a real LoRA adapter on the embedded model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from models.base import ChatRequest, Message, ModelUnavailable
from models.embedded import embedded_dir
from models.local.loading import Checkpoint, read_checkpoint
from models.specs import make_model
from tests.models.local.adapters import save_adapter

PROMPT = 'Goal: Click on the "Save" button.\nPage:\n[1] button "Save"\n[2] button "Delete"'
WEIGHTS = "adapter_model.safetensors"


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_adapter(embedded_dir(), tmp_path_factory.mktemp("lora"))


@torch.inference_mode()
def logits(read: Checkpoint) -> torch.Tensor:
    """[L, V]"""
    turns = [{"role": "user", "content": PROMPT}]
    ids = read.tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    return read.model(**ids).logits[0]


def test_merged_and_unmerged_adapters_are_the_same_function(adapter: Path) -> None:
    base = logits(read_checkpoint(embedded_dir()))
    merged = logits(read_checkpoint(embedded_dir(), adapter))
    apart = logits(read_checkpoint(embedded_dir(), adapter, merge=False))
    assert (merged - apart).abs().max() < 1e-4
    assert (merged - base).abs().max() > 0.5, "an adapter that changes nothing proves nothing"


def test_an_adapter_that_names_its_base_on_a_hub_is_read_without_a_warning(
    adapter: Path, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    shared = shutil.copytree(adapter, tmp_path / "lora")
    config = json.loads((shared / "adapter_config.json").read_text())
    (shared / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": "Qwen/Some-Base"}))
    assert torch.equal(
        logits(read_checkpoint(embedded_dir(), shared)), logits(read_checkpoint(embedded_dir(), adapter))
    )
    assert [str(one.message) for one in recwarn if "config file" in str(one.message)] == []


async def test_the_spec_answers_with_the_adapter(adapter: Path) -> None:
    request = ChatRequest((Message("user", PROMPT),), logprobs=True)
    replies = {}
    for spec in (f"local:{embedded_dir()}", f"local:{embedded_dir()}+{adapter}"):
        model = make_model(spec)
        replies[spec] = await model.complete(request)
        await model.aclose()
    plain, adapted = replies.values()
    assert plain.prompt_token_ids == adapted.prompt_token_ids
    assert plain.logprobs != adapted.logprobs


def _without_a_tensor(folder: Path) -> None:
    tensors = load_file(folder / WEIGHTS)
    tensors.pop(min(tensors))
    save_file(tensors, folder / WEIGHTS)


def _cut_short(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:5_000])


def _other_rank(folder: Path) -> None:
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**config, "r": 4}))


def _no_config(folder: Path) -> None:
    (folder / "adapter_config.json").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without_a_tensor, "does not fit the model"),
        (_cut_short, "SafetensorError"),
        (_other_rank, "size mismatch"),
        (_no_config, "holds no adapter_config.json"),
    ],
)
def test_a_damaged_adapter_is_one_clear_line(
    adapter: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    folder = shutil.copytree(adapter, tmp_path / "adapter")
    damage(folder)
    with pytest.raises(ModelUnavailable, match=message) as caught:
        read_checkpoint(embedded_dir(), folder)
    assert "\n" not in str(caught.value)
