"""Id style, for large models [MiRA App. A.4, Fig. 18]: reasoning in prose, then one action in triple backticks.

    The form is filled in. In summary, the next action I will perform is ```click [7]```

Without the phrase, the first block in triple backticks counts; without a block, the first line that is an action.
Arguments are in brackets. Inside them a backslash escapes `[`, `]`, `` ` `` and itself; `\\n` and `\\t` are line break
and tab; balanced brackets need no escape. `parse` uses the first action of the block only. Words after it on its line
are ignored; a further bracket is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, assert_never

from envs.core import actions as act
from envs.core.action_languages.base import (
    Button,
    Fault,
    Parsed,
    ParseError,
    notes_in,
    quoted,
    read_answer,
    read_button,
    read_count,
    read_direction,
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

PHRASE: Final = "In summary, the next action I will perform is"
_PHRASE = re.compile(r"in\s+summary,?\s+the\s+next\s+action\s+i\s+will\s+perform\s+is\s*:?\s*(?:```)?", re.IGNORECASE)
_VERB = re.compile(r"\s*([A-Za-z_]+)")
_BRACKET = re.compile(r"[ \t]*\[")
_SPECIAL = re.compile(r"\\[\s\S]|[\[\]]")
_EXAMPLE = f"{PHRASE} ```click [id]```"
"""Examples in messages contain words in place of numbers, because small models copy numbers from examples."""

REFERENCE: Final = """\
id stands for the number in brackets before a control of the page.
click [id]   also right_click, middle_click, double_click
type [id] [content] [0|1]   replaces what is there; 1 presses Enter afterwards; append adds instead
select [id] [option]
hover [id]
press [keys]   for example Enter or Control+A
scroll [up|down|left|right]   a second [id] scrolls that element
drag [id] [to_id]
upload [id] [file]
find [text]   shows every line of the page with this text
expand [group] [start]   shows hidden rows of a group that the page counts
wait
dialog [accept|dismiss] [text]   answers the open dialog
goto [url], go_back, go_forward
new_tab, close_tab, tab_focus [index]
stop [answer]   ends the task; stop alone where no answer is asked for"""
PIXELS: Final = "click_at [x] [y], drag_at [x] [y] [to_x] [to_y], scroll_at [x] [y] [dx] [dy]"

_Arguments = Sequence[str]


@dataclass(frozen=True, slots=True)
class _Verb:
    shape: str
    """An example for error messages."""
    least: int
    """Minimum number of brackets."""
    most: int
    build: Callable[[_Arguments], Action]


def _or(args: _Arguments, index: int, default: str) -> str:
    return args[index] if index < len(args) else default


def _click(button: Button, count: int) -> Callable[[_Arguments], Action]:
    return lambda a: act.Click(
        ref=read_ref(a[0]),
        button=read_button(_or(a, 1, button)),
        count=read_count(_or(a, 2, str(count)), "count", 1, 3),
    )


def _click_at(args: _Arguments) -> Action:
    return act.ClickAt(
        x=read_number(args[0], "x"),
        y=read_number(args[1], "y"),
        button=read_button(_or(args, 2, "left")),
        count=read_count(_or(args, 3, "1"), "count", 1, 3),
    )


def _type(clear: bool) -> Callable[[_Arguments], Action]:
    # Without the flag, Enter is not pressed.
    return lambda a: act.Type(ref=read_ref(a[0]), text=a[1], clear=clear, enter=_enter(_or(a, 2, "0")))


def _enter(flag: str) -> bool:
    return read_flag(flag.lower().removeprefix("press_enter_after="), "the last bracket (press Enter)")


def _scroll(args: _Arguments) -> Action:
    return act.Scroll(direction=read_direction(args[0]), ref=read_ref(args[1]) if len(args) > 1 else None)


def _drag_at(args: _Arguments) -> Action:
    x, y, to_x, to_y = (read_number(arg, "each bracket") for arg in args)
    return act.DragAt(x=x, y=y, to_x=to_x, to_y=to_y)


def _scroll_at(args: _Arguments) -> Action:
    x, y, dx, dy = (read_number(arg, "each bracket") for arg in args)
    return act.ScrollAt(x=x, y=y, dx=dx, dy=dy)


def _expand(args: _Arguments) -> Action:
    return act.Expand(group=args[0], start=read_count(_or(args, 1, "1"), "start", 1, 999_999_999))


def _tab(args: _Arguments) -> Action:
    return act.FocusTab(index=read_count(args[0], "index", 0, 999_999_999))


_VERBS: Final[Mapping[str, _Verb]] = {
    "click": _Verb("click [id]", 1, 3, _click("left", 1)),
    "right_click": _Verb("right_click [id]", 1, 1, _click("right", 1)),
    "middle_click": _Verb("middle_click [id]", 1, 1, _click("middle", 1)),
    "double_click": _Verb("double_click [id]", 1, 1, _click("left", 2)),
    "type": _Verb("type [id] [content] [0|1]", 2, 3, _type(clear=True)),
    "append": _Verb("append [id] [content] [0|1]", 2, 3, _type(clear=False)),
    "select": _Verb("select [id] [option]", 2, 2, lambda a: act.Select(ref=read_ref(a[0]), option=a[1])),
    "hover": _Verb("hover [id]", 1, 1, lambda a: act.Hover(ref=read_ref(a[0]))),
    "press": _Verb("press [Enter]", 1, 1, lambda a: act.Press(keys=a[0])),
    "scroll": _Verb("scroll [down]", 1, 2, _scroll),
    "drag": _Verb("drag [id] [to_id]", 2, 2, lambda a: act.Drag(ref=read_ref(a[0]), to_ref=read_ref(a[1], "target"))),
    "upload": _Verb("upload [id] [file]", 2, 2, lambda a: act.Upload(ref=read_ref(a[0]), path=a[1])),
    "click_at": _Verb("click_at [x] [y]", 2, 4, _click_at),
    "drag_at": _Verb("drag_at [x] [y] [to_x] [to_y]", 4, 4, _drag_at),
    "scroll_at": _Verb("scroll_at [x] [y] [dx] [dy]", 4, 4, _scroll_at),
    "find": _Verb("find [text]", 1, 1, lambda a: act.Find(text=a[0])),
    "expand": _Verb("expand [group] [start]", 1, 2, _expand),
    "wait": _Verb("wait", 0, 0, lambda _: act.Wait()),
    "dialog": _Verb("dialog [accept]", 1, 2, lambda a: act.AnswerDialog(accept=read_answer(a[0]), text=_or(a, 1, ""))),
    "goto": _Verb("goto [https://…]", 1, 1, lambda a: act.Goto(url=a[0])),
    "go_back": _Verb("go_back", 0, 0, lambda _: act.Back()),
    "go_forward": _Verb("go_forward", 0, 0, lambda _: act.Forward()),
    "new_tab": _Verb("new_tab", 0, 0, lambda _: act.NewTab()),
    "close_tab": _Verb("close_tab", 0, 0, lambda _: act.CloseTab()),
    "tab_focus": _Verb("tab_focus [index]", 1, 1, _tab),
    "stop": _Verb("stop [answer]", 0, 1, lambda a: act.Stop(answer=a[0] if a else None)),
}

_ACTION = rf"(?=(?:{'|'.join(_VERBS)})[ \t]*(?:\[|`*[ \t]*$))"
_LINE = re.compile(rf"^[ \t]*{_ACTION}", re.MULTILINE | re.IGNORECASE)
_NEXT = re.compile(rf"^[ \t]*(?:{_PHRASE.pattern}|`{{3,}})?[ \t]*{_ACTION}", re.MULTILINE | re.IGNORECASE)


def _start(text: str) -> int:
    """Finds the start of the action: after the phrase, else after the first fence, else at the first action line."""
    phrase = _PHRASE.search(text)
    if phrase is not None:
        return _inside_fence(text, phrase.end())
    fence = text.find("```")
    if fence >= 0:
        return _inside_fence(text, fence + 3)
    line = _LINE.search(text)
    if line is None:
        raise ParseError(f"no action found. Expected: {_EXAMPLE}")
    return line.end()


def _inside_fence(text: str, position: int) -> int:
    """Skips a fence's language tag: a single word on the fence's line that is not an action."""
    tag = re.compile(r"([A-Za-z]+)[ \t]*\n").match(text, position)
    return tag.end() if tag is not None and tag.group(1).lower() not in _VERBS else position


def _argument(text: str, position: int) -> tuple[str, int]:
    """Returns the content of the bracket that opens before *position*, and the position after its closing bracket."""
    depth = 1
    for match in _SPECIAL.finditer(text, position):
        depth += {"[": 1, "]": -1}.get(match.group(), 0)
        if depth == 0:
            return unescape(text[position : match.start()]), match.end()
    raise Fault("a bracket is not closed (write \\[ and \\] inside a text)")


def _arguments(text: str, position: int) -> tuple[list[str], int]:
    arguments: list[str] = []
    while (bracket := _BRACKET.match(text, position)) is not None:
        argument, position = _argument(text, bracket.end())
        arguments.append(argument)
        if len(arguments) > 4:
            break
    return arguments, position


def _begin(text: str, position: int) -> int | None:
    """Position of the verb with which the line at *position* begins, maybe behind the phrase or a fence."""
    line = _NEXT.match(text, position)
    return None if line is None else line.end()


def _read(text: str, position: int) -> tuple[Action, int]:
    name = _VERB.match(text, position)
    verb = _VERBS.get(name.group(1).lower()) if name else None
    if name is None or verb is None:
        verb_name = quoted(name.group(1)) if name else "there"
        raise ParseError(f"no action {verb_name}. Expected: {_EXAMPLE}")
    try:
        args, end = _arguments(text, name.end())
        if not verb.least <= len(args) <= verb.most:
            raise Fault(f"{name.group(1).lower()} has {len(args)} brackets")
        return verb.build(args), end
    except Fault as fault:
        raise ParseError(f"{fault}. Expected: {PHRASE} ```{verb.shape}```") from None


class IdLanguage:
    """The id style, see the module docstring. Use the instance :data:`IDS`."""

    name: Literal["id"] = "id"
    reference: str = REFERENCE
    pixels: str = PIXELS

    def parse(self, text: str) -> Parsed:
        return self._first(without_thoughts(text))[0]

    def parse_all(self, text: str) -> tuple[Parsed, ...]:
        text = without_thoughts(text)
        first, end = self._first(text)
        return (first, *following(text, end, lambda place: _begin(text, place), lambda start: _read(text, start)))

    def _first(self, text: str) -> tuple[Parsed, int]:
        start = _start(text)
        action, end = _read(text, start)
        return Parsed(action, notes_in(text[:start]), rationale_in(text[:start])), end

    def show(self, action: Action) -> str:
        return f"{PHRASE} ```{_show(action)}```"


_ESCAPED: Final = str.maketrans(
    {"\\": "\\\\", "[": "\\[", "]": "\\]", "`": "\\`", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
)


def _text(text: str) -> str:
    return text.translate(_ESCAPED)


def _call(verb: str, *args: str | int | float) -> str:
    shown = (show_number(a) if isinstance(a, float) else str(a) if isinstance(a, int) else _text(a) for a in args)
    return " ".join((verb, *(f"[{arg}]" for arg in shown)))


def _clicked(action: act.Click) -> str:
    match action.button, action.count:
        case button, 1:
            return _call("click" if button == "left" else f"{button}_click", action.ref)
        case "left", 2:
            return _call("double_click", action.ref)
        case button, count:
            return _call("click", action.ref, button, count)


def _show(action: Action) -> str:  # noqa: PLR0912 - one flat table, a line or two for each kind
    match action:
        case act.Click():
            return _clicked(action)
        case act.Type():
            return _call("type" if action.clear else "append", action.ref, action.text, int(action.enter))
        case act.Select():
            return _call("select", action.ref, action.option)
        case act.Hover():
            return _call("hover", action.ref)
        case act.Press():
            return _call("press", action.keys)
        case act.Scroll():
            return _call("scroll", action.direction, *(() if action.ref is None else (action.ref,)))
        case act.Drag():
            return _call("drag", action.ref, action.to_ref)
        case act.Upload():
            return _call("upload", action.ref, action.path)
        case act.ClickAt():
            plain = action.button == "left" and action.count == 1
            return _call("click_at", action.x, action.y, *(() if plain else (action.button, action.count)))
        case act.DragAt():
            return _call("drag_at", action.x, action.y, action.to_x, action.to_y)
        case act.ScrollAt():
            return _call("scroll_at", action.x, action.y, action.dx, action.dy)
        case act.Find():
            return _call("find", action.text)
        case act.Expand():
            return _call("expand", action.group, *(() if action.start == 1 else (action.start,)))
        case act.Wait():
            return _call("wait")
        case act.AnswerDialog():
            verb = "accept" if action.accept else "dismiss"
            return _call("dialog", verb, *((action.text,) if action.text else ()))
        case act.Goto():
            return _call("goto", action.url)
        case act.Back():
            return _call("go_back")
        case act.Forward():
            return _call("go_forward")
        case act.NewTab():
            return _call("new_tab")
        case act.CloseTab():
            return _call("close_tab")
        case act.FocusTab():
            return _call("tab_focus", action.index)
        case act.Stop():
            return _call("stop", *(() if action.answer is None else (action.answer,)))
        case _:
            assert_never(action)


IDS: Final = IdLanguage()
