"""The attention of one new token in bfloat16 gives what PyTorch's gives, for grouped heads and padded batches."""

from __future__ import annotations

import copy
import time
from typing import Any

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from models.local.batch_generation import Generator
from models.local.continuation import Job
from models.local.decode_attention import NAME, attend, speed_up_decoding


def tiny(dtype: torch.dtype) -> Any:
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.3,
        pad_token_id=0,
    )
    model: Any = Qwen2ForCausalLM(config)
    model.set_attn_implementation("sdpa")
    return model.to(dtype).eval()


class Tokenizer:
    pad_token_id = 0


def logprobs(model: Any, prompts: list[tuple[int, ...]]) -> list[torch.Tensor]:
    generator = Generator(model, Tokenizer(), frozenset())
    jobs = [Job(prompt, 4, 0.0, None, (), time.monotonic() + 600) for prompt in prompts]
    return [torch.tensor(row.logprobs) for row in generator.run(jobs)]


def test_one_query_attends_as_in_pytorch() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(3, heads, length, 8) for heads, length in ((4, 1), (2, 20), (2, 20)))
    mask = torch.rand(3, 1, 1, 20) > 0.3
    additive = torch.zeros(3, 1, 1, 20).masked_fill(~mask, float("-inf"))
    keys, values = (tensor.repeat_interleave(2, 1) for tensor in (key, value))
    for given, plain in ((None, None), (mask, mask), (additive, mask)):
        out, _ = attend(None, query, key, value, given, scaling=0.3)
        wanted = torch.nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=plain, scale=0.3)
        assert torch.allclose(out, wanted.transpose(1, 2), atol=1e-5)


@pytest.mark.parametrize("prompts", [[tuple(range(1, 60))], [tuple(range(1, 60)), tuple(range(20, 40)), (5, 6)]])
def test_answers_are_as_close_to_float32_as_before(prompts: list[tuple[int, ...]]) -> None:
    plain = tiny(torch.bfloat16)
    faster = copy.deepcopy(plain)
    speed_up_decoding(faster)
    assert faster.config._attn_implementation == NAME
    for before, after in zip(logprobs(plain, prompts), logprobs(faster, prompts), strict=True):
        assert torch.allclose(before, after, atol=0.1)


def test_other_models_keep_their_attention() -> None:
    model = tiny(torch.float32)
    speed_up_decoding(model)
    assert model.config._attn_implementation == "sdpa"
