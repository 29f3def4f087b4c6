"""Log-probabilities of completions from packed sequences: a group's prompt is computed once, not once per completion.

TRL pads every row of a pass to the longest one, and each completion of a group repeats the prompt. Here the rows of a
pass are packed into one prefix tree (:mod:`training.data.packing`), without padding. Values and gradients are those of
the rows alone, up to rounding. TRL's own output layer reads the hidden states, so temperature, soft caps and chunks of
the vocabulary are its own.

Models that see images are padded as TRL does: their positions and masks depend on the images.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

import torch
from torch import Tensor, nn

from training.data.packing import LengthClass, PackedSequence, group_by_class, one_class, pack, row_tokens
from training.data.rows import Row
from training.engine.packed_model import accept_packed
from training.engine.replaced_attributes import replaced
from training.engine.rotary_lengths import length_class
from training.engine.tree_attention import IN_TREES, UnpackableLayers

PREDICTORS: Final = "predictors"
"""Argument of a prepared model: positions whose hidden states its output layer reads, (A,), in any order."""


def prepare_packed(model: Any, *, checked: bool = False) -> bool:
    """Lets the causal *model* take packed sequences through TRL's output layer; False, with *model* unchanged, where
    its layers cannot separate the texts of a packed sequence, or route tokens to experts with a loss over all of them.
    While `plain_attention` is not in use, it takes nothing else. *checked*: see
    :func:`training.engine.tree_attention.use_tree_attention`."""
    if hasattr(model.config.get_text_config(), "output_router_logits"):
        return False
    try:
        accept_packed(model, checked=checked)
    except UnpackableLayers:
        return False
    _Selected(model.base_model)
    return True


@contextmanager
def plain_attention(model: Any, implementation: str) -> Generator[None]:
    """Lets a prepared *model* take padded rows with the named attention *implementation*, as sampling does."""
    model.set_attn_implementation(implementation)
    try:
        yield
    finally:
        model.set_attn_implementation(IN_TREES)


@contextmanager
def in_group_order() -> Generator[None]:
    """Keeps the completions of a group together in the passes of a step; TRL shuffles them. An update uses all passes,
    so that their order does not change it."""
    from trl.trainer import grpo_trainer

    with replaced(grpo_trainer, "shuffle_sequence_dict", _unchanged):
        yield


def _unchanged(rows: dict[str, Any]) -> dict[str, Any]:
    return rows


class PackedPasses:
    """Mixin for TRL's GRPOTrainer that computes log-probabilities from packed passes of whole groups."""

    packs: bool
    """Whether passes are packed. The model then takes padded rows within `plain_passes` only."""
    accelerator: Any
    model: Any
    ref_model: Any
    _attention: str
    """The attention implementation of padded rows."""
    _class_of: LengthClass

    def _padded(self) -> Any:
        """The methods of TRL's trainer, which pad rows."""
        return super()

    def begin_packing(self, model: Any, *, wanted: bool, longest: int, processes: int) -> None:
        """Prepares *model* before TRL wraps it; where its layers do not allow packing, its rows are padded. *longest*:
        tokens of the longest row."""
        self._attention = model.config._attn_implementation
        self._class_of = length_class(model)
        # The number of packs of a pass then depends on its rows, and processes that share weights compute together.
        uneven = self._class_of(1) != self._class_of(longest) and processes > 1
        self.packs = wanted and not uneven and prepare_packed(model)

    def pack_reference(self) -> None:
        """Prepares the reference that TRL has loaded, if any. FSDP has sharded it."""
        if self.packs and self.ref_model is not None:
            prepare_packed(self.accelerator.unwrap_model(self.ref_model), checked=True)

    def plain_passes(self) -> AbstractContextManager[None]:
        """In it the model takes padded rows, to sample or to evaluate."""
        model = self.accelerator.unwrap_model(self.model)
        return plain_attention(model, self._attention) if self.packs else nullcontext()

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        with in_group_order() if self.packs else nullcontext():
            return self._padded()._prepare_inputs(generation_batch)

    def _generate_single_turn(self, *args: Any, **options: Any) -> Any:
        with self.plain_passes():
            return self._padded()._generate_single_turn(*args, **options)

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Tensor, attention_mask: Tensor, logits_to_keep: int, **fields: Any
    ) -> Any:
        """Log-probabilities, entropies and the auxiliary loss, which packed passes do not have."""
        if not self.packs:
            return self._padded()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, **fields
            )
        size = fields.get("batch_size") or len(input_ids)
        parts: list[tuple[Tensor, Tensor | None]] = []
        for ids, mask in zip(input_ids.split(size), attention_mask.split(size), strict=True):
            with self.accelerator.autocast():
                parts.append(packed_logprobs(model, ids, mask, logits_to_keep, self._class_of))
        entropies = [entropy for _, entropy in parts if entropy is not None]
        return torch.cat([values for values, _ in parts]), torch.cat(entropies) if entropies else None, None


