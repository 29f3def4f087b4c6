"""Describes actions in words, for people."""

from __future__ import annotations

from typing import Final

from envs.core.actions import Action, Click, Find, Goto, Press, Scroll, Select, Type, UseTool
from envs.core.trace import Intent
from envs.observer.page_text import one_line

_NAME_CHARS: Final = 60


def in_words(intent: Intent) -> str:
    """The action and its element with role and name: `click on link 'Home'`."""
    target = intent.target
    on = "into" if isinstance(intent.action, Type) else "on"
    element = f" {on} {target.role} {_short(target.name)}" if target is not None else ""
    return f"{_verb_phrase(intent.action)}{element}"


def _verb_phrase(action: Action) -> str:
    verb = action.kind.replace("_", " ")
    match action:
        case Click():
            button = "" if action.button == "left" else f"{action.button} "
            return f"{button}{verb}{f' {action.count} times' if action.count > 1 else ''}"
        case Type():
            return f"{verb} {_short(action.text)}{' and Enter' if action.enter else ''}"
        case Select():
            return f"{verb} {_short(action.option)}"
        case Find():
            return f"{verb} {_short(action.text)}"
        case UseTool():
            return f"{verb} {action.tool} {_short(action.input)}"
        case Press():
            return f"{verb} {action.keys}"
        case Goto():
            return f"{verb} {one_line(action.url, 2 * _NAME_CHARS)}"
        case Scroll():
            return f"{verb} {action.direction}"
        case _:
            return verb


def _short(text: str) -> str:
    return repr(one_line(text, _NAME_CHARS))
