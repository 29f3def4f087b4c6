"""Loads an export back and compares it with the checkpoint that it was made of, number by number."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from envs.core.errors import BadInput
from envs.core.record import Record
from models.base import Message
from models.local.loading import Checkpoint, read_checkpoint
from models.prompting.prompt_tokens import PromptTokens
from training.serving.artifact import Dtype, Manifest, read_manifest

BOUNDS: Final[Mapping[Dtype, float]] = {"float32": 1e-3, "float16": 0.1, "bfloat16": 0.8}
"""Largest allowed difference of a logit, by the type that merged weights are stored in: ten to twenty times what
rounding did to the embedded model with an adapter (logits between -25 and 25); a wrong scale or a missing layer moves
them by whole numbers."""

PROBE: Final = (
    Message("user", 'Goal: Click on the "Save" button.\nPage:\n[1] link "Home"\n[2] button "Save"\n[3] textbox "Name"'),
)


class Verification(Record):
    """How far an export is from its source on the probe prompt."""

    manifest: Manifest
    tokens: int
    """Of the probe prompt; all its positions were compared."""
    max_difference: float
    """Largest absolute difference of two logits."""
    bound: float
    choices_changed: int
    """Positions at which the most likely next token is another."""


def verify(folder: Path, *, bound: float | None = None) -> Verification:
    """Compares the logits of the export in *folder* and of its source on the probe prompt, on the CPU in float32.

    Raises BadInput in one line where a file is not the one that was written, where the two tokenizers disagree about
    the prompt, or where the logits differ by more than *bound* (default: `BOUNDS`); ModelUnavailable where one of the
    two cannot be read any more.
    """
    manifest = read_manifest(folder)
    base, adapter = Path(manifest.base), Path(manifest.adapter) if manifest.adapter else None
    limit = BOUNDS["float32" if manifest.kind == "adapter" else manifest.dtype] if bound is None else bound
    source, source_ids = _probed(read_checkpoint(base, adapter, merge=False, on_cpu=True))
    merged = manifest.kind == "merged"
    served = read_checkpoint(folder if merged else base, None if merged else folder, on_cpu=True)
    found, found_ids = _probed(served)
    if source_ids != found_ids:
        raise BadInput("the export's tokenizer makes other tokens of a prompt than its source's")
    difference = float((source - found).abs().max())
    if not difference <= limit:
        raise BadInput(f"the export's logits differ from its source's by {difference:.3g}, more than {limit:g}")
    return Verification(
        manifest=manifest,
        tokens=len(found_ids),
        max_difference=difference,
        bound=limit,
        choices_changed=int((source.argmax(-1) != found.argmax(-1)).sum()),
    )


def _probed(read: Checkpoint) -> tuple[Any, tuple[int, ...]]:
    """(logits [L, V] in float64, prompt ids [L])."""
    import torch

    ids = PromptTokens(read.tokenizer).encode(PROBE, room=512)
    with torch.inference_mode():
        logits = read.model(input_ids=torch.tensor([ids])).logits[0]
    return logits.double(), ids
