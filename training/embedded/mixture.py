"""What the embedded model sees, and when: made-up pages first, then real steps as well."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from training.embedded.augment import Augmented
from training.embedded.lesson import Kind, Lesson
from training.embedded.lookalikes import make_lookalike
from training.embedded.lookalikes_sites import make_site_lookalike
from training.embedded.synthetic import Example, make_example
from training.embedded.words import WordBag, lorem_words, package_words

REAL_FROM = 0.4
"""Share of the training time after which real steps come in, where a network begins with nothing."""
GENERAL, SHAPES, SITE_SHAPES = (0.35, 0.20), (0.65, 0.20), (0.0, 0.20)
"""Weight of the general skill pages, of pages in the shapes of MiniWoB++, and of those in the shapes of applications,
before and after."""
SITES = "sites"
REAL: dict[tuple[str, Kind], float] = {
    ("miniwob", "act"): 0.25,
    ("sites", "act"): 0.30,
    ("miniwob", "plan"): 0.10,
    ("sites", "plan"): 0.06,
    ("miniwob", "check"): 0.12,
    ("sites", "check"): 0.08,
}
"""Weight of the real steps from then on, by suite and kind; what there is none of leaves its part to the others."""

_WORD = re.compile(r"[A-Za-z]{2,}")

Draw = Callable[[random.Random], Example]


class Mixture:
    """A source of training examples; see :data:`training.embedded.train.Source`."""

    def __init__(self, lessons: Sequence[Lesson], seed: int = 0, real_from: float = REAL_FROM) -> None:
        rng = random.Random(seed)
        words = WordBag(rng, package_words(), lorem_words())
        own = WordBag(rng, site_words(lessons))
        self._bags = (words, own)
        self._real_from = real_from
        parts: list[tuple[Draw, tuple[float, float]]] = [
            (lambda rng: make_example(rng, words), GENERAL),
            (lambda rng: make_lookalike(rng, words), SHAPES),
        ]
        if own.known:
            parts.append((lambda rng: make_site_lookalike(rng, own), SITE_SHAPES))
        for part, weight in REAL.items():
            if found := [lesson for lesson in lessons if (lesson.task.suite, lesson.kind) == part]:
                parts.append((Augmented(found, words).draw, (0.0, weight)))
        self._draws = [draw for draw, _ in parts]
        self._weights = [[weight[late] for _, weight in parts] for late in (0, 1)]

    def __call__(self, rng: random.Random, used: float) -> Example:
        for bag in self._bags:
            bag.rng = rng
        return rng.choices(self._draws, self._weights[used >= self._real_from])[0](rng)


def site_words(lessons: Sequence[Lesson]) -> list[str]:
    """The words of the sites' pages that are learned from, in the order of the alphabet."""
    pages = {lesson.prompts[0] for lesson in lessons if lesson.task.suite == SITES}
    return sorted({word.lower() for page in pages for word in _WORD.findall(page)})
