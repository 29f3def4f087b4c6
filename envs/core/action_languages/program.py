"""Program style, for small models [MiRA App. A.4, Fig. 16]: one call a turn, comments before it.

    # Element: the Save button under the form
    do(action="Click", element="7")

A small scanner parses the call, not Python: only literal keyword arguments are allowed. Accepted deviations: single
quotes, `element=7`, a raw line break inside a string, letter case, code fences, an `Action:` label, prose before and
after. Errors: unknown actions, unknown, missing or repeated arguments, expressions.

An action counts only at the start of a line. Of several actions `parse` uses the first, because the policy wrote the
others without seeing its result. A malformed first action is an error even if a valid one follows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, assert_never

from envs.core import actions as act
from envs.core.action_languages.base import (
    Button,
    Direction,
    Fault,
    Parsed,
    ParseError,
    notes_in,
    quoted,
    read_answer,
    read_button,
    read_count,
    read_flag,
    read_number,
    read_ref,
    show_number,
    unescape,
    without_thoughts,
)
from envs.core.action_languages.rationale import rationale_in
from envs.core.action_languages.several import following
from envs.core.actions import Action

_START = re.compile(
    r"^[ \t`]*(?:(?:next[ \t]+)?action[ \t]*:[ \t`]*)?(do|exit|go_backward|go_forward)[ \t]*\(",
    re.MULTILINE | re.IGNORECASE,
)
_STRING = r"\"(?:[^\"\\]|\\[\s\S])*\"|'(?:[^'\\]|\\[\s\S])*'"
_VALUE = rf"{_STRING}|[+-]?(?:\d[\d.]*[eE][+-]?\d+|[\w.]+)"
_ARGUMENT = re.compile(rf"\s*(?:([A-Za-z_]\w*)\s*=\s*)?({_VALUE})\s*(,|\)|(?=[^,)]|\Z))")
_END = re.compile(r"\s*\)")
_EXAMPLE = 'do(action="Click", element="NUMBER")'
"""Examples in messages contain words in place of numbers, because small models copy numbers from examples."""

REFERENCE: Final = """\
NUMBER stands for the number in brackets before a control of the page.
do(action="Click", element="NUMBER")   also "Right Click", "Middle Click", "Double Click"
do(action="Type", argument="text", element="NUMBER")   replaces what is there; clear=False adds to it
do(action="Search", argument="text", element="NUMBER")   types, then presses Enter
do(action="Select Dropdown Option", argument="label", element="NUMBER")
do(action="Hover", element="NUMBER")
do(action="Press Enter") or do(action="Press Key", argument="Control+A")
do(action="Scroll Down")   also Up, Left, Right; element="NUMBER" scrolls that element
do(action="Drag", element="NUMBER", to="NUMBER")
do(action="Upload", argument="file.txt", element="NUMBER")
do(action="Find", argument="text")   shows every line of the page with this text
do(action="Expand", argument="GROUP", start=ROW)   shows hidden rows of a group that the page counts
do(action="Wait")
do(action="Answer Dialog", argument="accept")   or "dismiss"; text="…" answers a prompt
do(action="Goto", argument="https://…"), go_backward(), go_forward()
do(action="New Tab"), do(action="Close Tab"), do(action="Switch Tab", argument="TAB")
exit(message="answer")   ends the task; exit() where no answer is asked for"""
PIXELS: Final = """\
do(action="Click At", x=X, y=Y)   also "Right Click At", "Middle Click At", "Double Click At"
do(action="Drag At", x=X, y=Y, to_x=X, to_y=Y)
do(action="Scroll At", x=X, y=Y, dy=DOWN)"""


class _Arguments:
    """The keyword arguments of one call; each must be used exactly once."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def has(self, name: str) -> bool:
        return name in self._values

    def take(self, name: str) -> str:
        value = self._values.pop(name, None)
        if value is None:
            raise Fault(f"{name} is missing")
        return value

    def take_or(self, name: str, default: str) -> str:
        return self._values.pop(name, default)

    def finish(self) -> None:
        if self._values:
            raise Fault(f"{', '.join(self._values)} does not belong here")


