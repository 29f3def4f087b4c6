"""Rows of random tokens, for tests of training."""

from __future__ import annotations

import torch

from training.data.rows import Row


def rows_of(count: int, *, longest: int = 20, seed: int = 0) -> list[Row]:
    """Prompts and completions of 3 to *longest* - 1 tokens each; equal for equal seeds."""
    draw = torch.Generator().manual_seed(seed)
    made_rows: list[Row] = []
    for index in range(count):
        lengths = torch.randint(3, longest, (2,), generator=draw).tolist()
        prompt, action = (tuple(torch.randint(10, 900, (n,), generator=draw).tolist()) for n in lengths)
        made_rows.append(Row(prompt, action, index, 0))
    return made_rows
