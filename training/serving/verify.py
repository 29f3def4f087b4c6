"""Verifies an export: compares its logits with those of its source checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from envs.core.errors import BadInput
from envs.core.record import Record
from models.base import Message
from models.local.loading import Checkpoint, read_checkpoint
from models.prompting.prompt_tokens import PromptTokens
from models.vision.checkpoints import is_vision_checkpoint
from training.serving.artifact import Dtype, Manifest, read_manifest

BOUNDS: Final[Mapping[Dtype, float]] = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 0.015}
"""Maximum of `Verification.difference`, by the type of merged weights. Rounding: 1e-6, 4e-4 and 0.004, for the embedded
model and for Qwen2.5-Coder-0.5B, both with adapters. An adapter whose scale is wrong by 30 %: 0.035 and 0.125. The
largest difference of a single logit is no measure: at a position where a deep model amplifies rounding it is 0.9."""

PROBE: Final = (
    Message("user", 'Goal: Click on the "Save" button.\nPage:\n[1] link "Home"\n[2] button "Save"\n[3] textbox "Name"'),
)


class Verification(Record):
    """Differences between an export and its source on the probe prompt."""

    manifest: Manifest
    tokens: int
    """Tokens of the probe prompt. All positions are compared."""
    difference: float
    """Difference of a position's logits as a share of their spread (root mean squares); the median over positions."""
    max_difference: float
    """Largest absolute difference of two logits."""
    bound: float
    """Of `difference`."""
    choices_changed: int
    """Positions with a different most likely next token."""


def verify(folder: Path) -> Verification:
    """Compares the logits of the export in *folder* and of its source on the probe prompt, on the CPU in float32.

    Raises BadInput in one line if a file was changed, if the tokenizers encode the prompt differently, or if the logits
    differ by more than their bound in `BOUNDS`; ModelUnavailable if one of the two cannot be read.
    """
    manifest = read_manifest(folder)
    base, adapter = Path(manifest.base), Path(manifest.adapter) if manifest.adapter else None
    limit = BOUNDS["float32" if manifest.kind == "adapter" else manifest.dtype]
    vision = is_vision_checkpoint(base)
    source_logits, source_ids = _probe(read_checkpoint(base, adapter, merge=False, on_cpu=True, vision=vision))
    merged = manifest.kind == "merged"
    served = read_checkpoint(folder if merged else base, None if merged else folder, on_cpu=True, vision=vision)
    export_logits, export_ids = _probe(served)
    if source_ids != export_ids:
        raise BadInput("the export's tokenizer encodes a prompt differently from its source's")
    apart = source_logits - export_logits
    spread = source_logits - source_logits.mean(-1, keepdim=True)
    difference = float((apart.norm(dim=-1) / spread.norm(dim=-1)).median())
    if not difference <= limit:
        raise BadInput(
            f"the export's logits differ from its source's by {difference:.2g} of their spread, more than {limit:g}"
        )
    return Verification(
        manifest=manifest,
        tokens=len(export_ids),
        difference=difference,
        max_difference=float(apart.abs().max()),
        bound=limit,
        choices_changed=int((source_logits.argmax(-1) != export_logits.argmax(-1)).sum()),
    )


def _probe(checkpoint: Checkpoint) -> tuple[Any, tuple[int, ...]]:
    """(logits [L, V] in float64, prompt ids [L])."""
    import torch

    ids = PromptTokens(checkpoint.tokenizer).encode(PROBE, room=512)
    with torch.inference_mode():
        logits = checkpoint.model(input_ids=torch.tensor([ids])).logits[0]
    return logits.double(), ids
