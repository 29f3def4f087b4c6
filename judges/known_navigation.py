"""Shortens the page that a large rater is shown: menus that the page rated before had too become one line.

Such a line was rated already, has no state and no value, and shares no word with an open milestone. So it can be no
proof. A quote of it would still be accepted: :mod:`judges.evidence` reads the whole page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from envs.core.tasks import Milestone
from envs.observer.page_lines import without_refs
from judges.base import Progress
from judges.relevance import terms

RUN: Final = 3
"""Fewest lines in a row that are replaced."""

_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_PLAIN: Final = re.compile(rf"(?:(?:link|button) {_STRING}(?: collapsed)?(?: title {_STRING})?(?:\s+|$))+")
"""Links and buttons without state."""


def rated_page(progress: Progress, text: str) -> str:
    """*text*, the page of *progress* without numbers of controls, as the rater is shown it."""
    if progress.previous is None or progress.unrated:
        return text
    known = frozenset(without_refs(progress.previous.text).split("\n"))
    return without_navigation(text, known, progress.open)


def without_navigation(text: str, known: frozenset[str], milestones: Sequence[Milestone]) -> str:
    """*text* with one line in place of each run of *known* links and buttons that no word of *milestones* names."""
    sought = terms(milestone.text for milestone in milestones)

    def is_left_out(line: str) -> bool:
        return line in known and _PLAIN.fullmatch(line) is not None and not sought & terms([line])

    shown: list[str] = []
    for left_out, run in groupby(text.split("\n"), key=is_left_out):
        lines = list(run)
        many = left_out and len(lines) >= RUN
        shown += [f"=== {len(lines)} lines of links and buttons as on the page before"] if many else lines
    return "\n".join(shown)
