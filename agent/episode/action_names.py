"""Describes actions in words for people, with the names of their elements instead of numbers."""

from __future__ import annotations

from envs.core import actions as act
from envs.core.action_place import ActionPlace
from envs.core.actions import Action
from envs.core.observation import ElementKey

NAME_CHARS = 80
"""Longest name of an element; longer names are cut."""
_BUTTONS = {"left": "", "right": "right-", "middle": "middle-"}
_TIMES = {1: "click", 2: "double-click", 3: "triple-click"}


def in_words(
    action: Action, target: ElementKey | None, onto: ElementKey | None = None, place: ActionPlace | None = None
) -> str:
    """Returns the action on one line, for example `click button "Save"` or `type "bob" into textbox "Name"`.

    *target* is the element that `action.ref` named, *onto* the one that a drag's `to_ref` named; None where they are
    not known. *place* says what their names do not. Names and texts come from pages and models: they are data.
    """
    where = _element(action, "ref", target)
    if place is not None:
        where = f"{where} {place.where}"
    at = f" ({place.at})" if place is not None and place.at else ""
    return " ".join((_words(action, where, onto) + at).split())


def _words(action: Action, where: str, onto: ElementKey | None) -> str:  # noqa: PLR0912 - one flat table of all kinds
    match action:
        case act.Click():
            return f"{_click(action)} {where}"
        case act.Type():
            verb = "type" if action.clear else "append"
            return f'{verb} "{action.text}" into {where}{" and press Enter" if action.enter else ""}'
        case act.Select():
            return f'select "{action.option}" in {where}'
        case act.Hover():
            return f"hover over {where}"
        case act.Press():
            return f"press {action.keys}"
        case act.Scroll():
            return f"scroll {action.direction}{f' in {where}' if where else ''}"
        case act.Drag():
            return f"drag {where} onto {_element(action, 'to_ref', onto)}"
        case act.Upload():
            return f'upload "{action.path}" to {where}'
        case act.ClickAt():
            return f"{_click(action)} at {_point(action.x, action.y)}"
        case act.DragAt():
            return f"drag from {_point(action.x, action.y)} to {_point(action.to_x, action.to_y)}"
        case act.ScrollAt():
            return f"scroll by {_point(action.dx, action.dy)} at {_point(action.x, action.y)}"
        case act.Find():
            return f'find "{action.text}"'
        case act.Expand():
            return f"expand group {action.group} from row {action.start}"
        case act.AnswerDialog():
            reply = f' with "{action.text}"' if action.text else ""
            return f"{'accept' if action.accept else 'dismiss'} the dialog{reply}"
        case act.Goto():
            return f"go to {action.url}"
        case act.FocusTab():
            return f"switch to tab {action.index}"
        case act.UseTool():
            return f"use tool {action.tool}" + (f' with "{action.input}"' if action.input else "")
        case act.Stop():
            return "stop" if action.answer is None else f'stop with the answer "{action.answer}"'
        case act.Wait() | act.Back() | act.Forward() | act.NewTab() | act.CloseTab():
            return _PLAIN[action.kind]


_PLAIN = {
    "wait": "wait",
    "back": "go back",
    "forward": "go forward",
    "new_tab": "open a new tab",
    "close_tab": "close the tab",
}


def _element(action: Action, field: str, key: ElementKey | None) -> str:
    """Returns role and name; the number where the key is unknown; empty where the action names no element."""
    if key is not None:
        name = key.name if len(key.name) <= NAME_CHARS else key.name[: NAME_CHARS - 1] + "…"
        return f'{key.role or "element"} "{name}"'
    ref = getattr(action, field, None)
    return "" if ref is None else f"element {ref}"


def _click(action: act.Click | act.ClickAt) -> str:
    return _BUTTONS[action.button] + _TIMES[action.count]


def _point(x: float, y: float) -> str:
    return f"({x:g}, {y:g})"
