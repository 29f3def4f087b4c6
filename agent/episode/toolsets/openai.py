"""OpenAI's computer tool: what each of its actions comes to here.

A call holds a list of actions, which are done in order. Without equivalent: the buttons `back` and `forward` of a mouse
come to the history of the tab, a drag follows the ends of its path only, and keys held during a mouse action are
refused.
"""

from __future__ import annotations

from typing import Any, Final, cast

from agent.episode.toolsets.calls import (
    MAX_PRESSES,
    Arguments,
    Do,
    Outcome,
    Refuse,
    Scene,
    Table,
    TextResult,
    drag,
    element_at,
    read_call,
    typed,
)
from agent.episode.toolsets.keys import chord
from envs.core.actions import Back, ClickAt, Forward, Hover, Press, ScrollAt, Wait
from models.prompting.prompt_text import words

_MODIFIERS: Final = frozenset({"Control", "Shift", "Alt", "Meta"})


def actions_of(values: Any) -> list[dict[str, Any]]:
    """The actions of a call, in order; what is no object is an action of no name."""
    listed: list[Any] = values if isinstance(values, list) else []
    return [cast("dict[str, Any]", each) if isinstance(each, dict) else {} for each in listed]


def read_action(values: dict[str, Any], scene: Scene) -> Outcome:
    """What one action of a call comes to."""
    return read_call(ACTIONS, str(values.get("type", "")), values, scene)


def _click(call: Arguments, _: Scene) -> Outcome:
    call.refuse("keys")
    x, y = call.point()
    match call.text("button", "left"):
        case "left":
            return Do((ClickAt(x=x, y=y),))
        case "right":
            return Do((ClickAt(x=x, y=y, button="right"),))
        case "wheel":
            return Do((ClickAt(x=x, y=y, button="middle"),))
        case "back":
            return Do((Back(),))
        case "forward":
            return Do((Forward(),))
        case _:
            return Refuse(words("this mouse button is not known"))


def _double_click(call: Arguments, _: Scene) -> Outcome:
    call.refuse("keys")
    x, y = call.point()
    return Do((ClickAt(x=x, y=y, count=2),))


def _drag(call: Arguments, _: Scene) -> Outcome:
    call.refuse("keys")
    path = actions_of(call.values.get("path"))
    if len(path) < 2:
        return Refuse(words("a drag needs at least two points"))
    start, end = (Arguments(each, call.display).point() for each in (path[0], path[-1]))
    return drag(start, end)


def _keypress(call: Arguments, _: Scene) -> Outcome:
    keys = call.values.get("keys")
    if not isinstance(keys, list) or not 0 < len(keys) <= MAX_PRESSES:
        return Refuse(words("name the keys to press"))
    names = [chord([str(key)]) for key in keys]
    known = [name for name in names if name is not None]
    if len(known) < len(names):
        return Refuse(words("a key has no name that is known here"))
    if _MODIFIERS.intersection(known):
        return Do((Press(keys="+".join(known)),))
    return Do(tuple(Press(keys=name) for name in known))


def _move(call: Arguments, scene: Scene) -> Outcome:
    element = element_at(scene.observation, *call.point())
    if element is None:
        return TextResult()  # a move alone has no effect
    return Do((Hover(ref=element.ref),))


def _scroll(call: Arguments, _: Scene) -> Outcome:
    call.refuse("keys")
    x, y = call.point()
    wide, high = (call.display.viewport[axis] / call.display.size[axis] for axis in (0, 1))
    dx, dy = call.number("scroll_x", 0) * wide, call.number("scroll_y", 0) * high
    return Do((ScrollAt(x=x, y=y, dx=dx, dy=dy),))


def _screenshot(_: Arguments, __: Scene) -> Outcome:
    return TextResult()  # every call is answered with a screenshot


def _wait(_: Arguments, __: Scene) -> Outcome:
    return Do((Wait(),))


ACTIONS: Final[Table] = {
    "click": _click,
    "double_click": _double_click,
    "drag": _drag,
    "keypress": _keypress,
    "move": _move,
    "screenshot": _screenshot,
    "scroll": _scroll,
    "type": typed,
    "wait": _wait,
}
