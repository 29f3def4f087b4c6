"""Selects the lines of a long page that a small model sees: those relevant to its goal, next milestone and last
problem, with the context needed to act on them.

Pure functions over the page's text. Selected lines keep the page order and the grammar of :mod:`envs.core.observation`;
omitted lines are replaced by one line, `--- 12 more lines`. The observer and this module put a backslash before page
text that begins with `---`, so a page cannot forge such a line.

Score of a line: the words that it shares with the query, weighted by inverse document frequency on this page (idf,
Sparck Jones 1972), with the highest weight for complete quoted phrases; a share of its neighbours' scores, because a
label and its control are often two lines; and a weight for its kind: fields and buttons count more than prose, and the
twentieth row of a table less than the first. Lines are taken in order of their score until the budget is used up, each
with its heading and, for a row, the table's head.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from envs.observer.page_lines import Kind, Line, Piece, cut_line, read_line

LINE_ROOM = 120
"""Maximum length of a line in characters; a longer one keeps its best pieces."""
MATCH_ROOM = 80
"""Additional characters for a line that matches the query."""
GAP_CHARS = 22
"""Characters reserved for each line that counts omitted lines."""

_WORD = re.compile(r"\w+(?:[.,:]\d+)*")
_QUOTED = re.compile(r'"([^"]{2,120})"|“([^”]{2,120})”')
_MACHINERY = re.compile(r"\[\d+\] \w+")
_GAP = re.compile(r"^--- \d+ more lines?$")
_DIGITS = re.compile(r"\d+")
_STOP = frozenset(
    _WORD.findall(
        "a an and are as at be been but by can do for from has have how i in is it its me my no not of on or our so "
        "than that the their them then there they this to up was we what when where which who will with you your"
    )
)
_MESSAGE = re.compile(
    r"\b(?:error|errors|warning|success|successfully|saved|added|created|updated|changed|removed|deleted|moved|sent|"
    r"published|invalid|required|must|cannot|failed|denied|not found|no results|please|sorry|thank)\b",
    re.IGNORECASE,
)
_BASE: Final[Mapping[Kind, float]] = {
    "marker": 0.8,
    "field": 1.0,
    "button": 0.6,
    "link": 0.45,
    "clickable": 0.25,
    "heading": 0.3,
    "row": 0.25,
    "text": 0.1,
}
"""Score of a line by its kind; 1 is the score of a query word that occurs in no other line."""
_IDLE = 0.1
"""Score of a line whose controls are all disabled or readonly."""
_MESSAGE_BASE = 0.6
_PHRASE = 3.0
"""Score of a quoted phrase that occurs literally in the line."""
_QUOTED_WORD = 0.5
"""Weight of a single word of a quoted phrase: many other lines share a part of a name."""
_FOCUSED = 100.0
_AFTER_FOCUS = (1.0, 0.8, 0.6, 0.4)
"""Bonus for the controls after the focused one: forms are filled in from top to bottom."""
_MENU_LINES = 16
_MENU_SHARE = 0.3
"""Bonus for the links right after the focused control, which may be its menu."""
_NEIGHBOURS = (0.4, 0.2, 0.1)
"""Share of a line's match for lines at distance one, two and three, unless they have the same structure."""
_ALIKE = 3
"""Minimum number of lines that differ only in numbers for which each line needs its owner."""
_BLOCK_LINES = 15
"""Maximum distance of the owner above a line, in lines."""
_FAIR_CHARS = 60
"""Length from which the score by kind is reduced."""
_SUBMIT = re.compile(
    r"\b(?:submit|save|send|search|create|add|publish|apply|update|change|continue|confirm|next|ok|go|log in)\b",
    re.IGNORECASE,
)
_SUBMIT_DISTANCE = 40
"""Maximum distance of a submit button after its field, in lines."""


@dataclass(frozen=True, slots=True)
class Interest:
    """The query: weighted words and phrases."""

    words: Mapping[str, float]
    """Stem → weight."""
    phrases: Mapping[str, float]
    """Quoted phrase, case-folded → weight."""


def interest(*sources: tuple[str, float]) -> Interest:
    """Builds a query from weighted texts; a word or phrase in several texts gets its greatest weight."""
    words: dict[str, float] = {}
    phrases: dict[str, float] = {}
    for text, weight in sources:
        quoted = [match[1] or match[2] for match in _QUOTED.finditer(text)]
        for phrase in quoted:
            phrases[phrase.casefold()] = max(weight, phrases.get(phrase.casefold(), 0.0))
        in_quotes = dict.fromkeys(stems(" ".join(quoted)), weight * _QUOTED_WORD)
        for word, word_weight in (in_quotes | dict.fromkeys(stems(_QUOTED.sub(" ", text)), weight)).items():
            words[word] = max(word_weight, words.get(word, 0.0))
    return Interest(words, phrases)


