"""Similarity of two names."""

from __future__ import annotations

import re

MAX_NAME = 500
"""Characters of a name that are compared."""


def similarity(first: str, second: str) -> int:
    """In percent, ignoring word order and punctuation: twice the longest common subsequence over both lengths."""
    left, right = (" ".join(sorted(re.sub(r"[\W_]", " ", text).lower().split()))[:MAX_NAME] for text in (first, second))
    if not left and not right:
        return 100
    return round(200 * _common_length(left, right) / (len(left) + len(right)))


def _common_length(left: str, right: str) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(right) + 1)
    for character in left:
        before = 0
        for n, opposite in enumerate(right, 1):
            before, row[n] = row[n], before + 1 if character == opposite else max(row[n], row[n - 1])
    return row[-1]
