"""Sliding windows and branches in blocks of queries: the same attention as with one mask over the whole text, without
its S² entries."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tests.training.engine.test_tree_attention import SIZE, branching, gemma, learned, llama
from tests.training.engine.token_rows import rows_of
from training.data.packing import pack
from training.engine import tree_attention
from training.engine.annotate import completion_token_logprobs
from training.engine.tree_attention import query_blocks, use_tree_attention

WINDOW = 8
"""Of the tiny Gemma: shorter than the rows."""


@pytest.mark.parametrize("least", [1, 5, 8, 1_000])
@pytest.mark.parametrize("family", [gemma, llama])
def test_blocks_give_the_attention_of_single_rows(family: Any, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Log-probabilities and gradients, against each row alone under the model's own attention."""
    monkeypatch.setattr(tree_attention, "LEAST_BLOCK", least)
    torch.manual_seed(0)
    model, rows = family().eval(), [*branching(16), *rows_of(4, longest=40)]
    alone = learned(model, rows, [[n] for n in range(12)])
    use_tree_attention(model)
    packed = learned(model, rows, [list(range(8)), [8, 9, 10, 11]])
    for outputs, expected in zip(packed, alone, strict=True):
        torch.testing.assert_close(outputs, expected, atol=1e-5, rtol=1e-4)


def test_a_window_costs_memory_by_its_own_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of 16,384 tokens had a mask of 268 million entries in each of the 40 sliding-window layers of a 12B."""
    monkeypatch.setattr(tree_attention, "LEAST_BLOCK", 1)
    masks: list[int] = []
    attend = tree_attention.sdpa_attention_forward

    def record(module: Any, query: Any, key: Any, value: Any, mask: torch.Tensor | None, **options: Any) -> Any:
        masks.append(0 if mask is None else mask.numel())
        return attend(module, query, key, value, mask, **options)

    monkeypatch.setattr(tree_attention, "sdpa_attention_forward", record)
    model, rows = gemma().eval(), rows_of(1, longest=80, seed=2)
    use_tree_attention(model)
    with torch.no_grad():
        completion_token_logprobs(model, pack(rows, [0]))
    tokens = len(rows[0])
    assert tokens > 5 * WINDOW, "the row is longer than the window"
    assert max(masks) <= WINDOW * 2 * WINDOW < tokens**2 / 8
    assert sum(masks) <= 2 * 2 * WINDOW * tokens, "two layers with a window"


def test_masks_are_made_once_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU each mask that is made from positions waits for a copy."""
    made: list[Any] = []
    mask = tree_attention._mask

    def record(*arguments: Any) -> torch.Tensor:
        made.append(arguments)
        return mask(*arguments)

    monkeypatch.setattr(tree_attention, "_mask", record)
    rows = branching(16)
    numbers: dict[int, int] = {}
    for layers in (2, 4):
        model = LlamaForCausalLM(LlamaConfig(**SIZE, num_hidden_layers=layers)).eval()
        use_tree_attention(model)
        made.clear()
        with torch.no_grad():
            model(**pack(rows, range(len(rows))).inputs)
        numbers[layers] = len(made)
    assert numbers[2] == numbers[4] > 0


@pytest.mark.parametrize(
    ("places", "most", "blocks"),
    [
        (range(5), 2, [(0, 2), (2, 4), (4, 5)]),
        ([3, 4, 90, 91, 99], 10, [(0, 2), (2, 5)]),
        ([7], 4, [(0, 1)]),
        ([], 4, []),
    ],
)
def test_blocks_of_queries(places: Any, most: int, blocks: list[tuple[int, int]]) -> None:
    assert list(query_blocks(places, most)) == blocks
