"""What the embedded model sees, and when: made-up pages first, real demonstrations in the last two fifths."""

from __future__ import annotations

import random
from collections.abc import Sequence

from training.embedded.augment import Augmented
from training.embedded.demos import Recorded
from training.embedded.lookalikes import make_lookalike
from training.embedded.synthetic import Example, make_example
from training.embedded.words import WordBag, lorem_words, package_words

REAL_FROM = 0.6
"""Share of the training time after which real demonstrations come in; copying and finding are learned by then."""
REAL = 0.30
"""Their share of the examples from then on."""
GENERAL = (0.35, 0.15)
"""Share of the general skill pages before and after; the rest are pages in the shapes of the benchmark's."""


class Mixture:
    """A source of training examples; see :data:`training.embedded.train.Source`."""

    def __init__(self, rows: Sequence[Recorded], seed: int = 0) -> None:
        self._words = WordBag(random.Random(seed), package_words(), lorem_words())
        self._real = Augmented(rows, self._words) if rows else None

    def __call__(self, rng: random.Random, used: float) -> Example:
        self._words.rng = rng
        late = used >= REAL_FROM and self._real is not None
        if late and self._real is not None and rng.random() < REAL:
            return self._real.draw(rng)
        general = GENERAL[1] / (1 - REAL) if late else GENERAL[0]
        return make_example(rng, self._words) if rng.random() < general else make_lookalike(rng, self._words)


def held_out(rows: Sequence[Recorded], share: float = 0.15) -> tuple[list[Recorded], list[Recorded]]:
    """(rows to train on, rows of the last seeds to measure on): no episode is in both."""
    seeds = sorted({row.seed for row in rows})
    kept = set(seeds[: len(seeds) - max(1, int(len(seeds) * share))]) if len(seeds) > 1 else set(seeds)
    return [row for row in rows if row.seed in kept], [row for row in rows if row.seed not in kept]
