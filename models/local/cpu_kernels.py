"""Padding that bounds the number of shapes which oneDNN compiles kernels for.

On a CPU, matrix products in bfloat16 compile a kernel for each new shape, and PyTorch keeps it: 0.6 MB a product, and
5 MB for each length of attention's backward pass with 14 heads. Prompts and packed sequences have ever new lengths, so
the memory of a process grew by gigabytes. Lengths that are padded to a multiple have few values.
"""

from __future__ import annotations

import torch


def compiles_by_shape(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether a model of *dtype* on *device*, under the present autocast, computes in bfloat16 on a CPU."""
    return device.type == "cpu" and (dtype == torch.bfloat16 or torch.is_autocast_enabled("cpu"))


def padding(length: int, multiple: int) -> int:
    """How many positions pad *length* to a multiple of *multiple*."""
    return -length % multiple
