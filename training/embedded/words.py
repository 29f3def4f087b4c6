"""Draws words for synthetic pages: from a list of real words, or invented."""

from __future__ import annotations

import random
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

_ONSETS = [
    "b",
    "c",
    "d",
    "f",
    "g",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "w",
    "z",
    "br",
    "cl",
    "dr",
    "fl",
    "gr",
    "pl",
    "pr",
    "sh",
    "sk",
    "st",
    "tr",
    "th",
]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "ea", "ee", "ia", "io", "ou", "y"]
_CODAS = ["", "", "", "l", "n", "r", "s", "t", "m", "nd", "st", "ck", "x"]


@dataclass
class WordBag:
    """Draws words, names and texts; about half are invented, so that spelling has to be copied, not recalled."""

    rng: random.Random
    known: Sequence[str]
    filler: Sequence[str] = ()
    """Words of running text; `known` where empty."""
    invented: float = 0.5

    def word(self) -> str:
        if self.known and self.rng.random() >= self.invented:
            word = self.rng.choice(self.known)
        else:
            word = self.pseudo_word() if self.rng.random() < 0.7 else self.code()
        style = self.rng.random()
        return word.capitalize() if style < 0.3 else word.upper() if style < 0.36 else word

    def pseudo_word(self) -> str:
        syllables = self.rng.choices((1, 2, 3), (0.5, 0.4, 0.1))[0]
        rng = self.rng
        return "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(syllables))

    def code(self) -> str:
        """What passwords and widget labels look like: 1 to 6 letters and digits, or a number."""
        letters = string.ascii_letters + string.digits if self.rng.random() < 0.7 else string.digits
        return "".join(self.rng.choices(letters, k=self.rng.randint(1, 6)))

    def string(self, least: int, most: int) -> str:
        """Random letters and digits, as the benchmark makes its labels and passwords."""
        return "".join(self.rng.choices(string.ascii_letters + string.digits, k=self.rng.randint(least, most)))

    def name(self) -> str:
        """A control's name: one to three words."""
        count = self.rng.choices((1, 2, 3), (0.72, 0.2, 0.08))[0]
        return " ".join(self.word() for _ in range(count))

    def text(self) -> str:
        """Text to type."""
        kind = self.rng.random()
        if kind < 0.3:
            return self.code()
        return " ".join(self.word() for _ in range(self.rng.choices((1, 2, 3), (0.75, 0.2, 0.05))[0]))

    def sentence(self, words: int) -> str:
        """Running text of known words."""
        rng = self.rng
        picked = [
            rng.choice(self.known) if self.known and rng.random() < 0.85 else self.pseudo_word() for _ in range(words)
        ]
        text = "".join(word + (", " if rng.random() < 0.12 else " ") for word in picked).strip(", ")
        return text.capitalize() + (rng.choice((".", "")) if words > 2 else "")

    def filler_word(self) -> str:
        """A word of running text: usually a common one, sometimes any, rarely an invented one."""
        kind = self.rng.random()
        if self.filler and kind < 0.7:
            return self.rng.choice(self.filler)
        return self.rng.choice(self.known) if self.known and kind < 0.93 else self.pseudo_word()

    def distinct(self, count: int, *, single: bool = False) -> list[str]:
        """*count* different names that often share a word or a beginning, so that all of each has to be compared."""
        names: list[str] = []
        while len(names) < count:
            name = self.word() if single else self.name()
            if names and self.rng.random() < 0.15:
                relative = self.rng.choice(names)
                name = relative[: self.rng.randint(1, len(relative))] + self.pseudo_word()
            if name not in names:
                names.append(name)
        return names


_QUOTED = re.compile(r"""(['"`])([^'"`\n<>{}=;]{2,60})\1""")


def package_words() -> list[str]:
    """The words that the MiniWoB++ package's own pages and lists are made of, commonest first."""
    html = Path(str(resources.files("miniwob"))) / "html"
    files = sorted([*(html / "miniwob").glob("*.html"), html / "common" / "ui_utils.js"])
    counts: Counter[str] = Counter()
    for file in files:
        text = file.read_text(encoding="utf-8", errors="ignore")
        pieces = [found[2] for found in _QUOTED.finditer(text)] + re.findall(r">([^<>{}=;]{2,200})<", text)
        counts.update({word for piece in pieces for word in re.findall(r"[A-Za-z]{2,}", piece)})
    return [word for word, _ in counts.most_common()]


def lorem_words() -> list[str]:
    """The filler words of the MiniWoB++ package."""
    script = Path(str(resources.files("miniwob"))) / "html" / "common" / "ui_utils.js"
    block = script.read_text(encoding="utf-8").partition("ui_utils.lorem_words = [")[2].partition("]")[0]
    return sorted(set(re.findall(r"[a-z]+", block)))
