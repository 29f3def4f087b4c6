"""Builds a tokenizer that knows a closed list of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PAD, END, UNKNOWN = "<pad>", "<end>", "<unk>"


def closed_tokenizer(tokens: Sequence[str], pattern: Any, **named: Any) -> Any:
    """Padding, end and unknown come first, then *tokens*; text is split where *pattern* matches."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: index for index, token in enumerate([PAD, END, UNKNOWN, *tokens])}
    core: Any = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    core.pre_tokenizer = pre_tokenizers.Split(pattern, "isolated")
    core.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token=PAD, eos_token=END, unk_token=UNKNOWN, **named)
