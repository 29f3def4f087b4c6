"""What the embedded model sees, and when: made-up pages first, then real steps as well."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from training.embedded.augment import Augmented
from training.embedded.lesson import Kind, Lesson
from training.embedded.lookalikes import make_lookalike
from training.embedded.synthetic import Example, make_example
from training.embedded.words import WordBag, lorem_words, package_words

REAL_FROM = 0.4
"""Share of the training time after which real steps come in, where a network begins with nothing."""
GENERAL, SHAPES = (0.35, 0.25), (0.65, 0.20)
"""Weight of the general skill pages, and of pages in the shapes of MiniWoB++, before and after."""
REAL: dict[tuple[str, Kind], float] = {
    ("miniwob", "act"): 0.15,
    ("sites", "act"): 0.30,
    ("miniwob", "plan"): 0.03,
    ("sites", "plan"): 0.06,
    ("miniwob", "check"): 0.04,
    ("sites", "check"): 0.08,
}
"""Weight of the real steps from then on, by suite and kind; what there is none of leaves its part to the others."""

Draw = Callable[[random.Random], Example]


class Mixture:
    """A source of training examples; see :data:`training.embedded.train.Source`."""

    def __init__(self, lessons: Sequence[Lesson], seed: int = 0, real_from: float = REAL_FROM) -> None:
        words = self._words = WordBag(random.Random(seed), package_words(), lorem_words())
        made: list[Draw] = [lambda rng: make_example(rng, words), lambda rng: make_lookalike(rng, words)]
        real = {
            part: Augmented(own, words)
            for part in REAL
            if (own := [lesson for lesson in lessons if (lesson.task.suite, lesson.kind) == part])
        }
        self._real_from = real_from
        self._early = (made, [GENERAL[0], SHAPES[0]])
        self._late = (
            [*made, *(source.draw for source in real.values())],
            [GENERAL[1], SHAPES[1], *(REAL[part] for part in real)],
        )

    def __call__(self, rng: random.Random, used: float) -> Example:
        self._words.rng = rng
        draws, weights = self._early if used < self._real_from else self._late
        return rng.choices(draws, weights)[0](rng)
