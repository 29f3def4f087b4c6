"""Real demonstrations seen with other words: what is not part of a task's wording is renamed, everywhere alike."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence

from training.embedded.demos import Recorded, without_milestone
from training.embedded.synthetic import Example
from training.embedded.words import WordBag

_WORD = re.compile(r"[A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*")
WORDING_SHARE = 0.3
"""A word in at least this share of a task's episodes belongs to its wording, roles and buttons included."""


class Augmented:
    """Draws a task, then one of its steps, then new words for it. Tasks count alike, however long their episodes."""

    def __init__(
        self, rows: Sequence[Recorded], words: WordBag, *, renamed: float = 0.6, planned: float = 0.55
    ) -> None:
        self._by_task: dict[str, list[Recorded]] = defaultdict(list)
        for row in rows:
            self._by_task[row.task].append(row)
        self._tasks = sorted(self._by_task)
        self._wording = {task: wording(found) for task, found in self._by_task.items()}
        self._words = words
        self._renamed = renamed
        self._planned = planned

    def draw(self, rng: random.Random) -> Example:
        task = rng.choice(self._tasks)
        row = rng.choice(self._by_task[task])
        prompt = row.prompt if rng.random() < self._planned else without_milestone(row.prompt)
        if rng.random() >= self._renamed:
            return Example(task, prompt, row.answer)
        return renamed(rng, self._words, Example(task, prompt, row.answer), self._wording[task])


def wording(rows: Sequence[Recorded]) -> frozenset[str]:
    """Words that many episodes of the task share."""
    seeds: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        for word in _WORD.findall(f"{row.prompt}\n{row.answer}"):
            seeds[word].add(row.seed)
    episodes = len({row.seed for row in rows})
    return frozenset(word for word, found in seeds.items() if len(found) >= max(2, WORDING_SHARE * episodes))


def renamed(rng: random.Random, words: WordBag, example: Example, kept: frozenset[str]) -> Example:
    """Every word outside *kept* is replaced, the same word by the same one, in prompt and answer; some are left."""
    names: dict[str, str] = {}

    def other(found: re.Match[str]) -> str:
        word = found[0]
        if word in kept:
            return word
        if word not in names:
            names[word] = word if rng.random() < 0.25 else _like(word, words)
        return names[word]

    return Example(example.task, _WORD.sub(other, example.prompt), _WORD.sub(other, example.answer))


def _like(word: str, words: WordBag) -> str:
    """A word of the same kind: a code for a code, a capital for a capital."""
    if any(c.isdigit() for c in word) or not (word.islower() or word.istitle()):
        return words.string(max(1, len(word) - 1), len(word) + 1)
    other = words.filler_word() if words.rng.random() < 0.5 else words.pseudo_word()
    return other.capitalize() if word.istitle() else other.lower()