def stems(text: str) -> set[str]:
    """Returns the stems of the words of *text*, without stop words; numbers are unchanged."""
    return {stem(word) for word in _WORD.findall(text.casefold()) if word not in _STOP}


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Returns a simple stem of a case-folded word: equal for `categories` and `category`, `created` and `create`."""
    if any(character.isdigit() for character in word):
        return word
    if len(word) > 3 and word.endswith("s"):
        word = word[:-1]
    for ending in ("ing", "ed", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:6]


def focused_lines(text: str, looked_for: Interest, chars: int, *, whole: frozenset[int] = frozenset()) -> list[str]:
    """Returns the lines of *text* that match *looked_for* best, within *chars* characters including gap lines.

    A text that fits is returned completely. The lines *whole* (0-based) are taken first, as far as they fit, and are
    not cut. Equal arguments give equal lines.
    """
    if len(text) <= chars:
        return text.split("\n")
    lines = [read_line(_GAP.sub(r"\\\g<0>", line)) for line in text.split("\n")]
    return _Selection(lines, looked_for, chars, whole).lines()


class Matcher:
    """Scores the match of a text with a query; rare words among *texts* count more."""

    def __init__(self, texts: Sequence[str], looked_for: Interest) -> None:
        plain = [_plain(text) for text in texts]
        words = Counter(word for text in plain for word in stems(text))
        holding = {phrase: sum(phrase in text for text in plain) for phrase in looked_for.phrases}
        self._words = {
            word: weight * _rarity(words[word], len(plain)) for word, weight in looked_for.words.items() if words[word]
        }
        self._phrases = {
            phrase: weight * _PHRASE * _rarity(holding[phrase], len(plain))
            for phrase, weight in looked_for.phrases.items()
            if holding[phrase]
        }

    def match(self, text: str) -> float:
        """Returns the score of *text*; 0 if it shares nothing with the query."""
        plain = _plain(text)
        words = sum(self._words[word] for word in stems(plain) if word in self._words)
        return words + sum(worth for phrase, worth in self._phrases.items() if phrase in plain)

    def cut(self, line: Line, head: str) -> str:
        """Shortens *line* to its best pieces; a cell counts more if its column's name in *head* matches."""
        if len(line.text) <= LINE_ROOM:
            return line.text
        columns = [0.5 * self.match(cell) for cell in head.split(" | ")] if head else []

        def worth(piece: Piece) -> float:
            of_column = columns[piece.cell] if piece.cell < len(columns) else 0.0
            return self.match(piece.text) + of_column + (0.2 if piece.is_control else 0.0)

        room = LINE_ROOM + (MATCH_ROOM if self.match(line.text) >= 1 else 0)
        return cut_line(line.text, room, worth)


def _plain(text: str) -> str:
    """Removes refs, roles and escapes from a line and case-folds it."""
    return _MACHINERY.sub(" ", text).replace('\\"', '"').casefold()


def _rarity(count: int, lines: int) -> float:
    """Inverse document frequency: 1 for a word in one line of a page, near 0 for a word in all lines."""
    return math.log1p(lines / count) / math.log1p(lines)


class _Selection:
    """The selection of lines of one page."""

    def __init__(self, lines: list[Line], looked_for: Interest, chars: int, whole: frozenset[int]) -> None:
        self._lines = lines
        matcher = Matcher([line.text for line in lines], looked_for)
        self._scores = _scores(lines, [matcher.match(line.text) for line in lines])
        heads = _heads(lines)
        self._shown = [
            line.text if index in whole else matcher.cut(line, "" if head is None else lines[head].text)
            for index, (line, head) in enumerate(zip(lines, heads, strict=True))
        ]
        self._whole = whole
        self._context = _context(lines, heads)
        self._kept: set[int] = set()
        self._left = chars - GAP_CHARS
        """Remaining characters, after subtracting gap lines."""

    def lines(self) -> list[str]:
        ranked = sorted(range(len(self._lines)), key=lambda i: (-self._scores[i], i))
        for index in sorted(self._whole):
            self._take({index} - self._kept)
        for index in sorted(self._whole):
            self._take(self._context[index] - self._kept)
        title = next((i for i, line in enumerate(self._lines) if line.kind == "heading"), None)
        for index in ranked if title is None else [title, *ranked]:
            self._take({index, *self._context[index]} - self._kept)
        return self._rendered()

    def _take(self, indexes: set[int]) -> None:
        """Adds all of *indexes*, or none if they do not fit."""
        before = len(self._kept)
        left = self._left
        for index in indexes:
            beside = (index - 1 not in self._kept) + (index + 1 not in self._kept)
            left -= len(self._shown[index]) + 1 + GAP_CHARS * (beside - 1)
            self._kept.add(index)
        if left >= 0:
            self._left = left
        elif len(self._kept) > before:
            self._kept -= indexes

    def _rendered(self) -> list[str]:
        shown: list[str] = []
        last = -1
        for index in (*sorted(self._kept), len(self._lines)):
            left_out = index - last - 1
            if left_out == 1 and len(self._shown[index - 1]) < GAP_CHARS:
                shown.append(self._shown[index - 1])
            elif left_out:
                shown.append(gap_line(left_out))
            if index < len(self._lines):
                shown.append(self._shown[index])
            last = index
        return shown


def gap_line(count: int) -> str:
    """Returns the line that replaces *count* omitted lines."""
    return f"--- {count} more line{'s' if count > 1 else ''}"


