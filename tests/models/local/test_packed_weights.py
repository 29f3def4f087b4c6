"""Packed linear layers compute what PyTorch's do, and are used where that is possible. The operators are private in
PyTorch: these tests are their contract."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from models.local.packed_weights import PackedLinear, can_pack, pack_weights
from tests.models.local.test_decode_attention import logprobs, tiny

needs_packing = pytest.mark.skipif(not can_pack(), reason="PyTorch or the processor has no products in bfloat16")


@needs_packing
@pytest.mark.parametrize("bias", [True, False])
def test_a_packed_layer_computes_the_same(bias: bool) -> None:
    """For any number of rows and leading dimensions, up to the rounding of bfloat16."""
    torch.manual_seed(0)
    layer = nn.Linear(96, 80, bias=bias, dtype=torch.bfloat16)
    packed = PackedLinear(layer)
    assert torch.equal(packed.weight, layer.weight) and not list(packed.parameters())
    for shape in ((96,), (1, 96), (3, 7, 96), (2, 300, 96)):
        inputs = torch.randn(shape).bfloat16()
        with torch.inference_mode():
            out, wanted = packed(inputs), layer(inputs)
        assert out.shape == wanted.shape and torch.allclose(out, wanted, rtol=0.02, atol=0.01)


@needs_packing
@pytest.mark.parametrize("prompts", [[tuple(range(1, 60))], [tuple(range(1, 60)), tuple(range(20, 40)), (5, 6)]])
def test_a_packed_model_answers_the_same(prompts: list[tuple[int, ...]]) -> None:
    plain = tiny(torch.bfloat16)
    packed = copy.deepcopy(plain)
    linear = sum(isinstance(part, nn.Linear) for part in plain.modules())
    assert pack_weights(packed) == linear == sum(isinstance(part, PackedLinear) for part in packed.modules())
    for before, after in zip(logprobs(plain, prompts), logprobs(packed, prompts), strict=True):
        assert torch.allclose(before, after, atol=0.1)


@needs_packing
def test_a_weight_in_two_places_is_not_packed() -> None:
    """The output layer that shares the weight of the embeddings."""
    model = tiny(torch.bfloat16)
    model.lm_head.weight = model.model.embed_tokens.weight
    pack_weights(model)
    assert type(model.lm_head) is nn.Linear and isinstance(model.model.layers[0].mlp.up_proj, PackedLinear)


def test_other_types_are_not_packed() -> None:
    model = tiny(torch.float32)
    assert pack_weights(model) == 0
    assert pack_weights(nn.Sequential(nn.Linear(8, 8, dtype=torch.float16))) == 0
