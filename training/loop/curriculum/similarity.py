"""How alike two tasks are, from their words alone: no page is looked at.

Three ways, one shape. TF-IDF needs nothing and is the default; :mod:`training.loop.curriculum.embedding` asks the local
policy's own hidden states; :mod:`training.loop.curriculum.task_history` asks a chat model, as the paper does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
"""(F, P): how alike each of F failed tasks is to each of P pool tasks. NaN: not compared, which is not 0."""


class Similarity(Protocol):
    def scores(self, failed: Sequence[str], pool: Sequence[str]) -> Scores:
        """At most 1, higher is more alike; 0 and below is not alike at all. The same texts give the same scores."""
        ...


class TfIdf:
    """Cosine of TF-IDF vectors over words, pairs of words and parts of words, in [0, 1].

    Words weigh by how rare they are among the texts of both sides. Parts of words (3 to 5 letters) let `submit` meet
    `submitted`.
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
        found: Any = cosine_similarity(vectors[: len(failed)], vectors[len(failed) :])
        return np.asarray(found, dtype=np.float64)
