"""Augments real steps: replaces words and numbers that are not part of a task's wording, consistently."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from training.embedded.lesson import Lesson
from training.embedded.synthetic import Example
from training.embedded.tokenizer import ROLES, STATES
from training.embedded.words import WordBag

_WORD = re.compile(r"[A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*")
_REF = re.compile(r"(?<=\[)(\d+)(?=\] )")
_ELEMENT = re.compile(r'(?<=element=")(\d+)(?=")')
WORDING_SHARE = 0.3
"""A word in at least this share of a task's episodes belongs to its wording, roles and buttons included."""
FEW_EPISODES = 3
"""Minimum episodes to detect a task's wording. With fewer, nothing is renamed."""
MOST_SHIFTED = 9
OURS = frozenset(
    _WORD.findall(
        " ".join((*ROLES, *STATES))
        + " Goal Next Done Problem At Page Plan Have Trouble Check yes no more lines line options"
        + " do action argument element exit message go_backward go_forward Click Type Search Select Dropdown Option"
        + " Wait Press Key Hover Scroll into select type click press and Enter in none stall loop stale parse error"
        + " the page has not changed for steps same actions on again a row named element that is gone or ambiguous last"
        + " answers held readable"
    )
)
"""Words of the prompts and of the action language."""


RENAMED: Final = 0.6
"""Share of the examples with new words."""
PLANNED: Final = 0.55
"""Share of the examples with a milestone, of the lessons that have one."""
SHIFTED: Final = 0.3
"""Share of the actor's examples with new numbers of controls."""


class Augmented:
    """Draws a task, then one of its lessons, then new words and numbers for it. Tasks count alike, however long their
    episodes; of a rater's lessons half say yes."""

    def __init__(self, lessons: Sequence[Lesson], words: WordBag) -> None:
        self._by_task: dict[str, list[Lesson]] = defaultdict(list)
        for lesson in lessons:
            self._by_task[lesson.task.name].append(lesson)
        self._tasks = sorted(self._by_task)
        self._wording = {task: wording(found) for task, found in self._by_task.items()}
        self._words = words

    def draw(self, rng: random.Random) -> Example:
        task = rng.choice(self._tasks)
        lesson = self._lesson(rng, self._by_task[task])
        bare = len(lesson.prompts) > 1 and rng.random() >= PLANNED
        example = Example(task, lesson.prompts[1 if bare else 0], lesson.answer)
        if lesson.kind == "act" and rng.random() < SHIFTED:  # a rater quotes numbers as they stand
            example = shifted(rng, example)
        return renamed(rng, self._words, example, self._wording[task]) if rng.random() < RENAMED else example

    @staticmethod
    def _lesson(rng: random.Random, lessons: Sequence[Lesson]) -> Lesson:
        if lessons[0].kind != "check":
            return rng.choice(lessons)
        says_no = rng.random() < 0.5
        return rng.choice([one for one in lessons if (one.answer == "no") == says_no] or lessons)


def wording(lessons: Sequence[Lesson]) -> frozenset[str]:
    """Returns the words of prompts and action language, and those that many episodes of the task share; all words if
    there are few episodes."""
    seeds: dict[str, set[int]] = defaultdict(set)
    for lesson in lessons:
        for word in set(_WORD.findall("\n".join((*lesson.prompts, lesson.answer)))):
            seeds[word].add(lesson.task.seed)
    episodes = len({lesson.task.seed for lesson in lessons})
    least = max(2.0, WORDING_SHARE * episodes) if episodes >= FEW_EPISODES else 1.0
    return OURS | {word for word, found in seeds.items() if len(found) >= least}


def shifted(rng: random.Random, example: Example) -> Example:
    """Increases the numbers of the page's controls from a random one on, as if more controls preceded it."""
    head, page, text = example.prompt.partition("\nPage:\n")
    first, by = rng.choice([1, *map(int, _REF.findall(text))]), rng.randint(1, MOST_SHIFTED)

    def higher(found: re.Match[str]) -> str:
        number = int(found[1])
        return str(number + by if number >= first else number)

    return Example(example.task, head + page + _REF.sub(higher, text), _ELEMENT.sub(higher, example.answer))


def renamed(rng: random.Random, words: WordBag, example: Example, kept: frozenset[str]) -> Example:
    """Replaces most words outside *kept*, consistently in prompt and answer."""
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
    """Returns a random word of the same kind: a code for a code, a capital for a capital."""
    if any(c.isdigit() for c in word) or not (word.islower() or word.istitle()):
        return words.string(max(1, len(word) - 1), len(word) + 1)
    other = words.filler_word() if words.rng.random() < 0.5 else words.pseudo_word()
    return other.capitalize() if word.istitle() else other.lower()
