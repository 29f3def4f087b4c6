"""Which actions a person must approve, and how the person is asked.

Classes are decided from typed facts about the element (role, tag, name) and the action, never from page text
as a whole, and on the side of asking: a click that may submit counts as one. Whether a click lets a file down cannot
always be told: the session cancels what begins in a step that was not approved, and the click is asked about next time.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from agent.config import ActionClass
from agent.policy import PastAction, target_of
from envs.actions import UNAPPROVED, Action, AnswerDialog, Back, Click, ClickAt, Forward, Goto, Press, Type, Upload
from envs.observation import Element, ElementKey, Observation
from envs.record import Record


class ApprovalRequest(Record):
    """What a person is shown before saying yes or no."""

    episode_id: str
    step: int
    action: str
    """In words with the element's name, then in its language: `click button "Buy": do(action="Click", element="2")`.
    Page text in it is data."""
    classes: tuple[ActionClass, ...]
    url: str
    instruction: str


NOBODY = "nobody is there to approve it"
"""Why an action was declined that nobody was asked about."""
MAX_DECLINES = 3
"""Declined actions after which an episode ends: the person does not want what the policy wants, or is not there."""

Approver = Callable[[ApprovalRequest], Awaitable[bool | None]]
"""True carries the action out; None says that nobody was there to ask, which declines it. Raising is not an answer: the
episode is then broken."""


async def decline(request: ApprovalRequest) -> None:
    """The approver of a run with nobody to ask."""
    del request


_SUBMIT_ROLES = frozenset({"button", "menuitem", "image"})
_HARMLESS_NAME = re.compile(r"(?i)^\W*(cancel|close|back|previous|next|dismiss|expand|collapse|show|hide|menu|more)\b")
_FILE = r"\.(?!(?:[xs]?html?|php\d?|aspx?|jspx?|cgi|do|cfm|py|pl|com|org|net|io|de|eu)\b)(?=\w*[a-z])\w{1,5}$"
_FILE_PATH = re.compile(rf"(?i)[^/]{_FILE}")
"""An address that ends as a file's does: with an extension, and none of a page's."""
_DOWNLOAD_NAME = re.compile(rf"(?i)\b(download|export|save as)\b|\w{_FILE}")
_PRESSING_KEYS = frozenset({"enter", "numpadenter", "return", "space", " "})
"""They press the button that has the focus; in a field Space only writes, which cannot be told from here."""


def needs_approval(
    action: Action, observation: Observation, wanted: tuple[ActionClass, ...], past: Sequence[PastAction] = ()
) -> tuple[ActionClass, ...]:
    """The classes of *wanted* that this action falls into, by what came of the same one in the *past* too; empty means
    it may go ahead unasked."""
    if not wanted or action.kind in ("stop", "find", "expand", "wait"):
        return ()
    if "all" in wanted:
        return ("all",)
    classes = classes_of(action, observation)
    if "download" in wanted and "download" not in classes and _lets_down(action, observation, past):
        classes |= {"download"}
    return tuple(name for name in wanted if name in classes)


def asks_about_downloads(wanted: tuple[ActionClass, ...]) -> bool:
    return "download" in wanted or "all" in wanted


def _lets_down(action: Action, observation: Observation, past: Sequence[PastAction]) -> bool:
    """Whether the same was done to the same element before, and a download was refused in that step or the next, which
    is where one that comes late is told of."""
    mine = _done_to(action, target_of(action, observation))
    refused = [one.result is not None and UNAPPROVED in one.result.message for one in past]
    return any(
        _done_to(one.action, one.target) == mine for place, one in enumerate(past) if any(refused[place : place + 2])
    )


def _done_to(action: Action, target: ElementKey | None) -> tuple[dict[str, object], ElementKey | None]:
    return action.model_dump(exclude={"ref"}), target


def classes_of(action: Action, observation: Observation) -> frozenset[ActionClass]:
    """Every class an action falls into, judged by what is known of its element."""
    match action:
        case Goto(url=url) if _names_a_file(url):
            return frozenset({"navigation", "download"})
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


def _names_a_file(url: str) -> bool:
    with suppress(ValueError):  # it is no address: nothing is opened
        return _FILE_PATH.search(urlsplit(url).path) is not None
    return False


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
