"""Which actions a person must approve, and how the person is asked.

Classes are decided from typed facts about the element (role, tag, name) and the action, never from page text
as a whole, and on the side of asking: a click that may submit counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from agent.config import ActionClass
from envs.actions import Action, AnswerDialog, Back, Click, ClickAt, Forward, Goto, Press, Type, Upload
from envs.observation import Element, Observation
from envs.record import Record


class ApprovalRequest(Record):
    """What a person is shown before saying yes or no."""

    episode_id: str
    step: int
    action: str
    """The action in its language, with the element's name; page text in it is data."""
    classes: tuple[ActionClass, ...]
    url: str
    instruction: str


MAX_DECLINES = 3
"""Declined actions after which an episode ends: the person does not want what the policy wants."""

Approver = Callable[[ApprovalRequest], Awaitable[bool]]
"""True carries the action out. Raising is not an answer: the episode is then broken."""


async def decline(request: ApprovalRequest) -> bool:
    """The approver of a run with nobody to ask."""
    del request
    return False


_SUBMIT_ROLES = frozenset({"button", "menuitem", "image"})
_HARMLESS_NAME = re.compile(r"(?i)^\W*(cancel|close|back|previous|next|dismiss|expand|collapse|show|hide|menu|more)\b")
_DOWNLOAD_NAME = re.compile(r"(?i)\b(download|export|save as)\b")
_PRESSING_KEYS = frozenset({"enter", "numpadenter", "return", "space", " "})
"""They press the button that has the focus; in a field Space only writes, which cannot be told from here."""


def needs_approval(
    action: Action, observation: Observation, wanted: tuple[ActionClass, ...]
) -> tuple[ActionClass, ...]:
    """The classes of *wanted* that this action falls into; empty means it may go ahead unasked."""
    if not wanted or action.kind in ("stop", "find", "expand", "wait"):
        return ()
    if "all" in wanted:
        return ("all",)
    return tuple(name for name in wanted if name in classes_of(action, observation))


def classes_of(action: Action, observation: Observation) -> frozenset[ActionClass]:
    """Every class an action falls into, judged by what is known of its element."""
    match action:
        case Goto() | Back() | Forward():
            return frozenset({"navigation"})
        case Upload():
            return frozenset({"upload"})
        case Type(enter=True) | AnswerDialog(accept=True):
            return frozenset({"submit"})
        case Press(keys=keys):
            return frozenset({"submit"}) if _presses_a_button(keys) else frozenset()
        case ClickAt():
            # Nothing is known of what lies at a point.
            return frozenset({"submit", "navigation", "download"})
        case Click(ref=ref):
            return _classes_of_click(observation.element(ref))
        case _:
            return frozenset()


def _classes_of_click(element: Element | None) -> frozenset[ActionClass]:
    if element is None:
        return frozenset()
    found: set[ActionClass] = set()
    if element.key.role == "link":
        found.add("navigation")
    if _may_submit(element):
        found.add("submit")
    if _DOWNLOAD_NAME.search(element.key.name):
        found.add("download")
    return frozenset(found)


def _may_submit(element: Element) -> bool:
    if element.key.role not in _SUBMIT_ROLES and element.tag != "button":
        # A link or a clickable `div` may post too; only form controls and tabs are known not to.
        return element.key.role in ("", "generic", "link") and not _HARMLESS_NAME.match(element.key.name)
    return not _HARMLESS_NAME.match(element.key.name)


def _presses_a_button(keys: str) -> bool:
    return keys.rsplit("+", 1)[-1].lower() in _PRESSING_KEYS
