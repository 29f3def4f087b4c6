"""The small policy that ships with the package: weights, tokenizer and a card that documents their training.

`card.json` holds the command, the data, the seeds and the measured success; `python -m training.embedded` rewrites
the folder. It has at most 16 MB and loads through transformers like any `local:` checkpoint. `model.onnx` is the same
network as a graph over the same weights, for `embedded` (:mod:`models.local.embedded_onnx`).
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["embedded_dir"]


def embedded_dir() -> Path:
    """The folder of the checkpoint; its files may be missing in a source tree without a trained model."""
    return Path(__file__).parent
