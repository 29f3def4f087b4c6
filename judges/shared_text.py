"""Finds the words that several texts of one template share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

_TOKEN: Final = re.compile(r"\s*(?:\w+|[^\w\s])")
"""A word or a punctuation mark, with the white space before it."""
_GAP: Final = "\ue000"
"""Marks where the texts differ; a private-use character."""


def shared_text(texts: Iterable[str]) -> str:
    """The words that all *texts* have, in order, and `…` where they differ; empty if they share no word.

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


def _in_both(first: Sequence[str], second: Sequence[str]) -> Iterator[str]:
    """The tokens of the longest matching runs, separated by a gap if either text has more between them."""
    here = there = 0
    for start_first, start_second, length in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
        if missing := [*first[here:start_first], *second[there:start_second]]:
            yield f" {_GAP}" if missing[0][0].isspace() else _GAP
        yield from first[start_first : start_first + length]
        here, there = start_first + length, start_second + length
