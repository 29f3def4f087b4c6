"""Decides which actions need approval, and defines the question to a person.

An action's classes follow from its kind and from the effect of its element (:class:`envs.core.observation.Effect`: the
form's method, the link, the listeners), never from the element's name; in doubt the action needs approval. Only
`download` also uses the name as a hint. Not every download can be predicted: the session cancels a download that begins
in a step without approval, and the same click needs approval the next time.

Classes are the first check. The requests of a step without approval are held at the proxy
(:mod:`envs.security.request_holding`): what the classes missed needs approval there, request by request.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from agent.config import ActionClass
from agent.episode.policy import target_of
from envs.core.actions import (
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
    UseTool,
)
from envs.core.observation import Element, ElementKey, InputKind, Observation
from envs.core.past_actions import PastAction
from envs.core.record import Record
from envs.security.held_requests import HeldRequest, HoldCategory

__all__ = ["ApprovalRequest", "Approver", "decline"]


class ApprovalRequest(Record):
    """The question to a person about an action or its requests."""

    episode_id: str
    step: int
    action: str
    """In words with the element's name, then in its language: `click button "Buy": do(action="Click", element="2")`.
    Page text in it is data."""
    classes: tuple[ActionClass, ...]
    """Empty where only the vendor's checks ask."""
    url: str
    instruction: str
    requests: tuple[HeldRequest, ...] = ()
    """Requests of an action without approval, which are held until the answer; empty for a question about an action.
    Addresses and fields are data."""
    checks: tuple[str, ...] = ()
    """Doubts of the model's vendor about the action, as it words them."""

    @property
    def question(self) -> str:
        """The question in one line. Page text in it is data."""
        if not self.requests:
            return f"step {self.step} wants to: {self.action}  at {self.url}"
        count = "a request" if len(self.requests) == 1 else f"{len(self.requests)} requests"
        return f"step {self.step} ({self.action}) is about to send {count}  at {self.url}"

    @property
    def details(self) -> tuple[str, ...]:
        """The vendor's checks and the held requests, one line each."""
        checks = [f"safety check: {check}" for check in self.checks]
        return (*checks, *(held.in_words() for held in self.requests))


NOBODY = "nobody is there to approve it"
"""The reason for a declined action where no approver was present."""
MAX_DECLINES = 3
"""Declined actions after which an episode ends."""

Approver = Callable[[ApprovalRequest], Awaitable[bool | None]]
"""Returns True to execute the action, False to decline it, None where nobody is present, which also declines it. An
exception leaves the episode broken."""


async def decline(request: ApprovalRequest) -> None:
    """The approver of an unattended run: declines everything."""
    del request


_FILE = r"\.(?!(?:[xs]?html?|php\d?|aspx?|jspx?|cgi|do|cfm|py|pl|com|org|net|io|de|eu)\b)(?=\w*[a-z])\w{1,5}$"
_SUBMIT: frozenset[ActionClass] = frozenset({"submit"})
_NONE: frozenset[ActionClass] = frozenset()
_FILE_PATH = re.compile(rf"(?i)[^/]{_FILE}")
"""An address that ends with a file extension which is not that of a page."""
_DOWNLOAD_NAME = re.compile(rf"(?i)\b(download|export|save as)\b|\w{_FILE}")
_MODIFIERS = frozenset({"shift", "control", "meta", "controlormeta"})
_MOVING_KEYS = frozenset(
    {"tab", "escape", "arrowup", "arrowdown", "arrowleft", "arrowright", "home", "end", "pageup", "pagedown"}
)
"""Keys that move the focus, the caret or the page; on some controls they change the value."""
_WRITING_KEYS = frozenset({"space", "backspace", "delete"})
"""Keys that change a text field, like single characters; elsewhere they may be shortcuts of the page."""
_SELECTING, _EDITING = frozenset("ac"), frozenset("vxyz")
"""Letters of the chords that select and copy, and of those that edit a field."""
_CHOICE_ROLES = frozenset(
    {"checkbox", "radio", "switch", "slider", "spinbutton", "combobox", "listbox", "option", "tab", "treeitem"}
    | {"menuitem", "menuitemcheckbox", "menuitemradio"}
)
"""Roles of controls whose value a moving key may change."""


def needs_approval(
    action: Action, observation: Observation, gated: tuple[ActionClass, ...], past: Sequence[PastAction] = ()
) -> tuple[ActionClass, ...]:
    """Returns the classes of *gated* that the action belongs to; empty means that it needs no approval.

    An action that started a download in the *past* also belongs to `download`."""
    if not gated or action.kind in ("stop", "find", "expand", "wait"):
        return ()
    if "all" in gated:
        return ("all",)
    classes = classes_of(action, observation)
    if "download" in gated and "download" not in classes and _downloaded_before(action, observation, past):
        classes |= {"download"}
    return tuple(name for name in gated if name in classes)


def asks_about_downloads(gated: tuple[ActionClass, ...]) -> bool:
    """Whether downloads need approval."""
    return "download" in gated or "all" in gated


