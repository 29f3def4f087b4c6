"""The cheap check of the `auto` budget: whether an open milestone may have been achieved since the last rating.

It uses no model. A wrong "no" delays a flip by at most `ask_every` steps; a wrong "yes" costs one short call.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

from envs.core.actions import Stop
from envs.core.observation import Observation
from envs.observer.page_state import FOCUSED, steady_text
from envs.observer.page_text import LOG_LINE_CHARS
from judges.base import Progress
from models.prompting.prompt_text import log_lines

LARGE_CHANGE: Final = 0.3
"""Share of changed lines from which any change counts: the view was replaced."""
MIN_TERM_CHARS: Final = 3
STEM_CHARS: Final = 5
"""Terms are compared by their first characters, so that `submit` matches `submitted`."""
UNSPACED_FROM: Final = "\u2e80"
"""First character of the scripts that do not separate words (Chinese, Japanese and their neighbours in Unicode)."""

_WORD = re.compile(r"[^\W_]+")
_REF = re.compile(r"\[\d+\]")
_STOP = frozenset(
    re.findall(
        r"\w+",
        """
    the and for with from that this into have has had see show open page field list new one its out are was not any
    all first last button link click type then them their each must milestone text name value
""",
    )
)


Idle = Literal["no action was taken yet", "only the focus moved"]


def idle(progress: Progress) -> Idle | None:
    """Why the agent cannot have achieved anything since the last rating; None where it can have.

    At the end of an episode a page that was not rated before is never idle.
    """
    if progress.step == 0:
        return "no action was taken yet"
    if progress.final and progress.unrated:
        return None
    return "only the focus moved" if _only_focus_moved(progress) else None


def _only_focus_moved(progress: Progress) -> bool:
    """Whether the focus, and clocks and tokens at most, tell the page from the one before. A download or a dialog is a
    result of its own."""
    previous, now = progress.previous, progress.observation
    last = progress.history[-1].result if progress.history else None
    if previous is None or _frame(previous) != _frame(now) or (last is not None and (last.downloads or last.dialogs)):
        return False
    moved = _focused_lines(previous.text) != _focused_lines(now.text)
    return moved and steady_text(previous.text) == steady_text(now.text)


def _focused_lines(text: str) -> list[str]:
    return [with_masked_refs(line) for line in text.splitlines() if FOCUSED.search(line)]


def may_have_progressed(progress: Progress, *, ask_every: int) -> bool:
    """Returns False only if no change since `progress.previous` is relevant to an open milestone.

    True at the first rating and after a page that was not rated, every *ask_every* steps (but not where the agent only
    ended the task, without an answer and on the page that was rated last), if address, title, tabs or
    dialog changed, if much of the page changed, and if the changed lines or the last action share a word with an open
    milestone.
    """
    previous, now = progress.previous, progress.observation
    steps = len(progress.history) if progress.step is None else progress.step
    if previous is None or progress.unrated:
        return True
    if _only_ended(progress):
        return False
    if steps % ask_every == 0:
        return True
    if _frame(previous) != _frame(now):
        return True
    open_terms = terms(milestone.text for milestone in progress.open)
    if not open_terms or open_terms & terms(log_lines(progress.history[-1:], LOG_LINE_CHARS)):
        return True
    changed = changed_lines(previous.text, now.text)
    lines = max(1, len(now.text.splitlines()), len(previous.text.splitlines()))
    return len(changed) > LARGE_CHANGE * lines or bool(open_terms & terms(changed))


def _only_ended(progress: Progress) -> bool:
    """Whether the last action ended the task without an answer, and the page is as it was."""
    last = progress.history[-1].action if progress.history else None
    previous, now = progress.previous, progress.observation
    same = (
        previous is not None and _frame(previous) == _frame(now) and steady_text(previous.text) == steady_text(now.text)
    )
    return same and isinstance(last, Stop) and not last.answer


def changed_lines(before: str, after: str) -> list[str]:
    """Lines that only one of the two texts has, repeated as often, without element numbers."""
    old, new = (Counter(map(with_masked_refs, text.splitlines())) for text in (before, after))
    return list(((old - new) + (new - old)).elements())


def with_masked_refs(line: str) -> str:
    """*line* with `[]` in place of its element numbers, which change from page to page."""
    return _REF.sub("[]", line).strip()


def terms(texts: Iterable[str]) -> frozenset[str]:
    """The content words of *texts*, without stop words, cut to stems; character pairs for scripts that do not separate
    words."""
    result: set[str] = set()
    for text in texts:
        for word in _WORD.findall(text.casefold()):
            if max(word) >= UNSPACED_FROM:
                result.update(word[i : i + 2] for i in range(max(1, len(word) - 1)))
            elif word not in _STOP and (len(word) >= MIN_TERM_CHARS or word.isdigit()):
                result.add(word[:STEM_CHARS])
    return frozenset(result)


def _frame(observation: Observation) -> tuple[object, ...]:
    tabs = tuple((tab.url, tab.active) for tab in observation.tabs)
    return observation.url, observation.title, tabs, observation.dialog
