"""The last layer is computed only where it is read, with the same outputs and gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from tests.heap import HAS_STATISTICS, heap_bytes
from tests.training.engine.test_tree_attention import branching, gemma, llama
from tests.training.engine.token_rows import rows_of
from training.data.packing import PAD_LENGTH_TO, PAD_READ_TO, Branches, PackedSequence, pack, sum_by_row
from training.engine import tree_attention
from training.engine.annotate import completion_token_logprobs
from training.engine.checkpoints import with_adapter
from training.engine.critic_model import Critic
from training.engine.packed_model import accept_packed, precision
from training.engine.settings import Lora
from training.engine.tree_attention import use_tree_attention

FAMILIES = pytest.mark.parametrize("family", [llama, gemma], ids=["llama", "gemma"])


def packed_rows() -> PackedSequence:
    return pack([*branching(16), *rows_of(4, longest=24)], range(12))


def actions(model: Any, packed: PackedSequence) -> Tensor:
    return sum_by_row(completion_token_logprobs(model, packed), packed)


def gradients(model: nn.Module, output: Tensor) -> dict[str, Tensor]:
    """Gradients of a weighted sum over rows."""
    model.zero_grad()
    (output * torch.arange(1.0, len(output) + 1)).sum().backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


def assert_alike(gradient_of: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert gradient_of.keys() == expected.keys()
    for name, gradient in gradient_of.items():
        torch.testing.assert_close(
            gradient, expected[name], atol=1e-5, rtol=1e-4, msg=lambda output, n=name: f"{n}: {output}"
        )


class Seen:
    """Number of tokens that the last feed-forward processed."""

    def __init__(self, mlp: nn.Module) -> None:
        self.tokens: list[int] = []
        first: Any = mlp.gate_proj
        first.register_forward_pre_hook(self._record)

    def _record(self, _module: object, arguments: tuple[Tensor, ...]) -> None:
        self.tokens.append(arguments[0].shape[1])


@FAMILIES
@pytest.mark.parametrize("lora", [None, Lora(rank=4, alpha=8)], ids=["every weight", "adapter"])
def test_an_actor_has_the_same_outputs_and_gradients(family: Callable[[], Any], lora: Lora | None) -> None:
    torch.manual_seed(0)
    base, packed = family().double(), packed_rows()
    model = with_adapter(base, lora)
    use_tree_attention(base)
    reference = actions(model, packed)
    expected = gradients(model, reference)
    seen = Seen(base.base_model.layers[-1].mlp)
    accept_packed(base)
    narrow = actions(model, packed)
    torch.testing.assert_close(narrow, reference, atol=1e-5, rtol=1e-5)
    assert_alike(gradients(model, narrow), expected)
    assert seen.tokens == [len(packed.predictors.unique())] < [packed.input_ids.shape[1]]
    assert len(packed.predictors.unique()) < len(packed.predictors), "two rows read the same token"


def test_the_last_layer_has_queries_only_where_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A critic reads one token per state; the layers before the last one process every token."""
    trunk, packed = llama().base_model, packed_rows()
    accept_packed(trunk)
    queries: Counter[int] = Counter()
    attend = tree_attention.sdpa_attention_forward

    def counting(module: Any, query: Tensor, *arguments: Any, **options: Any) -> Any:
        queries[module.layer_idx] += query.shape[2]
        return attend(module, query, *arguments, **options)

    monkeypatch.setattr(tree_attention, "sdpa_attention_forward", counting)
    trunk(**packed.read_at(packed.states))
    assert queries == {0: packed.input_ids.shape[1], 1: 11}


@FAMILIES
def test_a_critic_has_the_same_outputs_and_gradients(family: Callable[[], Any]) -> None:
    torch.manual_seed(0)
    trunk, packed = family().base_model.double(), packed_rows()
    critic = Critic(trunk, 32)
    last: Any = critic.head[-1]
    nn.init.normal_(last.weight)
    use_tree_attention(trunk)
    reference = critic(packed)
    expected = gradients(critic, reference)
    seen = Seen(trunk.layers[-1].mlp)
    accept_packed(trunk)
    narrow = critic(packed)
    torch.testing.assert_close(narrow, reference, atol=1e-5, rtol=1e-5)
    assert_alike(gradients(critic, narrow), expected)
    assert seen.tokens == [11], "twelve rows, two with the same prompt"


