"""Likeness as the local policy sees it: the mean of its own hidden states over a task's words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.prompting.prompt_tokens import PromptTokens
from training.engine.checkpoints import load_policy
from training.loop.curriculum.similarity import Scores

BATCH = 64
"""Texts at once."""


class Embedding:
    """Cosine of embeddings, in [-1, 1]. The checkpoint is read and never written; no gradient is kept.

    A language model's hidden states all point in much the same direction. What is common to the texts that are compared
    is subtracted before the cosine, so that 0 means "as alike as any two of them" and not "nothing in common".
    """

    def __init__(self, folder: Path, *, device: str = "cpu") -> None:
        """*folder*: a policy's checkpoint, or an adapter's beside its base. Nothing is asked of the network. Raises
        BadInput where it cannot be read."""
        model, self._tokenizer = load_policy(folder, padded=True)
        self._model: Any = model.base_model.to(device).eval()
        self._context = int(getattr(model.config.get_text_config(), "max_position_embeddings", None) or 512)
        self.cut = 0
        """Texts that were longer than the model's context, so far; their beginning was read."""

    def scores(self, failed: Sequence[str], pool: Sequence[str]) -> Scores:
        if not failed or not pool:
            return np.zeros((len(failed), len(pool)))
        vectors = self.embedded([*failed, *pool])
        vectors = torch.nn.functional.normalize(vectors - vectors.mean(dim=0), dim=1)
        found = vectors[: len(failed)] @ vectors[len(failed) :].T
        return found.numpy()

    @torch.no_grad()
    def embedded(self, texts: Sequence[str]) -> Tensor:
        """(N, width), float64, in the order of *texts*: each text's mean last hidden state over its own tokens.

        What else is in a batch changes nothing: padding is on the right, masked, and left out of the mean.
        """
        ids = [self._ids(text) for text in texts]
        by_length = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        found: list[Tensor | None] = [None] * len(ids)
        for start in range(0, len(by_length), BATCH):
            places = by_length[start : start + BATCH]
            means = self._means([ids[place] for place in places])
            for place, mean in zip(places, means, strict=True):
                found[place] = mean
        return torch.stack([one for one in found if one is not None])

    def _means(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """(B, width) of B texts as tokens."""
        rows = [torch.tensor(one, device=self._model.device) for one in ids]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        hidden: Tensor = self._model(input_ids=padded, attention_mask=mask, use_cache=False).last_hidden_state
        counted = mask.unsqueeze(-1).double()
        return ((hidden.double() * counted).sum(dim=1) / counted.sum(dim=1)).cpu()

    def _ids(self, text: str) -> tuple[int, ...]:
        """At least one token, at most a context; text that looks like a special token is none."""
        prompts = PromptTokens(self._tokenizer)
        ids = prompts.plain(prompts.defused(text)) or prompts.plain(".")
        if len(ids) > self._context:
            self.cut += 1
        return ids[: self._context]
