"""Which actions a person must approve, and how the person is asked.

Classes are decided from the action and from what using its element sets off (:class:`envs.core.observation.Effect`: the
form's method, the link, the listeners), never from how the element is called; in doubt the person is asked. Only
`download` also takes a name as a hint. Whether a click starts a download cannot always be told: the session cancels
what begins in a step that was not approved, and the click is asked about next time.

Classes are the early question. What a step really sends is held at the boundary (:mod:`envs.security.request_holding`):
whatever a class has missed is asked about there, request by request.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from agent.config import ActionClass
from agent.episode.policy import target_of
from envs.core.actions import (
    UNAPPROVED,
    Action,
    AnswerDialog,
    Back,
    Click,
    ClickAt,
    Drag,
    DragAt,
    Forward,
    Goto,
    Hover,
    Press,
    Select,
    Type,
    Upload,
)
from envs.core.observation import Element, ElementKey, Heard, Observation
from envs.core.past_actions import PastAction
from envs.core.record import Record
from envs.security.held_requests import HeldRequest, HoldCategory


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
    requests: tuple[HeldRequest, ...] = ()
    """What the action is about to send, where that is the question: it was not approved itself, and these requests are
    held until there is an answer. Addresses and fields are data."""


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


_FILE = r"\.(?!(?:[xs]?html?|php\d?|aspx?|jspx?|cgi|do|cfm|py|pl|com|org|net|io|de|eu)\b)(?=\w*[a-z])\w{1,5}$"
_SUBMIT: frozenset[ActionClass] = frozenset({"submit"})
_NONE: frozenset[ActionClass] = frozenset()
_FILE_PATH = re.compile(rf"(?i)[^/]{_FILE}")
"""An address that ends as a file's does: with an extension, and none of a page's."""
_DOWNLOAD_NAME = re.compile(rf"(?i)\b(download|export|save as)\b|\w{_FILE}")
_MODIFIERS = frozenset({"shift", "control", "meta", "controlormeta"})
_MOVING_KEYS = frozenset(
    {"tab", "escape", "arrowup", "arrowdown", "arrowleft", "arrowright", "home", "end", "pageup", "pagedown"}
)
"""They move the focus, the caret or the page; on some controls they choose another value."""
_WRITING_KEYS = frozenset({"space", "backspace", "delete"})
"""Like single characters they change the content of a text field; anywhere else they may be a page's shortcuts."""
_SELECTING, _EDITING = frozenset("ac"), frozenset("vxyz")
"""Letters of the chords that select and copy, and of those that change the content of a field."""
_CHOICE_ROLES = frozenset(
    {"checkbox", "radio", "switch", "slider", "spinbutton", "combobox", "listbox", "option", "tab", "treeitem"}
    | {"menuitem", "menuitemcheckbox", "menuitemradio"}
)
"""Controls of which a moving key may choose the value."""


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


def held_categories(wanted: tuple[ActionClass, ...]) -> tuple[HoldCategory, ...]:
    """Which requests of steps that were not approved are held, see :mod:`envs.security.request_holding`."""
    found: dict[ActionClass, tuple[HoldCategory, ...]] = {
        "submit": ("submit",),
        "navigation": ("navigation",),
        "all": ("submit", "navigation"),
    }
    return tuple(dict.fromkeys(category for name in wanted for category in found.get(name, ())))


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
        case AnswerDialog(accept=True):
            return _SUBMIT
        case Press(keys=keys):
            return _submit_if(not _is_harmless(keys, observation))
        case ClickAt() | DragAt():
            # Nothing is known of what lies at a point.
            return frozenset({"submit", "navigation", "download"})
        case Drag(ref=ref, to_ref=to_ref):
            # It presses the button on the one and lets go of it on the other, which may be a click, or a drop.
            ends = (observation.element(ref), observation.element(to_ref))
            return _SUBMIT.union(*(_classes_of_click(end) for end in ends))
        case Click() | Type() | Select() | Hover() | Upload():
            element = observation.element(action.ref)
            return _classes_on(action, element) if element is not None else _classes_on_nothing(action)
        case _:
            return _NONE


