"""Exports of real checkpoints: the embedded model, alone and with a real LoRA adapter."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from envs.core.errors import BadInput
from models.base import Message, ModelUnavailable
from models.embedded import embedded_dir
from models.local.loading import read_checkpoint
from models.prompting.prompt_tokens import PromptTokens
from models.vision.checkpoints import PROCESSOR_FILES, is_vision_checkpoint
from tests.models.local.adapters import save_adapter
from tests.training.engine.families import save_family
from training.serving.adapters import check_servable, server_rank
from training.serving.artifact import MANIFEST, read_manifest
from training.serving.export import PLAIN_TEMPLATE, export, served_template
from training.serving.verify import verify

BASE = embedded_dir()


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_adapter(BASE, tmp_path_factory.mktemp("trained") / "lora")


@pytest.fixture(scope="module")
def merged(adapter: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "merged"
    export(BASE, adapter, out)
    return out


@pytest.mark.parametrize(("dtype", "at_least"), [("float32", 0.0), ("float16", 1e-5), ("bfloat16", 1e-3)])
def test_merged_weights_stay_within_the_bound_of_their_type(
    adapter: Path, tmp_path: Path, dtype: Any, at_least: float
) -> None:
    result = export(BASE, adapter, tmp_path / "out", dtype=dtype)
    assert at_least <= result.max_difference and result.difference <= result.bound / 2
    weights = load_file(tmp_path / "out" / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {getattr(torch, dtype)}


def test_files_that_a_server_reads_besides_the_weights(merged: Path) -> None:
    generation = json.loads((merged / "generation_config.json").read_text())
    assert generation["eos_token_id"] == [3]
    assert (generation["top_p"], generation["top_k"], generation["temperature"]) == (1.0, 0, 1.0), "neutral sampling"
    own = json.loads((BASE / "generation_config.json").read_text())
    assert generation["max_new_tokens"] == own["max_new_tokens"], "the checkpoint's own"
    tokenizer = json.loads((merged / "tokenizer_config.json").read_text())
    assert tokenizer["chat_template"] == AutoTokenizer.from_pretrained(BASE).chat_template
    assert tokenizer["model_max_length"] == json.loads((merged / "config.json").read_text())["max_position_embeddings"]
    manifest = read_manifest(merged)
    assert manifest.dtype == "float16", "the base's own type, where none is asked for"
    assert manifest.serve_command(merged)[:3] == ("vllm", "serve", str(merged))


def test_a_merged_multimodal_export_has_the_processor_of_its_base(tmp_path: Path) -> None:
    """No server can load the model without it. Its export used to lack it."""
    base = save_family("gemma3", tmp_path / "base")
    trained = save_adapter(base, tmp_path / "lora")
    manifest = export(base, trained, tmp_path / "out").manifest
    assert is_vision_checkpoint(tmp_path / "out")
    for name in set(PROCESSOR_FILES) & {path.name for path in base.iterdir()}:
        assert (tmp_path / "out" / name).read_bytes() == (base / name).read_bytes()
        assert name in {file.name for file in manifest.files}, "a later change of it is detected"


def test_an_adapter_beside_its_base(adapter: Path, tmp_path: Path) -> None:
    result = export(BASE, adapter, tmp_path / "out", kind="adapter")
    config = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(BASE.resolve())
    assert (result.manifest.rank, result.max_difference < 1e-4) == (8, True)
    assert "--max-lora-rank 8" in " ".join(result.manifest.serve_command(tmp_path / "out"))
    with torch.inference_mode():
        ids = torch.arange(4, 40).unsqueeze(0)
        base, served = (read_checkpoint(BASE, path).model(ids).logits for path in (None, tmp_path / "out"))
    assert (base - served).abs().max() > 0.5


def _touch_weights(folder: Path) -> None:
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "model.safetensors").write_bytes(bytes(data))


def _add_a_file(folder: Path) -> None:
    (folder / "extra.safetensors").write_bytes(b"")


def _lose_the_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def _tear_the_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text((folder / MANIFEST).read_text()[:100])


def _lose_the_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_touch_weights, "model.safetensors' was changed"),
        (_add_a_file, "extra.safetensors' was added"),
        (_lose_the_tokenizer, "tokenizer.json' is missing"),
        (_tear_the_manifest, "cannot be read"),
        (_lose_the_manifest, "is not an export"),
    ],
)
def test_a_changed_export_is_rejected(merged: Path, tmp_path: Path, damage: Any, message: str) -> None:
    folder = shutil.copytree(merged, tmp_path / "out")
    damage(folder)
    with pytest.raises(BadInput, match=message) as caught:
        verify(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_changed_source_is_detected(adapter: Path, tmp_path: Path, dtype: Any) -> None:
    learning = shutil.copytree(adapter, tmp_path / "lora")
    export(BASE, learning, tmp_path / "out", dtype=dtype)
    tensors = load_file(learning / "adapter_model.safetensors")
    save_file({name: tensor * 1.3 for name, tensor in tensors.items()}, learning / "adapter_model.safetensors")
    with pytest.raises(BadInput, match="logits differ"):
        verify(tmp_path / "out")


def test_a_failed_export_leaves_no_files(adapter: Path, tmp_path: Path) -> None:
    diverged = shutil.copytree(adapter, tmp_path / "trained" / "lora")
    tensors = load_file(diverged / "adapter_model.safetensors")
    save_file({name: tensor * torch.nan for name, tensor in tensors.items()}, diverged / "adapter_model.safetensors")
    for kind in ("merged", "adapter"):
        with pytest.raises(BadInput, match="not finite"):
            export(BASE, diverged, tmp_path / "out", kind=kind)
    with pytest.raises(ModelUnavailable):
        export(tmp_path / "nowhere", None, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["trained"]


def test_an_export_never_replaces_a_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(BadInput, match="exists already"):
        export(BASE, None, tmp_path / "out")


# The adapters are made to be refused: PEFT warns of each while it trains or merges them.
@pytest.mark.filterwarnings("ignore:.*tie_word_embeddings:UserWarning", "ignore:Setting `save_embed:UserWarning")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"modules_to_save": ["lm_head"]}, "whole layers"),
        ({"use_dora": True}, "DoRA"),
        ({"target_modules": ["q_proj", "embed_tokens"]}, "not a LoRA matrix of a linear layer"),
    ],
)
def test_adapters_that_vllm_refuses_are_merged_instead(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    trained = save_adapter(BASE, tmp_path / "lora", **settings)
    with pytest.raises(BadInput, match=message):
        export(BASE, trained, tmp_path / "out", kind="adapter")
    assert export(BASE, trained, tmp_path / "out").manifest.kind == "merged"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"peft_type": "PROMPT_TUNING"}, "PROMPT_TUNING, not LoRA"),
        ({"peft_type": "LORA", "r": 8, "bias": "all"}, "biases"),
        ({"peft_type": "LORA", "r": 8, "lora_bias": True}, "a bias"),
        ({"peft_type": "LORA", "r": 8, "init_lora_weights": "pissa"}, "changes the base's weights"),
        ({"peft_type": "LORA", "r": 8, "rank_pattern": {"q_proj": 513}}, "rank 513 is above 512"),
    ],
)
def test_configurations_that_vllm_refuses(config: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_servable(config, [])


@pytest.mark.parametrize(("rank", "limit"), [(1, 1), (2, 8), (8, 8), (9, 16), (300, 320), (512, 512)])
def test_the_servers_limit_holds_the_rank(rank: int, limit: int) -> None:
    assert server_rank(rank) == limit


def test_a_tokenizer_without_a_template_gets_the_one_that_it_was_used_with() -> None:
    tokenizer = AutoTokenizer.from_pretrained(BASE)
    tokenizer.chat_template = None
    messages = (Message("system", "Be brief."), Message("user", "a\n\nb"))
    plain = PromptTokens(tokenizer).encode(messages, 500)
    tokenizer.chat_template = PLAIN_TEMPLATE
    assert PromptTokens(tokenizer).encode(messages, 500) == plain


@pytest.mark.parametrize("conversation", [("system", "user", "assistant", "user"), ("system",), ("user",)])
def test_a_served_template_without_system_messages_writes_what_was_trained(conversation: tuple[Any, ...]) -> None:
    """Symptom: servers refused each request of a policy with a system message for a model such as Gemma 2."""
    messages = [Message(role, f"text {place}") for place, role in enumerate(conversation)]
    tokenizer = AutoTokenizer.from_pretrained(BASE)
    tokenizer.chat_template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
        "{% for m in messages %}<{{ m['role'] }}>\n{{ m['content'] | trim }}\n{% endfor %}"
    )
    trained = PromptTokens(tokenizer).encode(messages, 500)
    tokenizer.chat_template = served_template(tokenizer)
    turns = [{"role": message.role, "content": message.text} for message in messages]
    assert tokenizer.apply_chat_template(turns, tokenize=False) == tokenizer.decode(list(trained))
    assert PromptTokens(tokenizer).writes_system and served_template(tokenizer) == tokenizer.chat_template
