"""Computes the peak memory of a training or scoring pass before anything is loaded, by role.

The model's own code runs forward and backward on fake tensors, which have shapes and no data, and the bytes of all live
tensors are counted. On a CPU the peak equals that of the allocator (`tests/training/engine/test_memory_plan.py`). On a
GPU kernels need workspace, the allocator leaves gaps, and PyTorch's context takes memory: see `GAPS` and `RESERVE`.

Optimizer, gradients and sharding are arithmetic: AdamW holds two moments of each trained weight, in its type. DeepSpeed
holds a copy of the weights, too, and a buffer in which gradients are sent.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from envs.core.record import Record
from training.data.packing import PackedSequence, pack
from training.data.rows import Row
from training.engine.sharding import REDUCE_BUCKET

GB: Final = 10**9
RESERVE: Final = 0.08
"""Share of a GPU's memory that a plan leaves for PyTorch's context and the buffers of communication; the context was
0.3 % of an H100 (docs/results/gpu.md), the buffers were not measured."""
GAPS: Final = 0.15
"""What the allocator reserves beside the planned bytes, as a share of them: gaps and workspace of kernels. It was
14.8 % in the largest measured case (docs/results/gpu.md)."""
PLANNED_ON: Final = torch.device("cpu")
"""The device of the fake tensors, whose autocast is planned for all devices."""
MOMENTS: Final = 2


class Sharing(Record):
    """How processes share a model, one process for each GPU."""

    processes: int = 1
    sharded: bool = False
    """Each holds a part of the weights, gradients and moments (FSDP 2); otherwise the whole weights."""
    zero: Literal[0, 1, 2] = 0
    """Stage of DeepSpeed's ZeRO: each holds a part of the optimizer's states, from 2 on of the gradients, too. 0 is
    without DeepSpeed: all of both, unless *sharded* (DDP)."""
    foreach: bool = False
    """The optimizer updates all weights at once, as PyTorch's does on a GPU."""

    @property
    def reported(self) -> dict[str, Any]:
        """The fields that a plan reports."""
        return self.model_dump(exclude={"foreach"})


class Peak(Record):
    """Bytes of one process at the peak of a stage."""

    stage: str
    weights: int
    reference: int = 0
    """Weights of another model that is in memory, too; 0 where references are scored before the stage."""
    gradients: int = 0
    optimizer: int = 0
    gathered: int = 0
    """Full weights and gradients of the layers that are computed, where they are sharded."""
    activations: int = 0
    logits: int = 0
    cache: int = 0
    """Keys and values of the tokens while completions are sampled."""
    sampler: int = 0
    """Memory reserved by another program on the GPU that samples completions."""
    update: int = 0
    """Temporaries of the optimizer step, which has no activations and logits."""
    loaded: int = 0
    """Main memory in which a process has the weights before they are on the GPU; it is no part of `total`."""

    @property
    def total(self) -> int:
        held = self.weights + self.reference + self.gradients + self.optimizer + self.cache + self.sampler
        return held + max(self.gathered + self.activations + self.logits, self.update)

    @property
    def reserved(self) -> int:
        """`total` with what PyTorch's allocator reserves beside it; another program's memory has its own gaps."""
        return self.total + round(GAPS * (self.total - self.sampler))


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of live tensors that operations make, as (others, logits): `now`, and the largest sum, `peak`.

    Tensors of the storages *known* do not count.
    """

    def __init__(self, vocabulary: int, known: set[int]) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._known = known
        self._sizes: dict[int, tuple[int, int]] = {}
        self.now = (0, 0)
        self.peak = (0, 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for item in tree_iter(out):
            if isinstance(item, Tensor):
                self._count(item)
        return out

    def _count(self, tensor: Tensor) -> None:
        storage, key = tensor.untyped_storage(), storage_key(tensor)
        if key in self._sizes or key in self._known:
            return
        is_logits = tensor.dim() > 1 and tensor.shape[-1] == self._vocabulary
        size = (0, storage.nbytes()) if is_logits else (storage.nbytes(), 0)
        self._sizes[key] = size
        self._add(size, 1)
        if sum(self.now) > sum(self.peak):
            self.peak = self.now
        weakref.finalize(storage, self._forget, key)

    def _forget(self, key: int) -> None:
        self._add(self._sizes.pop(key, (0, 0)), -1)

    def _add(self, size: tuple[int, int], sign: int) -> None:
        self.now = self.now[0] + sign * size[0], self.now[1] + sign * size[1]


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass to plan."""

    stage: str
    build: Callable[[], nn.Module]
    """Makes the model; called on the device `meta`."""
    run: Callable[[Any], Tensor]
    """The forward pass: the loss, or without *trains* any output."""
    vocabulary: int
    trains: bool = True
    more_weights: int = 0
    """Bytes of weights beside the model's, such as those of inactive adapters."""
    merges: bool = False
    """At its end adapters are merged into float32 weights in main memory, by the first process."""