_Build = Callable[[_Arguments], Action]


def _element(args: _Arguments) -> int:
    return read_ref(args.take("element"))


def _click(button: Button, count: int) -> _Build:
    def build(args: _Arguments) -> Action:
        return act.Click(
            ref=_element(args),
            button=read_button(args.take_or("button", button)),
            count=read_count(args.take_or("count", str(count)), "count", 1, 3),
        )

    return build


def _click_at(button: Button, count: int) -> _Build:
    def build(args: _Arguments) -> Action:
        return act.ClickAt(
            x=read_number(args.take("x"), "x"),
            y=read_number(args.take("y"), "y"),
            button=read_button(args.take_or("button", button)),
            count=read_count(args.take_or("count", str(count)), "count", 1, 3),
        )

    return build


def _type(enter: bool) -> _Build:
    def build(args: _Arguments) -> Action:
        return act.Type(
            ref=_element(args),
            text=args.take("argument"),
            clear=read_flag(args.take_or("clear", "true"), "clear"),
            enter=read_flag(args.take_or("enter", str(enter)), "enter"),
        )

    return build


def _scroll(direction: Direction) -> _Build:
    def build(args: _Arguments) -> Action:
        return act.Scroll(direction=direction, ref=_element(args) if args.has("element") else None)

    return build


def _drag_at(args: _Arguments) -> Action:
    x, y, to_x, to_y = (read_number(args.take(name), name) for name in ("x", "y", "to_x", "to_y"))
    return act.DragAt(x=x, y=y, to_x=to_x, to_y=to_y)


def _scroll_at(args: _Arguments) -> Action:
    x, y = (read_number(args.take(name), name) for name in ("x", "y"))
    dx, dy = (read_number(args.take_or(name, "0"), name) for name in ("dx", "dy"))
    return act.ScrollAt(x=x, y=y, dx=dx, dy=dy)


def _expand(args: _Arguments) -> Action:
    start = read_count(args.take_or("start", "1"), "start", 1, 999_999_999)
    return act.Expand(group=args.take("argument"), start=start)


def _stop(args: _Arguments) -> Action:
    name = "argument" if args.has("argument") else "message"
    return act.Stop(answer=args.take(name) if args.has(name) else None)


_BUILDERS: Final[Mapping[str, _Build]] = {
    "click": _click("left", 1),
    "left click": _click("left", 1),
    "right click": _click("right", 1),
    "middle click": _click("middle", 1),
    "double click": _click("left", 2),
    "type": _type(enter=False),
    "search": _type(enter=True),
    "select dropdown option": lambda a: act.Select(ref=_element(a), option=a.take("argument")),
    "select": lambda a: act.Select(ref=_element(a), option=a.take("argument")),
    "hover": lambda a: act.Hover(ref=_element(a)),
    "press enter": lambda _: act.Press(keys="Enter"),
    "press key": lambda a: act.Press(keys=a.take("argument")),
    "press": lambda a: act.Press(keys=a.take("argument")),
    "scroll up": _scroll("up"),
    "scroll down": _scroll("down"),
    "scroll left": _scroll("left"),
    "scroll right": _scroll("right"),
    "drag": lambda a: act.Drag(ref=_element(a), to_ref=read_ref(a.take("to"), "to")),
    "upload": lambda a: act.Upload(ref=_element(a), path=a.take("argument")),
    "click at": _click_at("left", 1),
    "right click at": _click_at("right", 1),
    "middle click at": _click_at("middle", 1),
    "double click at": _click_at("left", 2),
    "drag at": _drag_at,
    "scroll at": _scroll_at,
    "find": lambda a: act.Find(text=a.take("argument")),
    "expand": _expand,
    "wait": lambda _: act.Wait(),
    "answer dialog": lambda a: act.AnswerDialog(accept=read_answer(a.take("argument")), text=a.take_or("text", "")),
    "goto": lambda a: act.Goto(url=a.take("argument")),
    "go backward": lambda _: act.Back(),
    "go back": lambda _: act.Back(),
    "go forward": lambda _: act.Forward(),
    "new tab": lambda _: act.NewTab(),
    "close tab": lambda _: act.CloseTab(),
    "switch tab": lambda a: act.FocusTab(index=read_count(a.take("argument"), "argument", 0, 999_999_999)),
    "exit": _stop,
}

