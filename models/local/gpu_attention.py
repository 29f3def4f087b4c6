"""Which kernels compute attention on a GPU."""

from __future__ import annotations


def avoid_cudnn_attention() -> None:
    """Excludes cuDNN from PyTorch's scaled dot-product attention in this process. FlashAttention and the
    memory-efficient kernels remain.

    cuDNN prepares a plan for each new pair of lengths, and lengths of packed texts and of a growing cache are rarely
    the same twice. Its backward pass is also reported to give NaN on an H100 where queries with a mask have 64 more
    tokens than a multiple of 128 (pytorch/pytorch#196678, PyTorch 2.11 to 2.13).
    """
    import torch

    torch.backends.cuda.enable_cudnn_sdp(enabled=False)
