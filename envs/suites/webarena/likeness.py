"""How alike two names are."""

from __future__ import annotations

import re

MAX_NAME = 500
"""So many characters of a name are compared."""


def likeness(one: str, other: str) -> int:
    """In percent, whatever the order of the words and the signs between them: twice the longest common subsequence."""
    left, right = (" ".join(sorted(re.sub(r"[\W_]", " ", text).lower().split()))[:MAX_NAME] for text in (one, other))
    if not left and not right:
        return 100
    return round(200 * _common(left, right) / (len(left) + len(right)))


def _common(one: str, other: str) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for character in one:
        before = 0
        for n, opposite in enumerate(other, 1):
            before, row[n] = row[n], before + 1 if character == opposite else max(row[n], row[n - 1])
    return row[-1]
