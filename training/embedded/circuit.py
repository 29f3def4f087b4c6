"""Initialises attention heads with a partially working copy circuit, so that training time is spent on the tasks.

From random weights a small transformer needs tens of thousands of examples before its two-layer copying circuit
("induction heads", Olsson et al. 2022) forms, and copying is most of what this model does. Here it is laid out by hand:

- layer 0: some heads look at the token 1, 2 or 3 places back (query and key biases, rotated apart by RoPE) and write
  what stands there into a subspace of their own;
- layers 1 and 2: half of the heads look for places whose predecessor is the current token, and hand on what stands
  there; one head looks for other occurrences of the current token itself.

All of it is only a starting point: every weight is trained. The idea of imprinting structure that training would find
is that of mimetic initialisation (Trockman and Kolter 2023).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import LlamaForCausalLM

NEIGHBOUR_PAIRS = 3
"""Rotary pairs, fastest first, that distinguish adjacent positions."""
NEIGHBOUR_GAIN = 8.0
MATCH_GAIN = 1.7
"""Query and key gain with which a match outweighs a hundred other tokens, for unit-variance inputs."""
WRITE_NORM = 0.7
"""Norm of what a neighbour head writes, relative to the embedding's norm of 1."""


@torch.no_grad()
def imprint(model: LlamaForCausalLM, seed: int = 0) -> None:
    """Overwrites the attention weights of the first three layers of *model*, which must have attention biases."""
    draw = torch.Generator().manual_seed(seed)
    width, heads = model.config.hidden_size, model.config.num_attention_heads
    head = width // heads
    embedding = model.model.embed_tokens.weight
    embedding.copy_(torch.randn(embedding.shape, generator=draw) / width**0.5)
    first: Any = model.model.layers[0].self_attn
    slow = _slow_rows(head)
    readings = [_orthonormal(len(slow), width, draw) for _ in range(3)]
    writings = [_orthonormal(len(slow), width, draw) for _ in range(3)]
    for h, back in enumerate((1, 2, 3)[: heads - 1]):
        turn = _frequencies(model) * back
        _neighbour(first, slice(h * head, (h + 1) * head), turn, slow, reading=readings[h], writing=writings[h])
    for layer in (1, 2):
        attention: Any = model.model.layers[layer].self_attn
        for h in range(max(1, heads // 2)):
            _matching(
                attention, h, head, slow, query=readings[0], key=writings[0], carried=_orthonormal(head, width, draw)
            )
        own = _orthonormal(len(slow), width, draw)
        _matching(attention, heads - 1, head, slow, query=own, key=own, carried=_orthonormal(head, width, draw))


def _frequencies(model: LlamaForCausalLM) -> Tensor:
    rotary: Any = model.model.rotary_emb
    return rotary.inv_freq


def _slow_rows(head: int) -> list[int]:
    """Rows of a head whose rotation is slow enough to compare contents over some hundred tokens (both halves)."""
    pairs = head // 2
    start = pairs // 3
    return [*range(start, pairs), *range(pairs + start, head)]


def _orthonormal(rows: int, columns: int, draw: torch.Generator) -> Tensor:
    """[rows, columns] with orthonormal rows."""
    return torch.linalg.qr(torch.randn(columns, rows, generator=draw))[0].T


def _neighbour(attention: Any, rows: slice, turn: Tensor, slow: list[int], *, reading: Tensor, writing: Tensor) -> None:
    """Makes the head of *rows* attend at a fixed offset to the left and copy `reading` to `writing`.

    *turn* is the angle by which RoPE turns each pair [head / 2] over that way.
    """
    head = rows.stop - rows.start
    for projection in (attention.q_proj, attention.k_proj):
        projection.weight[rows] *= 0.1
    for i in range(NEIGHBOUR_PAIRS):
        attention.q_proj.bias[rows.start + i] = NEIGHBOUR_GAIN
        attention.k_proj.bias[rows.start + i] = NEIGHBOUR_GAIN * torch.cos(turn[i])
        attention.k_proj.bias[rows.start + head // 2 + i] = NEIGHBOUR_GAIN * torch.sin(turn[i])
    values = torch.zeros(head, reading.shape[1])
    values[: len(slow)] = reading
    attention.v_proj.weight[rows] = values
    outputs = torch.zeros(head, writing.shape[1])
    outputs[: len(slow)] = writing * (WRITE_NORM / len(slow) ** 0.5)
    attention.o_proj.weight[:, rows] = outputs.T


def _matching(
    attention: Any, h: int, head: int, slow: list[int], *, query: Tensor, key: Tensor, carried: Tensor
) -> None:
    """Makes head *h* attend to positions whose `key` content equals the current position's `query` content."""
    start = h * head
    rows = torch.tensor([start + row for row in slow])
    attention.q_proj.weight[start : start + head] *= 0.1
    attention.k_proj.weight[start : start + head] *= 0.1
    attention.q_proj.weight[rows] += MATCH_GAIN * query
    attention.k_proj.weight[rows] += MATCH_GAIN * key
    attention.v_proj.weight[start : start + head] = carried
    attention.o_proj.weight[:, start : start + head] = carried.T * (WRITE_NORM / carried.shape[0] ** 0.5)
