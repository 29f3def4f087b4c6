"""Packs of models that attend in rows: every family's numbers are those of each row alone, under its own attention."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Llama4ForCausalLM,
    Llama4TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
)

from models.embedded import embedded_dir
from tests.training.stages.token_rows import rows_of
from training.data.packing import by_row, pack
from training.data.rows import Row
from training.stages.annotate import action_token_logprobs
from training.stages.checkpoints import load_policy, save_policy
from training.stages.row_attention import IN_ROWS, attend_in_rows

SIZE: dict[str, Any] = {
    "vocab_size": 900,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
}


def llama() -> LlamaForCausalLM:
    return LlamaForCausalLM(LlamaConfig(**SIZE, num_hidden_layers=2))


def gemma() -> Gemma3ForCausalLM:
    """A window that most rows outgrow, and layers without one."""
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    return Gemma3ForCausalLM(Gemma3TextConfig(**SIZE, num_hidden_layers=3, sliding_window=8, layer_types=kinds))


def llama4() -> Llama4ForCausalLM:
    """Layers that see within chunks of eight tokens, and a last one that sees all."""
    own = {"num_hidden_layers": 4, "attention_chunk_size": 8, "num_local_experts": 2, "intermediate_size_mlp": 64}
    return Llama4ForCausalLM(Llama4TextConfig(**SIZE, **own))


def learned(model: Any, rows: list[Row], packs: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """(log-probability of each row's action, gradient of their sum by the embeddings)."""
    model.zero_grad()
    found: list[torch.Tensor] = []
    for indices in packs:
        packed = pack(rows, indices)
        logprobs = by_row(action_token_logprobs(model, packed), packed)
        logprobs.sum().backward()
        found.append(logprobs.detach())
    gradient = model.get_input_embeddings().weight.grad
    assert gradient is not None
    return torch.cat(found), gradient.clone()


@pytest.mark.parametrize("family", [llama, gemma], ids=["grouped heads", "sliding window"])
def test_a_pack_is_its_rows(family: Callable[[], Any]) -> None:
    torch.manual_seed(0)
    model, rows = family().eval(), rows_of(6, longest=24)
    alone = learned(model, rows, [[n] for n in range(6)])
    attend_in_rows(model)
    assert model.config._attn_implementation == IN_ROWS
    packed = learned(model, rows, [[0, 1, 2, 3], [4, 5]])
    for found, expected in zip(packed, alone, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_a_model_that_sees_in_chunks_is_left_as_it_is() -> None:
    model = llama4()
    before = model.config._attn_implementation
    attend_in_rows(model)
    assert model.config._attn_implementation == before != IN_ROWS


def test_what_is_no_pack_is_refused() -> None:
    """Without a mask, a padded batch would read its padding and nobody would be told."""
    model = llama()
    attend_in_rows(model)
    with pytest.raises(ValueError, match="takes row_lengths and no attention_mask"):
        model(input_ids=torch.tensor([[1, 2, 3], [4, 5, 0]]), attention_mask=torch.tensor([[1, 1, 1], [1, 1, 0]]))


def test_a_checkpoint_does_not_say_how_it_was_trained(tmp_path: Path) -> None:
    """Others serve it, and know no such attention."""
    save_policy(*load_policy(embedded_dir()), tmp_path / "saved")
    config = json.loads((tmp_path / "saved" / "config.json").read_text(encoding="utf-8"))
    assert IN_ROWS not in json.dumps(config)
