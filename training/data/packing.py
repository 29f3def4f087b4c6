"""Packs rows into sequences without padding, and computes a prefix that several rows share once.

Attempts at one task start on the same page, and every policy prompt starts with the same instructions. A packed
sequence is the prefix tree of its rows (:mod:`training.data.prefix_tree`): each token of a shared prefix is computed
once and counts in every row that contains it. The loss equals that of the rows computed alone and so does the gradient,
except for dropout. On MiniWoB++ half of a phase's tokens are shared.

The model's attention must follow the tree (:mod:`training.engine.tree_attention`). Any other model would let one row
attend to the completion of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from models.local.cpu_kernels import compiles_by_shape, padding
from training.data.prefix_tree import Path, shared_length, tree_of
from training.data.rows import Row

LengthClass = Callable[[int], tuple[int, ...]]
"""The class of a length in tokens. The texts of a packed sequence are of one class
(:mod:`training.engine.rotary_lengths`)."""

PAD_LENGTH_TO = 64
PAD_READ_TO = 16
"""On a CPU in bfloat16, lengths and numbers of positions that are read are padded to multiples of these
(:mod:`models.local.cpu_kernels`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Branches:
    """The branches of a packed sequence in one forward pass, an argument of the model's attention."""

    lengths: tuple[int, ...]
    paths: tuple[Path, ...]
    plans: dict[Any, Any] = field(default_factory=dict)
    """What the attention computed in one layer and reads in the others."""


@dataclass(frozen=True, slots=True)
class PackedSequence:
    """N rows as T distinct texts (prompt and completion) in a prefix tree of L tokens, with A completion tokens."""

    input_ids: Tensor
    """(1, L)."""
    position_ids: Tensor
    """(1, L), 0-based within each text."""
    predictors: Tensor
    """(A,): position of the token whose logits predict a completion token; logits are needed at no other position.
    Texts with the same prompt predict their first completion tokens from the same position."""
    targets: Tensor
    """(A,): the completion token to predict."""
    owners: Tensor
    """(A,): the index, among the T texts, of the text that the token belongs to."""
    states: Tensor
    """(T,): position of each text's last prompt token, where a critic reads the state."""
    texts: Tensor
    """(N,): the index of each row's text. It maps values of texts to values of rows."""
    rows: tuple[int, ...]
    """(N,): index of each row in the data."""
    lengths: tuple[int, ...]
    """(B,): number of tokens of each branch of the tree. Branches are stored in sequence; the lengths add up to L."""
    paths: tuple[Path, ...]
    """(B,): the branches that a branch's tokens attend to, in the order of their texts, the branch itself last."""

    def read_at(self, positions: Tensor) -> dict[str, Any]:
        """Arguments for a transformers model whose hidden states are read only at *positions*, (R,). Hidden states at
        other positions may be wrong (:mod:`training.engine.packed_model`)."""
        distinct = positions.unique()
        tokens = self.input_ids.shape[1]
        if not compiles_by_shape(self.input_ids.device, torch.float32):  # stages use an autocast
            return {**self.inputs, "read_at": distinct}
        unread = padding(len(distinct), PAD_READ_TO)
        padded = unread + padding(tokens + unread, PAD_LENGTH_TO)
        places = torch.arange(tokens, tokens + unread, device=positions.device)
        return {**self._inputs(padded), "read_at": torch.cat([distinct, places])}

    @property
    def inputs(self) -> dict[str, Any]:
        """Arguments for a transformers model that computes all positions."""
        return self._inputs(0)

    def _inputs(self, padded: int) -> dict[str, Any]:
        """Arguments for a transformers model, with *padded* tokens of padding at the end, as a branch of no text."""
        branches = Branches(self.lengths, self.paths)
        if padded:
            branches = Branches((*self.lengths, padded), (*self.paths, (len(self.lengths),)))
        return {
            "input_ids": pad(self.input_ids, (0, padded)),
            "position_ids": pad(self.position_ids, (0, padded)),
            "branches": branches,
            "use_cache": False,
        }

    def to(self, device: torch.device | str) -> PackedSequence:
        moved = {name: getattr(self, name).to(device) for name in _TENSORS}
        return PackedSequence(**moved, rows=self.rows, lengths=self.lengths, paths=self.paths)


_TENSORS = ("input_ids", "position_ids", "predictors", "targets", "owners", "states", "texts")


def one_class(_length: int) -> tuple[int, ...]:
    """The class of all lengths, for models that read texts of any length alike."""
    return ()


def group_by_class(rows: Sequence[Row], indices: Iterable[int], class_of: LengthClass) -> list[tuple[int, ...]]:
    """Groups *indices* by the class of their rows' lengths. Groups are in the order of their first index."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for index in indices:
        groups.setdefault(class_of(len(rows[index])), []).append(index)
    return [tuple(group) for group in groups.values()]


def group_by_prompt(rows: Sequence[Row], indices: Iterable[int]) -> list[tuple[int, ...]]:
    """Groups *indices* by equal prompts. Groups are in the order of their first index."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for index in indices:
        groups.setdefault(rows[index].prompt, []).append(index)
    return [tuple(group) for group in groups.values()]


def prefix_order(rows: Sequence[Row], indices: Iterable[int]) -> list[int]:
    """Sorts *indices* so that rows with a common prefix are neighbours."""
    return sorted(indices, key=lambda index: (_text(rows[index]), index))


def added_tokens(row: Row, before: Row | None) -> int:
    """Number of tokens that *row* adds to a packed sequence after *before*, its neighbour in :func:`prefix_order`."""
    return len(row) - (0 if before is None else shared_length(_text(before), _text(row)))


def pack(rows: Sequence[Row], indices: Sequence[int]) -> PackedSequence:
    """Packs the rows at *indices* into one sequence."""
    parts = sorted({(_text(rows[index]), len(rows[index].prompt)) for index in indices})
    numbers = {part: number for number, part in enumerate(parts)}
    tree = tree_of([text for text, _ in parts])
    lengths = [len(branch.tokens) for branch in tree.branches]
    ends = list(accumulate(lengths))
    spans = [range(end - length, end) for end, length in zip(ends, lengths, strict=True)]
    predictors: list[int] = []
    targets: list[int] = []
    owners: list[int] = []
    states: list[int] = []
    for number, ((text, prompt), path) in enumerate(zip(parts, tree.paths, strict=True)):
        places = [place for branch in path for place in spans[branch]]
        states.append(places[prompt - 1])
        predictors += places[prompt - 1 : -1]
        targets += text[prompt:]
        owners += [number] * (len(text) - prompt)
    return PackedSequence(
        input_ids=torch.tensor([[token for branch in tree.branches for token in branch.tokens]]),
        position_ids=torch.tensor([[branch.depth + n for branch in tree.branches for n in range(len(branch.tokens))]]),
        predictors=torch.tensor(predictors),
        targets=torch.tensor(targets),
        owners=torch.tensor(owners),
        states=torch.tensor(states),
        texts=torch.tensor([numbers[_text(rows[index]), len(rows[index].prompt)] for index in indices]),
        rows=tuple(indices),
        lengths=tuple(lengths),
        paths=tuple((*branch.before, number) for number, branch in enumerate(tree.branches)),
    )


def packed_sequences(
    rows: Sequence[Row], max_tokens: int, class_of: LengthClass = one_class
) -> Iterator[PackedSequence]:
    """Packs every row once into sequences of at most *max_tokens*; rows with a common prefix go together. A longer row
    is packed alone."""
    for group in group_by_class(rows, range(len(rows)), class_of):
        yield from _packed(rows, group, max_tokens)


def _packed(rows: Sequence[Row], indices: Sequence[int], max_tokens: int) -> Iterator[PackedSequence]:
    taken: list[int] = []
    tokens = 0
    for index in prefix_order(rows, indices):
        more = added_tokens(rows[index], rows[taken[-1]] if taken else None)
        if taken and tokens + more > max_tokens:
            yield pack(rows, taken)
            taken, tokens, more = [], 0, len(rows[index])
        taken.append(index)
        tokens += more
    if taken:
        yield pack(rows, taken)


def sum_by_row(values: Tensor, packed: PackedSequence) -> Tensor:
    """Sums *values* (A,) of the completion tokens to one number per row, (N,)."""
    sums = torch.zeros(len(packed.states), dtype=values.dtype, device=values.device)
    return sums.index_add(0, packed.owners, values)[packed.texts]


def row_tokens(packed: PackedSequence) -> tuple[Tensor, Tensor]:
    """(places, owners), both (R,), for the completion tokens of all N rows: the index of each token among the A tokens
    of the distinct texts, and the index of its row. Rows with the same text have the same tokens but their own
    advantages."""
    counts = torch.bincount(packed.owners, minlength=len(packed.states)).tolist()
    starts = [0, *accumulate(counts)]
    texts: list[int] = packed.texts.tolist()
    places = torch.cat([torch.arange(starts[text], starts[text + 1]) for text in texts])
    owners = torch.cat([torch.full((counts[text],), number) for number, text in enumerate(texts)])
    return places.to(packed.owners.device), owners.to(packed.owners.device)


def _text(row: Row) -> tuple[int, ...]:
    return (*row.prompt, *row.completion)