_SHAPES: Final[Mapping[str, str]] = {
    "click": _EXAMPLE,
    "type": 'do(action="Type", argument="text", element="NUMBER")',
    "search": 'do(action="Search", argument="text", element="NUMBER")',
    "select dropdown option": 'do(action="Select Dropdown Option", argument="label", element="NUMBER")',
    "select": 'do(action="Select Dropdown Option", argument="label", element="NUMBER")',
    "hover": 'do(action="Hover", element="NUMBER")',
    "press key": 'do(action="Press Key", argument="Control+A")',
    "press": 'do(action="Press Key", argument="Control+A")',
    "drag": 'do(action="Drag", element="NUMBER", to="NUMBER")',
    "upload": 'do(action="Upload", argument="file.txt", element="NUMBER")',
    "click at": 'do(action="Click At", x=X, y=Y)',
    "drag at": 'do(action="Drag At", x=X, y=Y, to_x=X, to_y=Y)',
    "scroll at": 'do(action="Scroll At", x=X, y=Y, dy=DOWN)',
    "find": 'do(action="Find", argument="text")',
    "expand": 'do(action="Expand", argument="GROUP", start=ROW)',
    "answer dialog": 'do(action="Answer Dialog", argument="accept")',
    "goto": 'do(action="Goto", argument="https://…")',
    "switch tab": 'do(action="Switch Tab", argument="TAB")',
    "exit": 'exit(message="answer")',
}


def _fold(name: str) -> str:
    """Normalises an action's name: ignores letter case, underscores and hyphens."""
    return re.sub(r"[\s_-]+", " ", name).strip().lower()


def _literal(source: str) -> str:
    return unescape(source[1:-1]) if source[0] in "\"'" else source


def _call_arguments(text: str, position: int, function: str) -> tuple[dict[str, str], int]:
    """Parses `name=literal, …)` after the opening parenthesis. Returns the position after the closing one, too."""
    values: dict[str, str] = {}
    while (end := _END.match(text, position)) is None:
        match = _ARGUMENT.match(text, position)
        if match is None:
            raise Fault('arguments must be name="text" or name=number, with quotes inside the text written \\"')
        name, source, closing = match.groups()
        if closing not in (",", ")"):
            raise Fault("the call is not closed, or a quote inside the text lacks its backslash")
        if name is None and function == "exit" and not values:
            name = "message"
        if name is None:
            raise Fault("every argument needs its name")
        if name in values:
            raise Fault(f"{name} is given twice")
        if source != "None":
            values[name] = _literal(source)
        position = match.end()
        if closing == ")":
            return values, position
    return values, end.end()


def _action(function: str, values: dict[str, str]) -> Action:
    name = _fold(values.pop("action", "")) if function == "do" else _fold(function)
    if not name:
        raise Fault("action is missing")
    build = _BUILDERS.get(name)
    if build is None:
        raise Fault(f"there is no action {quoted(name)}")
    args = _Arguments(values)
    try:
        action = build(args)
        args.finish()
    except Fault as fault:
        raise ParseError(f"{fault}. Expected: {_SHAPES.get(name, _EXAMPLE)}") from None
    return action


def _begin(text: str, position: int) -> int | None:
    return position if _START.match(text, position) is not None else None


def _read(text: str, position: int) -> tuple[Action, int]:
    """Parses the call that begins at *position*, where `_START` matches."""
    start = _START.match(text, position)
    assert start is not None
    function = start.group(1).lower()
    try:
        values, end = _call_arguments(text, start.end(), function)
        return _action(function, values), end
    except Fault as fault:
        raise ParseError(f"{fault}. Expected one line such as {_EXAMPLE}") from None


