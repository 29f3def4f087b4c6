"""Task similarity from the local policy: the mean of its hidden states over a task's text."""

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
"""Texts of one forward pass."""


class Embedding:
    """Cosine similarity of embeddings, in [-1, 1]. The checkpoint is only read; no gradients are computed.

    All hidden states of a language model point in a similar direction. The mean of the compared texts is subtracted
    before the cosine, so that 0 means average similarity and not "nothing in common".
    """

    def __init__(self, folder: Path) -> None:
        """*folder*: a policy's checkpoint or an adapter. Does not use the network. Raises BadInput where it cannot be
        read."""
        model, self._tokenizer = load_policy(folder, padded=True)
        self._model: Any = model.base_model.eval()
        self._context = int(getattr(model.config.get_text_config(), "max_position_embeddings", None) or 512)
        self.cut = 0
        """Number of texts so far that were truncated to the model's context."""

    def scores(self, failed: Sequence[str], pool: Sequence[str]) -> Scores:
        if not failed or not pool:
            return np.zeros((len(failed), len(pool)))
        vectors = self.embedded([*failed, *pool])
        vectors = torch.nn.functional.normalize(vectors - vectors.mean(dim=0), dim=1)
        similarities = vectors[: len(failed)] @ vectors[len(failed) :].T
        return similarities.numpy()

    @torch.no_grad()
    def embedded(self, texts: Sequence[str]) -> Tensor:
        """(N, width), float64, in the order of *texts*: each text's mean last hidden state over its own tokens.

        The result does not depend on the batch: padding is on the right, masked, and excluded from the mean.
        """
        ids = [self._ids(text) for text in texts]
        by_length = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        vectors: list[Tensor | None] = [None] * len(ids)
        for start in range(0, len(by_length), BATCH):
            places = by_length[start : start + BATCH]
            means = self._means([ids[place] for place in places])
            for place, mean in zip(places, means, strict=True):
                vectors[place] = mean
        return torch.stack([vector for vector in vectors if vector is not None])

    def _means(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """(B, width): the embeddings of B token sequences."""
        rows = [torch.tensor(tokens, device=self._model.device) for tokens in ids]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        hidden: Tensor = self._model(input_ids=padded, attention_mask=mask, use_cache=False).last_hidden_state
        counted = mask.unsqueeze(-1).double()
        return ((hidden.double() * counted).sum(dim=1) / counted.sum(dim=1)).cpu()

    def _ids(self, text: str) -> tuple[int, ...]:
        """The tokens of *text*: at least one, at most a context. Text that looks like a special token is escaped."""
        prompts = PromptTokens(self._tokenizer)
        ids = prompts.plain(prompts.defused(text)) or prompts.plain(".")
        if len(ids) > self._context:
            self.cut += 1
        return ids[: self._context]
