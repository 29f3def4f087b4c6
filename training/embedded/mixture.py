"""Mixes training examples over time: synthetic pages first, then also real steps."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from envs.core.errors import BadInput
from training.embedded.augment import Augmented
from training.embedded.lesson import Lesson
from training.embedded.lookalikes import make_lookalike
from training.embedded.lookalikes_sites import make_site_lookalike
from training.embedded.synthetic import Example, make_example
from training.embedded.words import WordBag, lorem_words, package_words

REAL_FROM = 0.4
"""Share of the training time after which real steps are added, for a randomly initialised network."""
SITES = "sites"
WEIGHTS: Final[dict[str, tuple[float, float]]] = {
    "general": (0.35, 0.20),
    "shapes": (0.65, 0.20),
    "site_shapes": (0.0, 0.20),
    "miniwob_act": (0.0, 0.25),
    "sites_act": (0.0, 0.30),
    "miniwob_plan": (0.0, 0.10),
    "sites_plan": (0.0, 0.06),
    "miniwob_check": (0.0, 0.12),
    "sites_check": (0.0, 0.08),
}
"""Weight of each part before and after `REAL_FROM`: general skill pages, pages in the shapes of MiniWoB++ and of
applications, real steps by suite and kind. What there is none of leaves its part to the others."""

_WORD = re.compile(r"[A-Za-z]{2,}")

Draw = Callable[[random.Random], Example]


class Mixture:
    """A source of training examples; see :data:`training.embedded.train.Source`."""

    def __init__(
        self,
        lessons: Sequence[Lesson],
        seed: int = 0,
        real_from: float = REAL_FROM,
        weights: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        """*weights*: in place of `WEIGHTS`; what they do not name is not seen, and BadInput is raised where there is
        nothing of what they name."""
        rng = random.Random(seed)
        words = WordBag(rng, package_words(), lorem_words())
        own = WordBag(rng, site_words(lessons))
        self._bags = (words, own)
        self._real_from = real_from
        parts: dict[str, Draw] = {
            "general": lambda rng: make_example(rng, words),
            "shapes": lambda rng: make_lookalike(rng, words),
        }
        if own.known:
            parts["site_shapes"] = lambda rng: make_site_lookalike(rng, own)
        by_part: defaultdict[str, list[Lesson]] = defaultdict(list)
        for lesson in lessons:
            by_part[f"{lesson.task.suite}_{lesson.kind}"].append(lesson)
        parts |= {name: Augmented(found, words).draw for name, found in by_part.items()}
        if missing := [name for name in weights or () if name not in parts]:
            raise BadInput(f"there is nothing to learn from of {', '.join(missing)}: --runs brings real steps")
        asked = WEIGHTS if weights is None else weights
        seen = [name for name in WEIGHTS if name in parts and name in asked]
        self._draws = [parts[name] for name in seen]
        self._weights = [[asked[name][late] for name in seen] for late in (0, 1)]

    def __call__(self, rng: random.Random, used: float) -> Example:
        for bag in self._bags:
            bag.rng = rng
        return rng.choices(self._draws, self._weights[used >= self._real_from])[0](rng)


def read_weights(text: str) -> dict[str, tuple[float, float]]:
    """Parses `sites_act=0.6,general=0.2` as constant weights. Raises BadInput."""
    found: dict[str, tuple[float, float]] = {}
    for pair in text.split(","):
        name, _, number = pair.partition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = 0.0
        if name not in WEIGHTS or not 0 < weight < float("inf"):
            raise BadInput(f"{pair!r} is not PART=WEIGHT with a weight above 0; parts: {', '.join(WEIGHTS)}")
        found[name] = (weight, weight)
    return found


def site_words(lessons: Sequence[Lesson]) -> list[str]:
    """Returns the words of the sites' training pages, sorted."""
    pages = {lesson.prompts[0] for lesson in lessons if lesson.task.suite == SITES}
    return sorted({word.lower() for page in pages for word in _WORD.findall(page)})