class ProgramLanguage:
    """The program style, see the module docstring. Use the instance :data:`PROGRAM`."""

    name: Literal["program"] = "program"
    reference: str = REFERENCE
    pixels: str = PIXELS

    def parse(self, text: str) -> Parsed:
        return self._first(without_thoughts(text))[0]

    def parse_all(self, text: str) -> tuple[Parsed, ...]:
        text = without_thoughts(text)
        first, end = self._first(text)
        return (first, *following(text, end, lambda place: _begin(text, place), lambda start: _read(text, start)))

    def _first(self, text: str) -> tuple[Parsed, int]:
        start = _START.search(text)
        if start is None:
            raise ParseError(f"no action found. Expected one line such as {_EXAMPLE}")
        action, end = _read(text, start.start())
        before = text[: start.start()]
        return Parsed(action, notes_in(before), rationale_in(before)), end

    def show(self, action: Action) -> str:
        return _show(action)


def _text(text: str) -> str:
    """Quotes as JSON, whose escapes :func:`unescape` replaces."""
    return json.dumps(text, ensure_ascii=False)


def _do(name: str, *parts: str) -> str:
    return f"do({', '.join((f'action={_text(name)}', *parts))})"


def _clicked(action: act.Click | act.ClickAt, suffix: str, *where: str) -> str:
    if action.button == "left" and action.count == 2:
        return _do("Double Click" + suffix, *where)
    prefix = "" if action.button == "left" else action.button.title() + " "
    count = (f"count={action.count}",) if action.count != 1 else ()
    return _do(f"{prefix}Click{suffix}", *where, *count)


def _argument(text: str) -> str:
    return f"argument={_text(text)}"


def _ref(ref: int) -> str:
    return f'element="{ref}"'


def _at(**numbers: float) -> tuple[str, ...]:
    return tuple(f"{name}={show_number(value)}" for name, value in numbers.items())


def _show(action: Action) -> str:  # noqa: PLR0912 - one flat table, a line or two for each kind
    match action:
        case act.Click():
            return _clicked(action, "", _ref(action.ref))
        case act.Type():
            keep = () if action.clear else ("clear=False",)
            return _do("Search" if action.enter else "Type", _argument(action.text), _ref(action.ref), *keep)
        case act.Select():
            return _do("Select Dropdown Option", _argument(action.option), _ref(action.ref))
        case act.Hover():
            return _do("Hover", _ref(action.ref))
        case act.Press():
            return _do("Press Enter") if action.keys == "Enter" else _do("Press Key", _argument(action.keys))
        case act.Scroll():
            return _do(f"Scroll {action.direction.title()}", *(() if action.ref is None else (_ref(action.ref),)))
        case act.Drag():
            return _do("Drag", _ref(action.ref), f'to="{action.to_ref}"')
        case act.Upload():
            return _do("Upload", _argument(action.path), _ref(action.ref))
        case act.ClickAt():
            return _clicked(action, " At", *_at(x=action.x, y=action.y))
        case act.DragAt():
            return _do("Drag At", *_at(x=action.x, y=action.y, to_x=action.to_x, to_y=action.to_y))
        case act.ScrollAt():
            return _do("Scroll At", *_at(x=action.x, y=action.y, dx=action.dx, dy=action.dy))
        case act.Find():
            return _do("Find", _argument(action.text))
        case act.Expand():
            start = () if action.start == 1 else (f"start={action.start}",)
            return _do("Expand", _argument(action.group), *start)
        case act.Wait():
            return _do("Wait")
        case act.AnswerDialog():
            text = (f"text={_text(action.text)}",) if action.text else ()
            return _do("Answer Dialog", _argument("accept" if action.accept else "dismiss"), *text)
        case act.Goto():
            return _do("Goto", _argument(action.url))
        case act.Back():
            return "go_backward()"
        case act.Forward():
            return "go_forward()"
        case act.NewTab():
            return _do("New Tab")
        case act.CloseTab():
            return _do("Close Tab")
        case act.FocusTab():
            return _do("Switch Tab", f'argument="{action.index}"')
        case act.Stop():
            return "exit()" if action.answer is None else f"exit(message={_text(action.answer)})"
        case _:
            assert_never(action)


PROGRAM: Final = ProgramLanguage()
