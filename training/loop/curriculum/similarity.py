"""Similarity of two tasks, from their texts only, without their pages.

Three implementations share one protocol. TF-IDF is the default; :mod:`training.loop.curriculum.embedding` uses the
local policy's hidden states; :mod:`training.loop.curriculum.model_similarity` uses a chat model, as the paper does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
"""(F, P): similarity of each of F failed tasks to each of P pool tasks. NaN: not compared, which is not 0."""


class Similarity(Protocol):
    """Compares instructions of failed tasks with those of a pool."""

    def scores(self, failed: Sequence[str], pool: Sequence[str]) -> Scores:
        """Scores of at most 1; higher is more similar, 0 and below is not similar. Equal texts give equal scores."""
        ...


class TfIdf:
    """Cosine of TF-IDF vectors over words, pairs of words and parts of words, in [0, 1].

    Words are weighted by their rarity among all texts. Parts of words (3 to 5 letters) let `submit` match `submitted`.
    """

    def scores(self, failed: Sequence[str], pool: Sequence[str]) -> Scores:
        texts = [*failed, *pool]
        if not failed or not pool or not any(character.isalnum() for text in texts for character in text):
            return np.zeros((len(failed), len(pool)))
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.metrics.pairwise import cosine_similarity
        from sklearn.pipeline import FeatureUnion

        features = FeatureUnion(
            [
                ("words", TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+", sublinear_tf=True)),
                ("parts", TfidfVectorizer(ngram_range=(3, 5), analyzer="char_wb", sublinear_tf=True)),
            ]
        )
        vectors: Any = features.fit_transform(texts)
        scores: Any = cosine_similarity(vectors[: len(failed)], vectors[len(failed) :])
        return np.asarray(scores, dtype=np.float64)