class _Selected:
    """Gives the output layer of a *backbone* only the hidden states at the argument `PREDICTORS`."""

    def __init__(self, backbone: nn.Module) -> None:
        self._at: Tensor | None = None
        backbone.register_forward_pre_hook(self._take, with_kwargs=True)
        backbone.register_forward_hook(self._select)

    def _take(self, _: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        self._at = options.pop(PREDICTORS, None)
        return args, options

    def _select(self, _backbone: nn.Module, _args: Any, output: Any) -> Any:
        """(1, L, D) to (1, A, D)."""
        if self._at is not None:
            output.last_hidden_state = output.last_hidden_state[:, self._at]
        return output


def packed_logprobs(
    model: Any, input_ids: Tensor, attention_mask: Tensor, completions: int, class_of: LengthClass = one_class
) -> tuple[Tensor, Tensor | None]:
    """Log-probabilities and entropies, each (B, *completions*), of the last *completions* tokens of padded rows.

    *input_ids* and *attention_mask*: (B, T), prompts padded on the left, completions on the right. *model*: prepared,
    with TRL's output layer. Values at padding are 0, except the first one of a row without a completion. The entropy is
    None where the output layer has none. *class_of*: the model's classes of lengths; each is a forward pass.
    """
    rows = _rows(input_ids.tolist(), attention_mask.tolist(), input_ids.shape[1] - completions)
    groups = group_by_class(rows, range(len(rows)), class_of)
    order = torch.tensor([row for group in groups for row in group], device=input_ids.device).argsort()
    logprobs: list[Tensor] = []
    entropies: list[Tensor] = []
    for group in groups:
        packed = pack(rows, group).to(input_ids.device)
        out = packed_output(model, packed)
        padded = _PaddedRows(packed, len(group), completions)
        logprobs.append(padded.of(out.log_probs[0]))
        if out.entropy is not None:
            entropies.append(padded.of(out.entropy[0]))
    return torch.cat(logprobs)[order], torch.cat(entropies)[order] if entropies else None


def packed_output(model: Any, packed: PackedSequence) -> Any:
    """The output of TRL's output layer for the completion tokens of *packed*, (1, A) each."""
    return model(
        **packed.read_at(packed.predictors),
        **{PREDICTORS: packed.predictors},
        shift_labels=packed.targets[None],
        fused_lm_head=True,
    )


def _rows(ids: list[list[int]], mask: list[list[int]], split: int) -> list[Row]:
    """The rows without padding. A row that is excluded from the loss, whose completion is masked, keeps one token: a
    pass without any token to predict would have no gradient."""
    rows: list[Row] = []
    for row, (own, kept) in enumerate(zip(ids, mask, strict=True)):
        prompt = tuple(token for token, real in zip(own[:split], kept[:split], strict=True) if real)
        rows.append(Row(prompt, tuple(own[split : split + max(1, sum(kept[split:]))]), row, 0))
    return rows


class _PaddedRows:
    """Puts values of the completion tokens of distinct texts, (A,), into padded rows, (B, C)."""

    def __init__(self, packed: PackedSequence, rows: int, completions: int) -> None:
        self._places, owners = row_tokens(packed)
        self._shape = rows, completions
        counts = torch.bincount(owners, minlength=rows)
        starts = (counts.cumsum(0) - counts)[owners]
        self._slots = owners * completions + torch.arange(len(owners), device=owners.device) - starts

    def of(self, values: Tensor) -> Tensor:
        rows, completions = self._shape
        empty = values.new_zeros(rows * completions)
        return empty.index_copy(0, self._slots, values[self._places]).view(rows, completions)