def _classes_on_nothing(action: Action) -> frozenset[ActionClass]:
    """Of an element that was not shown: the session refuses it."""
    if isinstance(action, Upload):
        return frozenset({"upload"})
    return _submit_if(isinstance(action, Type) and action.enter)


def _classes_on(action: Click | Type | Select | Hover | Upload, element: Element) -> frozenset[ActionClass]:
    match action:
        case Click():
            return _classes_of_click(element)
        case Type(enter=enter):
            return _classes_of_typing(element) | _submit_if(enter)
        case Select():
            return _submit_if(_may_hear(element, "edit"))
        case Hover():
            return _submit_if(_may_hear(element, "hover"))
        case Upload():
            # Anything but a file input is clicked, to open a chooser.
            clicked = _NONE if _takes(element) == "file" else _classes_of_click(element)
            return frozenset[ActionClass]({"upload"}) | _submit_if(_may_hear(element, "edit")) | clicked


def _submit_if(answer: bool) -> frozenset[ActionClass]:
    return _SUBMIT if answer else _NONE


def _may_hear(element: Element, what: Heard) -> bool:
    return element.effect is None or what in element.effect.heard


def _takes(element: Element) -> str:
    return "" if element.effect is None else element.effect.takes


def _names_a_file(url: str) -> bool:
    with suppress(ValueError):  # it is no address: nothing is opened
        return _FILE_PATH.search(urlsplit(url).path) is not None
    return False


def _classes_of_click(element: Element | None) -> frozenset[ActionClass]:
    if element is None:
        return frozenset()
    found = set(_submit_if(_may_submit(element)))
    effect = element.effect
    leaves = effect is not None and (effect.leads != "" or effect.sends == "get")
    if leaves or element.key.role == "link":
        found.add("navigation")
    if _DOWNLOAD_NAME.search(element.key.name) or (effect is not None and effect.leads == "file"):
        found.add("download")
    return frozenset(found)


def _may_submit(element: Element) -> bool:
    """A form sent by GET and a link to a page only load a page; that a dialog is closed asks nothing of a server."""
    effect = element.effect
    if effect is None or "press" in effect.heard:
        return True
    return effect.sends in ("post", "other") or effect.leads == "other"


def _classes_of_typing(element: Element) -> frozenset[ActionClass]:
    """Typing clicks the element first. What is no field for text gets the keys wherever the focus then is."""
    return _classes_of_click(element) | _submit_if(_takes(element) != "text" or _may_hear(element, "edit"))


def _is_harmless(keys: str, observation: Observation) -> bool:
    """Whether a key or chord is known to send nothing, from what has the focus; all others are asked about."""
    *modifiers, key = [part or "+" for part in keys.lower().removesuffix("+").split("+")]
    if not _MODIFIERS.issuperset(modifiers):
        return False
    chord = bool(set(modifiers) - {"shift"})
    focused = [element for element in observation.elements if "focused" in element.states]
    if key in _MOVING_KEYS:
        return not any(e.key.role in _CHOICE_ROLES and _reacts(e) for e in focused) or key in ("tab", "escape")
    if chord and key in _SELECTING:
        return True
    if (chord and key in _EDITING) or (not chord and (key in _WRITING_KEYS or _is_character(key))):
        # In a frame, an element may have the focus of its document and the keyboard be elsewhere.
        return bool(focused) and all(_takes(e) == "text" and e.key.frame == "" and not _reacts(e) for e in focused)
    return False


def _reacts(element: Element) -> bool:
    return _may_hear(element, "edit") or (_takes(element) != "text" and _may_hear(element, "press"))


def _is_character(key: str) -> bool:
    return len(key) == 1 and key.isprintable()
