"""Prefix-tree attention: packed outputs of every model family equal those of single rows under its own attention."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    DogeConfig,
    DogeForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GptOssConfig,
    GptOssForCausalLM,
    Llama4ForCausalLM,
    Llama4TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    NemotronConfig,
    NemotronForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from tests.training.engine.token_rows import rows_of
from training.data.packing import pack, sum_by_row
from training.data.rows import Row
from training.engine.annotate import completion_token_logprobs
from training.engine.checkpoints import load_policy, save_policy
from training.engine.preflight import check_trainable
from training.engine.settings import Compute
from training.engine.tree_attention import IN_TREES, use_tree_attention

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
    """Layers with a window that most rows exceed, and layers without one."""
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    return Gemma3ForCausalLM(Gemma3TextConfig(**SIZE, num_hidden_layers=3, sliding_window=8, layer_types=kinds))


def qwen() -> Qwen3ForCausalLM:
    return Qwen3ForCausalLM(Qwen3Config(**SIZE, num_hidden_layers=2))


def phi() -> Phi3ForCausalLM:
    own = {name: SIZE[name] for name in SIZE if name != "head_dim"}
    return Phi3ForCausalLM(Phi3Config(**own, num_hidden_layers=2, pad_token_id=0))


def llama4() -> Llama4ForCausalLM:
    """Layers with chunked attention of eight tokens, and a last one with full attention."""
    own: dict[str, Any] = {
        "num_hidden_layers": 4,
        "attention_chunk_size": 8,
        "num_local_experts": 2,
        "intermediate_size_mlp": 64,
    }
    return Llama4ForCausalLM(Llama4TextConfig(**SIZE, **own))


def recurrent() -> Qwen3NextForCausalLM:
    """Three of four layers are recurrent."""
    own: dict[str, Any] = {
        "num_hidden_layers": 4,
        "num_experts": 2,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
    }
    return Qwen3NextForCausalLM(Qwen3NextConfig(**SIZE, **own))


def deepseek() -> DeepseekV3ForCausalLM:
    """Values are narrower than queries and keys."""
    own: dict[str, Any] = {
        "num_hidden_layers": 2,
        "num_key_value_heads": 4,
        "q_lora_rank": 16,
        "kv_lora_rank": 16,
        "qk_rope_head_dim": 4,
        "qk_nope_head_dim": 8,
        "v_head_dim": 8,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 16,
        "n_group": 1,
        "topk_group": 1,
    }
    size = {name: SIZE[name] for name in SIZE if name != "head_dim"}
    return DeepseekV3ForCausalLM(DeepseekV3Config(**(size | own)))


def nemotron() -> NemotronForCausalLM:
    """Its layers do not pass the arguments of a pass on to their attention."""
    return NemotronForCausalLM(NemotronConfig(**SIZE, num_hidden_layers=2))


def doge() -> DogeForCausalLM:
    """Each layer makes an attention mask of its own."""
    return DogeForCausalLM(DogeConfig(**SIZE, num_hidden_layers=2))


def gpt_oss() -> GptOssForCausalLM:
    """Attention with sinks, which PyTorch's does not have: its log-probabilities would be others."""
    own: dict[str, Any] = {"num_hidden_layers": 2, "num_local_experts": 4, "num_experts_per_tok": 2}
    return GptOssForCausalLM(GptOssConfig(**SIZE, **own))


