"""The log of an episode's actions within a budget of characters, for prompts of large models.

::

    steps 1-31 on 6 pages (/list ×19, /item?id=7 ×5, …): 24 click, 7 type; among them type "17" into …   oldest, merged
    steps 32-40 on "Orders" /orders: type "17" into searchbox "Search"; click button "Next" ×6; then /orders/17
    at "Order 17" /orders/17
    41. click button "delete" in row "Mug · 2"

Every action has a line until the lines are longer than their share of the budget. Then the older half of the share is
summarised, all at once, so that the log of most steps begins with that of the step before (prefix caches). Summaries
take a quarter of the budget; older ones are merged into one line, with counts. Nothing is left out without its count.

The log is a pure function of the actions: a resumed episode shows the same. Its text is data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from envs.core.actions import Find, Goto, Select, Stop, Type, Upload
from envs.core.past_actions import PageName, PastAction
from envs.observer.page_text import ADDRESS_CHARS, LOG_LINE_CHARS, one_line, within_site

LOG_CHARS: Final = 8_000
"""Default budget: about 100 actions."""
SUMMARY_SHARE: Final = 0.25
KEPT_SHARE: Final = 0.5
"""Share of the budget for actions, that is left to lines of single actions after a summary."""
ITEM_CHARS: Final = 90
"""Longest action in a summary."""
VALUES: Final = 4
"""Actions with a value (typed, chosen, searched, gone to) in the summary of a page."""
OTHERS: Final = 3
"""Other actions in the summary of a page."""
PAGES: Final = 4
"""Addresses in the summary of several pages."""

_VALUED: Final = (Type, Select, Upload, Goto, Find, Stop)


@dataclass(frozen=True, slots=True)
class _Step:
    number: int
    past: PastAction

    @property
    def page(self) -> PageName | None:
        return self.past.page

    def line(self) -> str:
        return one_line(f"{self.number}. {self.past.full_line()}", LOG_LINE_CHARS)


def action_log(history: Sequence[PastAction], chars: int = LOG_CHARS) -> str:
    """The log in at most *chars* characters (not counting a single last line that is longer), oldest action first.

    *history* has every action from step 1 on. The text is data: page titles, names and typed text stand in it."""
    return "\n".join(action_log_lines(history, chars)) if history else "(no action yet)"


def action_log_lines(history: Sequence[PastAction], chars: int = LOG_CHARS) -> list[str]:
    """The lines of :func:`action_log`; none for no action."""
    steps = [_Step(number, past) for number, past in enumerate(history, 1)]
    blocks = list(_blocks(steps))
    first = _first_shown(blocks, round(chars * (1 - SUMMARY_SHARE)))
    lines = _summaries(steps[:first], round(chars * SUMMARY_SHARE))
    shown = [line for block in blocks[first:] for line in block]
    if first and first < len(steps) and len(blocks[first]) == 1:
        shown = [*_page_line(steps[first].page), *shown]
    return [*lines, *shown]


def _blocks(steps: Sequence[_Step]) -> Iterator[list[str]]:
    """The lines of each action: its page, where that differs from the page before, and the action."""
    page: PageName | None = None
    for step in steps:
        yield [*(_page_line(step.page) if _url(step.page) != _url(page) else ()), step.line()]
        page = step.page


def _page_line(page: PageName | None) -> list[str]:
    return [] if page is None else [f"at {_page(page)}"]


def _page(page: PageName) -> str:
    title = one_line(page.title, ITEM_CHARS)
    return f'"{title}" {_address(page)}' if title else _address(page)


def _url(page: PageName | None) -> str | None:
    """Identifies a page; its title may change while one stays on it."""
    return None if page is None else page.url


def _address(page: PageName) -> str:
    """The address within the site with its fragment, by which many applications name their pages."""
    _, _, fragment = page.url.partition("#")
    return one_line(f"{within_site(page.url)}#{fragment}" if fragment else within_site(page.url), ADDRESS_CHARS)


def _first_shown(blocks: Sequence[list[str]], chars: int) -> int:
    """Index of the first action with a line of its own. It changes rarely: each time, room for many actions is made."""
    sizes = [sum(len(line) + 1 for line in block) for block in blocks]
    first = total = 0
    for index, size in enumerate(sizes):
        total += size
        if total <= chars:
            continue
        while first < index and total > chars * KEPT_SHARE:
            total -= sizes[first]
            first += 1
    return first


def _summaries(steps: Sequence[_Step], chars: int) -> list[str]:
    """The older actions by page, in at most *chars* characters; what does not fit is merged into the first line."""
    if not steps:
        return []
    visits = [list(group) for _, group in groupby(steps, key=lambda step: _url(step.page))]
    following = [*(visit[0].page for visit in visits[1:]), None]
    lines = [_visit(visit, after) for visit, after in zip(visits, following, strict=True)]
    if sum(len(line) + 1 for line in lines) <= chars:
        return lines
    room, kept = chars - LOG_LINE_CHARS, len(lines)
    while kept and room >= len(lines[kept - 1]) + 1:
        kept -= 1
        room -= len(lines[kept]) + 1
    merged = [step for visit in visits[:kept] for step in visit]
    return [_merged(merged), *lines[kept:]]


def _visit(steps: Sequence[_Step], after: PageName | None) -> str:
    """One visit of a page: its actions and the page that they led to."""
    page = steps[0].page
    on = f" on {_page(page)}" if page is not None else ""
    reached = f"; then {_address(after)}" if after is not None else ""
    return one_line(f"{_numbers(steps)}{on}: {'; '.join(_items(steps))}{reached}", LOG_LINE_CHARS)


def _items(steps: Iterable[_Step]) -> Iterator[str]:
    """The actions of a visit: those with values first, each once with its count, and how many failed."""
    done = [step.past for step in steps]
    counted = Counter(_item(past) for past in done)
    valued = dict.fromkeys(_item(past) for past in done if isinstance(past.action, _VALUED))
    others = [item for item in counted if item not in valued]
    shown = [*list(valued)[:VALUES], *others[:OTHERS]]
    for item in shown:
        yield f"{item} ×{counted[item]}" if counted[item] > 1 else item
    if left := len(done) - sum(counted[item] for item in shown):
        yield f"{left} more"
    if failed := sum(not past.carried_out for past in done):
        yield f"{failed} failed or unknown"


def _item(past: PastAction) -> str:
    return one_line(past.full_words(), ITEM_CHARS)


def _merged(steps: Sequence[_Step]) -> str:
    """Many actions on many pages: addresses and kinds of actions with their counts."""
    pages = Counter(_address(step.page) if step.page is not None else "" for step in steps)
    pages.pop("", None)
    named = ", ".join(f"{one_line(url, ITEM_CHARS)} ×{count}" for url, count in pages.most_common(PAGES))
    more = f", and {len(pages) - PAGES} more" if len(pages) > PAGES else ""
    on = f" on {len(pages)} pages ({named}{more})" if pages else ""
    kinds = Counter(step.past.action.kind.replace("_", " ") for step in steps)
    done = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    failed = sum(not step.past.carried_out for step in steps)
    values = list(dict.fromkeys(_item(step.past) for step in steps if isinstance(step.past.action, _VALUED)))
    parts = [
        f"{_numbers(steps)}{on}: {done}",
        *([f"{failed} failed or unknown"] if failed else []),
        *([f"among them {'; '.join(values[-VALUES:])}"] if values else []),
    ]
    return one_line("; ".join(parts), LOG_LINE_CHARS)


def _numbers(steps: Sequence[_Step]) -> str:
    first, last = steps[0].number, steps[-1].number
    return f"step {first}" if first == last else f"steps {first}-{last}"
