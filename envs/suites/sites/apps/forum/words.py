"""Generates titles, openings and replies from `texts.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from random import Random
from typing import Any

TEXTS = Path(__file__).with_name("texts.toml")


class Words:
    """A text generator that depends on *rng* only. Titles are unique."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._texts: dict[str, Any] = tomllib.loads(TEXTS.read_text(encoding="utf-8"))
        self._titles: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        """A list or table of `texts.toml`."""
        return self._texts[name]

    def topic(self, category: dict[str, Any]) -> tuple[str, str]:
        """A new title of the category and the opening comment of its topic."""
        for _ in range(500):
            slots = {name: self._rng.choice(values) for name, values in category["slots"].items()}
            kind = self._rng.randrange(len(category["titles"]))
            title = _capital(category["titles"][kind].format(**slots))
            if title not in self._titles:
                self._titles.add(title)
                opening = _capital(category["openings"][kind].format(**slots))
                return title, f"{opening} {self._detail()}"
        raise ValueError(f"the category {category['title']!r} has too few titles for its topics")

    def reply(self) -> str:
        replies = self._texts["replies"]
        parts = [self._rng.choice(replies["opening"]), self._detail()]
        if self._rng.random() < 0.4:
            parts.append(self._detail())
        if self._rng.random() < 0.6:
            parts.append(self._rng.choice(replies["closing"]))
        return " ".join(parts)

    def spam(self) -> str:
        return self._filled(self._rng.choice(self._texts["replies"]["spam"]))

    def members(self, count: int) -> list[str]:
        """Full names. First names are unique; last names repeat only if there are too few."""
        first = self._rng.sample(self._texts["first_names"], count)
        last: list[str] = []
        while len(last) < count:
            last += self._rng.sample(self._texts["last_names"], len(self._texts["last_names"]))
        return [f"{first_name} {last_name}" for first_name, last_name in zip(first, last, strict=False)]

    def _detail(self) -> str:
        return self._filled(self._rng.choice(self._texts["replies"]["middle"]))

    def _filled(self, pattern: str) -> str:
        return pattern.format(
            n=self._rng.randint(3, 90),
            nth=self._rng.choice(["second", "third", "fourth", "fifth"]),
            town=self._rng.choice(self._texts["towns"]),
        )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
