"""What several texts of the same form have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

_TOKEN: Final = re.compile(r"\s*(?:\w+|[^\w\s])")
"""A word or a sign with the white space before it."""
_GAP: Final = "\ue000"
"""Stands where the texts differ: a character of no text."""


def shared_text(texts: Iterable[str]) -> str:
    """The words that all *texts* have, in order, and `…` where they differ; empty where they share no word.

    `Username is "ann"` and `Username is "bob"` make `Username is "…"`.
    """
    distinct = list(dict.fromkeys(texts))
    if len(distinct) < 2:
        return "".join(distinct)
    shared = _tokens(distinct[0])
    for text in distinct[1:]:
        shared = list(_in_both(shared, _tokens(text)))
    text = "".join(shared)
    return re.sub(rf"{_GAP}(\s*{_GAP})*", "…", text).strip() if re.search(r"\w", text) else ""


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.replace(_GAP, " "))


def _in_both(one: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    """The tokens of the longest matching runs, a gap between two of them where either text has more."""
    here = there = 0
    for start_one, start_other, length in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks():
        if missing := [*one[here:start_one], *other[there:start_other]]:
            yield f" {_GAP}" if missing[0][0].isspace() else _GAP
        yield from one[start_one : start_one + length]
        here, there = start_one + length, start_other + length
