"""The core of a tokenizer with one token a byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers


def byte_core(first: Sequence[str] = (), normalizer: Any = None) -> Tokenizer:
    """The tokens *first*, then the bytes; text goes through *normalizer*."""
    tokens = [*first, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    core = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, []))
    if normalizer is not None:
        core.normalizer = normalizer
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    return core