def held_categories(gated: tuple[ActionClass, ...]) -> tuple[HoldCategory, ...]:
    """Returns the requests to hold in steps without approval, see :mod:`envs.security.request_holding`."""
    held: dict[ActionClass, tuple[HoldCategory, ...]] = {
        "submit": ("submit",),
        "navigation": ("navigation",),
        "all": ("submit", "navigation"),
    }
    return tuple(dict.fromkeys(category for name in gated for category in held.get(name, ())))


def _downloaded_before(action: Action, observation: Observation, past: Sequence[PastAction]) -> bool:
    """Whether the same action on the same element had a download refused, in its own step or in the next one, which
    reports late downloads."""
    key = _action_key(action, target_of(action, observation))
    refused = [earlier.result is not None and earlier.result.unapproved_downloads > 0 for earlier in past]
    return any(
        _action_key(earlier.action, earlier.target) == key
        for index, earlier in enumerate(past)
        if any(refused[index : index + 2])
    )


def _action_key(action: Action, target: ElementKey | None) -> tuple[dict[str, object], ElementKey | None]:
    return action.model_dump(exclude={"ref"}), target


def classes_of(action: Action, observation: Observation) -> frozenset[ActionClass]:
    """Returns every class that an action belongs to, by the effect of its element."""
    match action:
        case Goto(url=url) if _names_a_file(url):
            return frozenset({"navigation", "download"})
        case Goto() | Back() | Forward():
            return frozenset({"navigation"})
        case AnswerDialog(accept=True):
            return _SUBMIT
        case UseTool():
            return frozenset({"tool"})
        case Press(keys=keys):
            return _submit_if(not _is_harmless(keys, observation))
        case ClickAt() | DragAt():
            # The element at a point is unknown.
            return frozenset({"submit", "navigation", "download"})
        case Drag(ref=ref, to_ref=to_ref):
            # Press on one element and release on the other: a click or a drop.
            ends = (observation.element(ref), observation.element(to_ref))
            return _SUBMIT.union(*(_classes_of_click(end) for end in ends))
        case Click() | Type() | Select() | Hover() | Upload():
            element = observation.element(action.ref)
            return _classes_on(action, element) if element is not None else _classes_on_nothing(action)
        case _:
            return _NONE


def _classes_on_nothing(action: Action) -> frozenset[ActionClass]:
    """Classes of an action on an element that was not shown; the session refuses the action."""
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
            return _submit_if(_may_listen(element, "edit"))
        case Hover():
            return _submit_if(_may_listen(element, "hover"))
        case Upload():
            # Other elements than file inputs are clicked, to open a file chooser.
            clicked = _NONE if _takes(element) == "file" else _classes_of_click(element)
            return frozenset[ActionClass]({"upload"}) | _submit_if(_may_listen(element, "edit")) | clicked


def _submit_if(answer: bool) -> frozenset[ActionClass]:
    return _SUBMIT if answer else _NONE


def _may_listen(element: Element, event: InputKind) -> bool:
    return element.effect is None or event in element.effect.listened


def _takes(element: Element) -> str:
    return "" if element.effect is None else element.effect.takes


def _names_a_file(url: str) -> bool:
    with suppress(ValueError):  # not a valid address: nothing is opened
        return _FILE_PATH.search(urlsplit(url).path) is not None
    return False


def _classes_of_click(element: Element | None) -> frozenset[ActionClass]:
    if element is None:
        return frozenset()
    classes = set(_submit_if(_may_submit(element)))
    effect = element.effect
    leaves = effect is not None and (effect.leads != "" or effect.sends == "get")
    if leaves or element.key.role == "link":
        classes.add("navigation")
    if _DOWNLOAD_NAME.search(element.key.name) or (effect is not None and effect.leads == "file"):
        classes.add("download")
    return frozenset(classes)


def _may_submit(element: Element) -> bool:
    """Whether a click may change state on a server. A form sent by GET and a link only load a page."""
    effect = element.effect
    if effect is None or "press" in effect.listened:
        return True
    return effect.sends in ("post", "other") or effect.leads == "other"


def _classes_of_typing(element: Element) -> frozenset[ActionClass]:
    """Typing clicks the element first. Without a text field, the keys go to whatever has the focus."""
    return _classes_of_click(element) | _submit_if(_takes(element) != "text" or _may_listen(element, "edit"))


def _is_harmless(keys: str, observation: Observation) -> bool:
    """Whether a key or chord sends nothing, given the focused element; all others need approval."""
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
        # An element in a frame may have its document's focus without the keyboard focus.
        return bool(focused) and all(_takes(e) == "text" and e.key.frame == "" and not _reacts(e) for e in focused)
    return False


def _reacts(element: Element) -> bool:
    return _may_listen(element, "edit") or (_takes(element) != "text" and _may_listen(element, "press"))


def _is_character(key: str) -> bool:
    return len(key) == 1 and key.isprintable()