def _heads(lines: Sequence[Line]) -> list[int | None]:
    """Returns for every table row the index of the table's first row; None for the first row and other lines."""
    heads: list[int | None] = []
    head: int | None = None
    for index, line in enumerate(lines):
        heads.append(head if line.is_row else None)
        if not line.is_row:
            head = None
        elif head is None:
            head = index
    return heads


def _context(lines: Sequence[Line], heads: Sequence[int | None]) -> list[set[int]]:
    """Returns for every line the lines of its context: heading, table head, and owner of a repeated control.

    A field with the name of its heading needs no heading.
    """
    contexts: list[set[int]] = []
    heading: int | None = None
    words: set[str] = set()
    owners = _owners(lines)
    for index, (line, head, owner) in enumerate(zip(lines, heads, owners, strict=True)):
        if line.kind == "heading":
            heading, words = index, stems(_MACHINERY.sub(" ", line.text))
        above = None if heading is None or words <= stems(line.text) else heading
        contexts.append({i for i in (above, head, owner) if i is not None})
    return contexts


def _owners(lines: Sequence[Line]) -> list[int | None]:
    """Returns for each repeated link or button (`Reply` under every comment) its owner, the line that identifies it:
    the first unique link since the previous such control. None for other lines."""
    skeletons = [_DIGITS.sub("", line.text) for line in lines]
    counts = Counter(skeletons)
    last: dict[str, int] = {}
    owners: list[int | None] = []
    for index, (line, skeleton) in enumerate(zip(lines, skeletons, strict=True)):
        owner = None
        if line.kind in ("link", "button") and not line.is_row and counts[skeleton] >= _ALIKE:
            block = range(max(last.get(skeleton, -1) + 1, index - _BLOCK_LINES), index)
            owner = next((i for i in block if lines[i].kind == "link" and counts[skeletons[i]] < _ALIKE), None)
        last[skeleton] = index
        owners.append(owner)
    return owners


def _scores(lines: Sequence[Line], matches: Sequence[float]) -> list[float]:
    near = _near(lines, matches)
    extra = [base + more for base, more in zip(_bases(lines), _form_shares(lines, matches), strict=True)]
    damped = [value * factor for value, factor in zip(extra, _novelty(lines), strict=True)]
    return [
        match + beside + rest + (_FOCUSED if line.focused else 0.0)
        for line, match, beside, rest in zip(lines, matches, near, damped, strict=True)
    ]


def _bases(lines: Sequence[Line]) -> list[float]:
    """Returns the scores by kind; lower for long lines, which use more of the budget."""
    bases: list[float] = []
    for line in lines:
        base = _IDLE if line.is_idle else _BASE[line.kind]
        if line.kind == "text" and _MESSAGE.search(line.text):
            base = _MESSAGE_BASE
        bases.append(base * min(1.0, _FAIR_CHARS / max(1, len(line.text))) ** 0.5)
    return bases


def _novelty(lines: Sequence[Line]) -> list[float]:
    """Returns 1 for the first line of a shape; less for each earlier line of the same structure, much less for each
    earlier line of the same text, such as the same links under every comment."""
    shapes: Counter[str] = Counter()
    skeletons: Counter[str] = Counter()
    factors: list[float] = []
    for line in lines:
        skeleton = _DIGITS.sub("", line.text)
        factors.append(1 / (1 + 0.05 * shapes[line.shape] + skeletons[skeleton]))
        shapes[line.shape] += 1
        skeletons[skeleton] += 1
    return factors


def _near(lines: Sequence[Line], matches: Sequence[float]) -> list[float]:
    """Returns each line's share of its neighbours' matches."""
    near = [0.0] * len(lines)
    for index, match in enumerate(matches):
        for away, share in enumerate(_NEIGHBOURS, 1):
            for other in (index - away, index + away):
                if (
                    match
                    and 0 <= other < len(lines)
                    and lines[other].shape != lines[index].shape
                    and lines[other].kind != "heading"
                ):
                    near[other] = max(near[other], share * match)
    return near


def _form_shares(lines: Sequence[Line], matches: Sequence[float]) -> list[float]:
    """Returns the bonus of fields and buttons for their form."""
    shares = [0.0] * len(lines)
    for index, line in enumerate(lines):
        if line.focused:
            _share_after_focus(lines, index, shares)
        if line.kind == "button":
            before = range(max(0, index - _SUBMIT_DISTANCE), index)
            best = max((matches[i] + lines[i].focused for i in before if lines[i].has_field), default=0.0)
            submits = _SUBMIT.search(line.text) is not None
            shares[index] += min(1.5, best) * (0.8 if submits else 0.3) + 0.2 * submits
    return shares


def _share_after_focus(lines: Sequence[Line], focused: int, shares: list[float]) -> None:
    following = (i for i in range(focused + 1, len(lines)) if lines[i].has_field or lines[i].kind == "button")
    for index, added in zip(following, _AFTER_FOCUS, strict=False):
        shares[index] += added
    for index in range(focused + 1, min(len(lines), focused + 1 + _MENU_LINES)):
        if lines[index].kind == "link":
            shares[index] += _MENU_SHARE