def plan_pass(planned: Pass, sharing: Sharing | None = None) -> Peak:
    """The peak of *planned* in one of the processes. Raises what the model raises on wrong settings."""
    sharing = sharing or Sharing()
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with torch.device("meta"):
        model = planned.build()
    with mode:
        _become_fake(model)
        model.train(planned.trains)
        trained = [weight for weight in model.parameters() if weight.requires_grad] if planned.trains else []
        for weight in trained:
            weight.grad = torch.zeros_like(weight)
    held = [*model.parameters(), *model.buffers(), *(weight.grad for weight in trained if weight.grad is not None)]
    live = LiveBytes(planned.vocabulary, set(map(storage_key, held)))
    with mode, live, torch.set_grad_enabled(planned.trains):
        output = planned.run(model)
        if planned.trains:
            output.backward()
        del output
    others, logits = live.peak
    learned = sum(map(_bytes, trained))
    parts = sharing.processes if sharing.sharded and planned.trains else 1
    weights = sum(map(_bytes, (*model.parameters(), *model.buffers())))
    merged = sum(4 * weight.numel() for weight in model.parameters())
    updated = learned // (sharing.processes if sharing.zero else parts)
    return Peak(
        stage=planned.stage,
        weights=(weights + planned.more_weights) // parts,
        gradients=_gradients(trained, sharing),
        optimizer=(MOMENTS + (sharing.zero > 0)) * updated,  # ZeRO updates a copy of its part of the weights
        gathered=_gathered(model) if parts > 1 else 0,
        activations=others,
        logits=logits,
        update=updated if sharing.foreach else 0,
        loaded=max(weights, merged) if planned.merges and sharing.processes == 1 else weights,
    )


def _gradients(trained: list[nn.Parameter], sharing: Sharing) -> int:
    """Bytes of the gradients, and of the buffers in which they are sent."""
    learned = sum(map(_bytes, trained))
    if sharing.sharded:
        return learned // sharing.processes
    if not sharing.zero:
        return learned if sharing.processes == 1 else 2 * learned  # DDP sends from a copy
    largest = max(trained, key=_bytes, default=None)
    if largest is None:
        return 0
    bucket = min(learned, REDUCE_BUCKET * largest.element_size())
    sent = 2 * bucket  # it is copied once more while it is sent
    if sharing.zero == 1:
        return learned + sent
    alone = _bytes(largest) if _bytes(largest) > bucket else 0  # a weight that is larger is sent by itself
    return learned // sharing.processes + sent + alone


def storage_key(tensor: Tensor) -> int:
    """Identifies the storage, which views share."""
    storage: Any = tensor.untyped_storage()
    return storage._cdata


def _become_fake(model: nn.Module) -> None:
    """Replaces the tensors of *model*, which are on the device `meta`, by fake ones on the CPU; shared ones stay
    shared. Call it within a FakeTensorMode."""
    made: dict[int, Tensor] = {}
    module: Any
    for module in model.modules():
        own: dict[str, Any]
        for own in (module._parameters, module._buffers):
            for name, tensor in own.items():
                if tensor is not None:
                    own[name] = made.setdefault(id(tensor), _fake_copy(tensor))


def _fake_copy(tensor: Tensor) -> Tensor:
    fake = torch.empty(tensor.shape, dtype=tensor.dtype, device=PLANNED_ON)
    return nn.Parameter(fake, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else fake


def _gathered(model: nn.Module) -> int:
    """Full weights and gradients of FSDP 2 at its peak: of what is in no layer, and of two layers, one of which is
    prefetched; gradients of one layer."""
    units = [part for part in model.modules() if isinstance(part, nn.ModuleList) and len(part)]
    layers = [sum(map(_bytes, layer.parameters())) for unit in units for layer in unit]
    in_layers = {id(weight) for unit in units for weight in unit.parameters()}
    rest = sum(_bytes(weight) for weight in model.parameters() if id(weight) not in in_layers)
    return 2 * rest + 3 * max(layers, default=0)


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


@dataclass(frozen=True, slots=True)
class PlannedSequence(PackedSequence):
    """A packed sequence whose distinct predictors are known: on fake tensors they would have no values."""

    distinct: Tensor
    """(R,): the predictors, sorted, each once."""

    def read_at(self, positions: Tensor) -> dict[str, Any]:
        return {**self.inputs, "read_at": self.distinct if positions is self.predictors else positions}


def planned_rows(tokens: int, longest: int, answer_share: float) -> tuple[Row, ...]:
    """Rows of *longest* tokens without a shared prefix that fill a packed sequence of *tokens*, or one longer row.

    *answer_share*: share of a row's tokens that is its completion.
    """
    answer = max(1, round(longest * answer_share))
    return tuple(
        Row((10 + number, *[10] * (longest - answer - 1)), (11,) * answer, number, 0)
        for number in range(max(1, tokens // longest))
    )


def planned_sequence(rows: tuple[Row, ...]) -> PackedSequence:
    """Packs *rows* for a planned pass."""
    packed = pack(rows, range(len(rows)))
    own = {field.name: getattr(packed, field.name) for field in fields(packed)}
    return PlannedSequence(**own, distinct=packed.predictors.unique())
