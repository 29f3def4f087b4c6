"""Prefix-tree attention: computes attention along the branches of a packed sequence only.

transformers separates packed texts by a mask over the full sequence, which costs its length squared: sixteen texts of a
thousand tokens cost sixteen times as much as alone. Here the tokens of each branch attend only to the tokens before
them in their texts. The rest of the network still processes one long sequence.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from envs.core.errors import BadInput
from models.local.cpu_kernels import compiles_by_shape
from training.data.packing import Branches
from training.data.prefix_tree import Path

IN_TREES = "in_trees"
"""Name of this attention in transformers' registry. It has no entry among the masks, so no mask is built for it."""

READ_AT = "read_at"
"""Model argument: the positions whose hidden states are read, (R,), sorted; without it all positions are."""

LEAST_BLOCK = 256
"""Queries of one block, unless the window is longer: smaller blocks use a GPU badly."""

_TAKEN = {"full_attention", "sliding_attention"}


class UnpackableLayers(BadInput):
    """The texts of a packed sequence would attend to each other."""


def use_tree_attention(model: Any, *, checked: bool = False) -> None:
    """Switches *model* to prefix-tree attention: it then needs `branches`. *checked*: a model of this configuration was
    switched before, so no trial pass is run; one with sharded weights could not run it. Raises UnpackableLayers as
    `check_layers` does, and where its layers do not call this attention as it needs."""
    # PyTorch's attention has no soft caps (Gemma 2) and no sinks (gpt-oss).
    check_layers(model.config, supported=model._supports_attention_backend and model._supports_sdpa)
    check_layers(model.config, supported=checked or _calls_attention_as_needed(model))
    model.set_attn_implementation(IN_TREES)


def _calls_attention_as_needed(model: Any) -> bool:
    """Runs *model* on two tokens up to its first attention."""
    implementation, tokens = model.config._attn_implementation, torch.tensor([[0, 1]], device=model.device)
    device = tokens.device.type
    products = (
        nullcontext() if device == "meta" else torch.autocast(device, torch.bfloat16)
    )  # linear layers may be half
    model.set_attn_implementation(_PROBE)
    try:
        with torch.no_grad(), products:
            model.base_model(input_ids=tokens, position_ids=tokens, branches=Branches((2,), ((0,),)), use_cache=False)
    except _AttentionCalled as call:
        return call.as_needed
    except TypeError:  # its forward pass takes no such arguments
        return False
    except RuntimeError:
        if tokens.device.type != "meta":
            raise
        return True  # a model without weights cannot compute what depends on values
    finally:
        model.set_attn_implementation(implementation)
    return False


def check_layers(config: Any, *, supported: bool = True) -> None:
    """Raises UnpackableLayers where a model of *config* has layers other than full causal or sliding-window attention
    (chunked attention, recurrence, convolution): packed texts would attend to each other. *supported*: its class uses
    transformers' attention interface."""
    text = config.get_text_config()
    kinds = set(getattr(text, "layer_types", None) or _TAKEN)
    if getattr(text, "attention_chunk_size", None):
        kinds.add("chunked_attention")
    if not supported:
        kinds.add("an attention of its own")
    if others := sorted(kinds - _TAKEN):
        raise UnpackableLayers(
            f"a model of type {config.model_type} cannot be trained on packed sequences, its layers have "
            f"{', '.join(others)}: use one with full or sliding-window attention in all layers"
        )


_PROBE = "in_trees_probe"


class _AttentionCalled(Exception):
    def __init__(self, *, as_needed: bool) -> None:
        super().__init__()
        self.as_needed = as_needed


def _probe(
    _module: nn.Module,
    _query: Tensor,
    _key: Tensor,
    _value: Tensor,
    attention_mask: Tensor | None = None,
    *,
    branches: Branches | None = None,
    **_: Any,
) -> NoReturn:
    """In place of the attention: raises _AttentionCalled. Nemotron's layers do not pass arguments on; Doge's make masks
    of their own."""
    raise _AttentionCalled(as_needed=branches is not None and attention_mask is None)


@dataclass(frozen=True, slots=True)
class _Block:
    """Queries that are computed together, and the keys that they see."""

    queries: slice
    keys: slice
    mask: Tensor | None
    """(1, 1, queries, keys), true where a query sees a key; None: all tokens, each sees those before it."""


@dataclass(frozen=True, slots=True)
class _BranchPlan:
    """How the tokens of a branch are computed."""

    places: Tensor | None
    """The positions in the branch that are read, (R,); None: all."""
    blocks: tuple[_Block, ...]
    """Of the R queries; none where no position is read."""


