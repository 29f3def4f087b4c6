"""Similarity of a text to its reference, as VisualWebBench measures it with the package `rouge` (pltrdy/rouge 1.0.1).

A text is split into sentences at full stops and into words at white space; case and other punctuation count. Numbers
are of distinct words. The package is no dependency; `tests/training/grpo/rewards/test_texts.py` holds its results.
"""

from __future__ import annotations

from collections.abc import Sequence

_SMALL = 1e-8
"""Added to a denominator, as the package does."""


def word_f1(answer: str, reference: str) -> float:
    """ROUGE-1: the F1 of the distinct words, 0 to 1; VisualWebBench's metric of questions."""
    ours, theirs = ({word for words in _sentences(text) for word in words} for text in (answer, reference))
    return _f1(len(ours & theirs), len(ours), len(theirs))


def rouge_l(answer: str, reference: str) -> float:
    """ROUGE-L of summaries (Lin 2004, §3.2), 0 to 1: the F1 of the words in the union of the longest common
    subsequences of every sentence of *reference* with every sentence of *answer*."""
    ours, theirs = _sentences(answer), _sentences(reference)
    common: set[str] = set()
    for sentence in theirs:
        for other in ours:
            common |= set(_common(sentence, other))
    return _f1(len(common), *(len({word for words in text for word in words}) for text in (ours, theirs)))


def _sentences(text: str) -> list[list[str]]:
    """The words of each sentence that has any."""
    return [words for sentence in text.split(".") if (words := sentence.split())]


def _f1(common: int, ours: int, theirs: int) -> float:
    if not ours or not theirs:
        return 0.0
    precision, recall = common / ours, common / theirs
    return 2 * precision * recall / (precision + recall + _SMALL)


def _common(one: Sequence[str], other: Sequence[str]) -> list[str]:
    """A longest common subsequence; of several the one that the package takes."""
    lengths = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, word in enumerate(one, 1):
        for j, candidate in enumerate(other, 1):
            equal = word == candidate
            lengths[i][j] = lengths[i - 1][j - 1] + 1 if equal else max(lengths[i - 1][j], lengths[i][j - 1])
    i, j, found = len(one), len(other), list[str]()
    while i and j:
        if one[i - 1] == other[j - 1]:
            found.append(one[i - 1])
            i, j = i - 1, j - 1
        elif lengths[i - 1][j] > lengths[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found