def test_gradient_checkpointing_gives_the_same_gradients() -> None:
    torch.manual_seed(0)
    model, packed = llama().train(), packed_rows()
    accept_packed(model)
    expected = gradients(model, actions(model, packed))
    model.activation_checkpointing_enable()
    assert_alike(gradients(model, actions(model, packed)), expected)


def test_a_call_without_read_at_computes_all_positions() -> None:
    torch.manual_seed(0)
    model, packed = llama().eval(), packed_rows()
    use_tree_attention(model)
    expected = model(**packed.inputs).logits
    accept_packed(model)
    model(**packed.read_at(packed.states))
    torch.testing.assert_close(model(**packed.inputs).logits, expected)


def test_a_model_with_other_layers_computes_all_positions() -> None:
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=900, n_embd=32, n_layer=2, n_head=4, n_positions=128, bos_token_id=1, eos_token_id=2)
    model, packed = GPT2LMHeadModel(config).eval(), packed_rows()
    use_tree_attention(model)
    expected = actions(model, packed)
    seen: list[int] = []
    accept_packed(model)

    def record(_module: object, arguments: tuple[Tensor, ...]) -> None:
        seen.append(arguments[0].shape[1])

    last: Any = model.transformer.h[-1]
    last.mlp.register_forward_pre_hook(record)
    torch.testing.assert_close(actions(model, packed), expected)
    assert seen == [packed.input_ids.shape[1]]


def test_lengths_are_padded_in_bfloat16_on_a_cpu() -> None:
    """Symptom: a training took three times the memory of its plan, for kernels of each new shape."""
    torch.manual_seed(0)
    model, packed = llama().eval(), packed_rows()
    accept_packed(model)
    alone = pack(rows_of(4, longest=24), range(4))
    expected = actions(model, packed), actions(model, alone)
    read = packed.read_at(packed.predictors)
    assert (read["input_ids"].shape, read["read_at"].tolist()) == (
        packed.input_ids.shape,
        packed.predictors.unique().tolist(),
    ), "no padding in float32"
    with precision(torch.device("cpu"), bf16=True):
        for one, exact in zip((packed, alone), expected, strict=True):
            read = one.read_at(one.predictors)
            tokens, places = read["input_ids"].shape[1], read["read_at"]
            assert tokens % PAD_LENGTH_TO == 0 and len(places) % PAD_READ_TO == 0
            assert sum(read["branches"].lengths) == tokens == read["position_ids"].shape[1]
            assert places.unique().tolist() == places.tolist() and places[-1] < tokens
            torch.testing.assert_close(actions(model, one), exact, atol=0.2, rtol=0.02)


@pytest.mark.skipif(not HAS_STATISTICS, reason="needs glibc 2.33")
def test_new_lengths_keep_no_kernels_of_attention() -> None:
    """On a CPU with instructions for bfloat16, PyTorch's own backward pass keeps 5 MB for each of these lengths."""
    module = llama().model.layers[0].self_attn

    def attend(length: int) -> None:
        query, key, value = (
            torch.randn(1, heads, length, 64, dtype=torch.bfloat16, requires_grad=True) for heads in (14, 2, 2)
        )
        own = Branches((length,), ((0,),))
        output, _ = attention(module, query, key, value, None, branches=own, scaling=0.125, dropout=0.0)
        assert output.dtype == torch.bfloat16
        output.sum().backward()
        assert all(tensor.grad is not None for tensor in (query, key, value))

    attention: Any = tree_attention._attention_in_trees
    attend(200)
    before = heap_bytes()[0]
    for length in range(100, 120):
        attend(length)
    assert heap_bytes()[0] - before < 10 * 2**20