def _attention_in_trees(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    branches: Branches | None = None,
    sliding_window: int | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """*query*: (1, heads, L, width of a head), *key* and *value* alike. Returns (1, L, heads, width of a head). Raises
    ValueError without branches, and with a mask."""
    if branches is None or attention_mask is not None:
        raise ValueError("this model was loaded for packed sequences: it needs branches and no attention_mask")
    options["is_causal"] = True
    read_at = options.pop(READ_AT, None)
    attend = partial(sdpa_attention_forward, module, **options)
    plans = _plans(branches, sliding_window, read_at if _is_last(module) else None, query.device)
    if not compiles_by_shape(query.device, query.dtype) or isinstance(query, FakeTensor):
        return _in_branches(attend, (query, key, value), branches, plans), None  # fake tensors plan a GPU's memory
    with torch.autocast("cpu", enabled=False):  # float32 is as fast here and compiles no kernels
        wide = query.float(), key.float(), value.float()
        return _in_branches(attend, wide, branches, plans).bfloat16(), None


def _in_branches(
    attend: Callable[..., Any],
    heads: tuple[Tensor, Tensor, Tensor],
    branches: Branches,
    plans: Sequence[_BranchPlan],
) -> Tensor:
    """Attention of the queries, keys and values in *heads*, each (1, heads, L, width of a head). Returns (1, L, heads,
    width of a head)."""
    queries, keys, values = (tensor.split(branches.lengths, dim=2) for tensor in heads)
    outputs: list[Tensor] = []
    for own, path, plan in zip(queries, branches.paths, plans, strict=True):
        if not plan.blocks:
            outputs.append(own.new_zeros(1, own.shape[2], own.shape[1], values[0].shape[-1]))
            continue
        seen = _along(keys, path), _along(values, path)
        selected = own if plan.places is None else own.index_select(2, plan.places)
        output = _attended(attend, selected, seen, plan.blocks)
        outputs.append(output if plan.places is None else _spread(output, plan.places, own.shape[2]))
    return torch.cat(outputs, dim=1)


def _plans(
    branches: Branches, window: int | None, read_at: Tensor | None, device: torch.device
) -> tuple[_BranchPlan, ...]:
    """The plan of each branch, the same for all layers with the same *window*. Masks are made once per forward pass:
    moving one to a GPU in every layer would stop it each time."""
    key = (window, read_at is None)
    if key not in branches.plans:
        places = _places(branches.lengths, read_at)
        branches.plans[key] = tuple(
            _plan(own, length, sum(branches.lengths[number] for number in path[:-1]), window, device)
            for own, length, path in zip(places, branches.lengths, branches.paths, strict=True)
        )
    return branches.plans[key]


def _plan(places: Sequence[int], length: int, before: int, window: int | None, device: torch.device) -> _BranchPlan:
    """The plan of a branch of *length* tokens that has *before* tokens before it and is read at *places*."""
    read = None if len(places) == length else torch.tensor(places, device=device)
    seen, positions = before + length, [before + place for place in places]
    longer = window is not None and seen > window
    if positions and not longer and _mask_is_implied(positions, seen):
        return _BranchPlan(read, (_Block(slice(None), slice(None), None),))
    blocks: list[_Block] = []
    masks: dict[tuple[int, ...], Tensor] = {}
    for first, last in query_blocks(positions, max(LEAST_BLOCK, window or 0)):
        own = positions[first:last]
        start = max(0, own[0] - window + 1) if window is not None else 0
        end = own[-1] + 1
        relative = tuple(place - start for place in own)
        if relative not in masks:  # most blocks of a long branch have the same mask
            masks[relative] = _mask(relative, end - start, window, device)
        blocks.append(_Block(slice(first, last), slice(start, end), masks[relative]))
    return _BranchPlan(read, tuple(blocks))


def _along(branches: Sequence[Tensor], path: Path) -> Tensor:
    """Concatenates the tensors on *path*, (1, heads, S, width); a single branch is not copied."""
    parts = [branches[number] for number in path]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def _is_last(module: Any) -> bool:
    """Whether *module* belongs to the last layer, whose output no token attends to."""
    return getattr(module, "layer_idx", None) == module.config.num_hidden_layers - 1


def _places(lengths: Sequence[int], read_at: Tensor | None) -> Iterator[Sequence[int]]:
    """The positions to read in each branch, relative to its start; all positions without *read_at*, which is sorted."""
    read = None if read_at is None else read_at.tolist()
    end = 0
    for length in lengths:
        start, end = end, end + length
        if read is None:
            yield range(length)
        else:
            yield [place - start for place in read[bisect_left(read, start) : bisect_left(read, end)]]


def _spread(output: Tensor, places: Tensor, length: int) -> Tensor:
    """Scatters *output*, (1, R, heads, width), to *places* of *length* tokens, with zeros elsewhere."""
    full = output.new_zeros(1, length, *output.shape[2:])
    return full.index_copy(1, places, output)


def _attended(
    attend: Callable[..., Any], queries: Tensor, seen: tuple[Tensor, Tensor], blocks: Sequence[_Block]
) -> Tensor:
    """Attention of *queries*, (1, heads, R, width), to the keys and values *seen*, (1, heads, S, width). Returns (1, R,
    heads, width)."""
    keys, values = seen
    outputs = [
        attend(queries[:, :, block.queries], keys[:, :, block.keys], values[:, :, block.keys], block.mask)[0]
        for block in blocks
    ]
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1)


def _mask_is_implied(places: Sequence[int], seen: int) -> bool:
    """Whether `is_causal` gives the mask of queries at *places*: they are all tokens, or the last one alone."""
    return len(places) == seen or list(places) == [seen - 1]


def query_blocks(places: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Splits the sorted *places* into blocks that span at most *most* tokens: index of the first place, and behind the
    last one."""
    first = 0
    while first < len(places):
        last = bisect_left(places, places[first] + most)
        yield first, last
        first = last


def _mask(places: Sequence[int], seen: int, window: int | None, device: torch.device) -> Tensor:
    """The attention mask, (1, 1, R, seen), of the queries at *places* among *seen* tokens: earlier tokens within
    *window* only."""
    rows, columns = torch.tensor(places, device=device)[:, None], torch.arange(seen, device=device)
    mask = columns <= rows
    return (mask & (columns > rows - window) if window is not None else mask)[None, None]


AttentionInterface.register(IN_TREES, _attention_in_trees)
AttentionInterface.register(_PROBE, _probe)
