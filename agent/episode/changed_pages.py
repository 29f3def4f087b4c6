"""Tells whether an action changed the page, from its result and the observations before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from envs.core.actions import (
    Action,
    Back,
    Click,
    ClickAt,
    Drag,
    DragAt,
    Forward,
    Hover,
    Press,
    Reason,
    Scroll,
    ScrollAt,
    Select,
    Type,
    Upload,
    Wait,
)
from envs.core.observation import ElementKey, Observation
from envs.core.past_actions import PastAction
from envs.observer.page_state import steady_text

_JUDGED = (
    Back | Click | ClickAt | Drag | DragAt | Forward | Hover | Press | Scroll | ScrollAt | Select | Type | Upload | Wait
)
"""Actions that are meant to change what the page shows."""
_ON_ELEMENT = Click | Drag | Hover | Select | Type | Upload
"""Actions that scroll their element into view."""
_AT_PLACE = ClickAt | DragAt | ScrollAt
"""Actions that may move the focus on the way, as those on elements do."""
IDLE_ACTIONS: Final = 3
"""No-op actions in a row that are a problem."""


def changed(past: PastAction, before: Observation | None, after: Observation) -> bool | None:
    """Whether the page changed by the action, or since: the observation *after* may come later than its result.

    None: not known, or the action failed or is not meant to change the page. The result knows what no observation
    shows (scroll position, appearance, clipboard, other tabs); the observations show what the result could not compare
    (the text of a document that was rendered again). Clocks and tokens do not count as changes.
    """
    result = past.result
    if result is None or not result.ok or not isinstance(past.action, _JUDGED):
        return None
    if result.dialogs or result.downloads or result.new_tabs:
        return True
    if result.change == "yes":
        return before is None or not (_fills_in(past.action) and _same_page(before, after))
    if before is None:
        return None
    if result.change is None and not isinstance(past.action, Wait):
        return not (_same_places(before, after) and before.scroll == after.scroll and before.digest == after.digest)
    same = _same_page(before, after)
    if not isinstance(past.action, _ON_ELEMENT):
        same = same and before.scroll == after.scroll
    if not isinstance(past.action, _ON_ELEMENT | _AT_PLACE):
        same = same and _focused(before) == _focused(after)
    return not same


def idle_actions(history: Sequence[PastAction]) -> int:
    """Number of no-op actions in a row at the end of *history*; those that failed or only read are passed over."""
    count = 0
    for past in reversed(history):
        if past.changed:
            break
        count += past.changed is False or _said_so(past)
    return count


def _said_so(past: PastAction) -> bool:
    return past.changed is None and past.result is not None and past.result.reason is Reason.NO_EFFECT


def _fills_in(action: Action) -> bool:
    """Whether it changes a value alone. Its result also counts the focus, and the moment in which a field is empty."""
    return isinstance(action, Select) or (isinstance(action, Type) and not action.enter)


def _same_page(before: Observation, after: Observation) -> bool:
    return _same_places(before, after) and _same_content(before, after)


def _same_places(before: Observation, after: Observation) -> bool:
    return (before.url, before.title, before.tabs, before.dialog) == (after.url, after.title, after.tabs, after.dialog)


def _focused(seen: Observation) -> list[ElementKey]:
    return [element.key for element in seen.elements if "focused" in element.states]


def _same_content(before: Observation, after: Observation) -> bool:
    """Whether text and values are the same, without the focus."""
    if before.digest == after.digest:
        return True
    same = [element.value for element in before.elements] == [element.value for element in after.elements]
    return same and steady_text(before.text) == steady_text(after.text)
