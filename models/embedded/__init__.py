"""The small policy that ships with the package: weights, tokenizer and a card that says how they were made.

`card.json` holds the command, the data, the seeds and the measured success; `python -m training.embedded` rewrites
the whole folder. Promised: at most 16 MB, loads through transformers as any `local:` checkpoint does. `model.onnx`
is the same network as a graph over the same weights, for `embedded` itself (:mod:`models.local.embedded_onnx`).
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["embedded_dir"]


def embedded_dir() -> Path:
    """The folder of the checkpoint; its files may be missing in a source tree that was never trained."""
    return Path(__file__).parent