def learned(model: Any, rows: list[Row], packs: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """(log-probability of each row's completion, gradient of their sum with respect to the embeddings)."""
    model.zero_grad()
    outputs: list[torch.Tensor] = []
    for indices in packs:
        packed = pack(rows, indices)
        logprobs = sum_by_row(completion_token_logprobs(model, packed), packed)
        logprobs.sum().backward()
        outputs.append(logprobs.detach())
    gradient = model.get_input_embeddings().weight.grad
    assert gradient is not None
    return torch.cat(outputs), gradient.clone()


def branching(longest: int) -> list[Row]:
    """Eight rows: each prompt except the first shares a prefix with the previous one, and two have equal prompts."""
    draw, outputs = random.Random(5), rows_of(1, longest=longest)
    for number in range(1, 8):
        before = outputs[-1].prompt
        kept = before if number == 4 else before[: draw.randrange(len(before) // 2, len(before) + 1)]
        more = () if number == 4 else tuple(draw.randrange(10, 900) for _ in range(draw.randrange(1, longest)))
        action = tuple(draw.randrange(10, 900) for _ in range(draw.randrange(1, 6)))
        outputs.append(Row((*kept, *more), action, number, 0))
    return outputs


@pytest.mark.parametrize("family", [llama, gemma, qwen, phi, deepseek])
@pytest.mark.parametrize("rows", [rows_of(8, longest=24), branching(16)], ids=["apart", "with one beginning"])
def test_packed_attention_equals_separate_rows(family: Callable[[], Any], rows: list[Row]) -> None:
    torch.manual_seed(0)
    model = family().eval()
    alone = learned(model, rows, [[n] for n in range(8)])
    use_tree_attention(model)
    assert model.config._attn_implementation == IN_TREES
    packed = learned(model, rows, [[0, 1, 2, 3, 4], [5, 6, 7]])
    for outputs, expected in zip(packed, alone, strict=True):
        torch.testing.assert_close(outputs, expected, atol=1e-5, rtol=1e-4)


def test_shared_prefixes_and_sliding_windows_give_the_same_attention() -> None:
    """Checks the setup of the test above: branches start after more tokens than the window has."""
    rows = branching(16)
    packed = pack(rows, range(8))
    assert packed.input_ids.shape[1] < 0.7 * sum(len(row) for row in rows)
    depths = [sum(packed.lengths[number] for number in path[:-1]) for path in packed.paths]
    assert max(depths) >= 2 * 8 and any(0 < depth < 8 for depth in depths)


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        (llama4, "chunked_attention"),
        (recurrent, "linear_attention"),
        (nemotron, "an attention of its own"),
        (doge, "an attention of its own"),
        (gpt_oss, "an attention of its own"),
    ],
)
def test_a_model_with_unsupported_layers_is_refused(family: Callable[[], Any], reason: str) -> None:
    model = family()
    before = model.config._attn_implementation
    with pytest.raises(BadInput, match=f"cannot be trained on packed sequences, its layers have .*{reason}: use one"):
        use_tree_attention(model)
    assert model.config._attn_implementation == before


@pytest.mark.parametrize("family", [nemotron, doge, gpt_oss])
def test_the_check_before_a_run_refuses_a_model_that_would_fail_at_scoring(
    family: Callable[[], Any], tmp_path: Path
) -> None:
    """It builds the model without weights. Episodes used to be played first."""
    save_policy(family(), load_policy(embedded_dir())[1], tmp_path / "start")
    with pytest.raises(BadInput, match="its layers have an attention of its own: use one") as error:
        check_trainable(tmp_path / "start", Compute())
    assert "\n" not in str(error.value)


def test_inputs_without_branches_are_refused() -> None:
    """Without a mask, a padded batch would silently attend to its padding."""
    model = llama()
    use_tree_attention(model)
    with pytest.raises(ValueError, match="needs branches and no attention_mask"):
        model(input_ids=torch.tensor([[1, 2, 3], [4, 5, 0]]), attention_mask=torch.tensor([[1, 1, 1], [1, 1, 0]]))


def test_a_checkpoint_has_no_trace_of_tree_attention(tmp_path: Path) -> None:
    """Servers do not know this attention."""
    save_policy(*load_policy(embedded_dir()), tmp_path / "saved")
    config = json.loads((tmp_path / "saved" / "config.json").read_text(encoding="utf-8"))
    assert IN_TREES not in json.dumps(config)
