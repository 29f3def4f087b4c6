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
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from envs.core import actions as act
from envs.core.action_languages.base import Fault, Parsed, ParseError, quoted, show_number, unescape
from envs.core.action_languages.form_language import COMMENT_CHARS, TO_DO, Language, Offered
from envs.core.action_languages.forms import NUMERIC, Form, FormTable, Kind, Slot, Value
from envs.core.action_languages.gbnf import literal, maybe, one_of
from envs.core.actions import Action

_START = re.compile(
    r"^[ \t`]*(?:(?:next[ \t]+)?action[ \t]*:[ \t`]*)?(do|exit|go_backward|go_forward)[ \t]*\(",
    re.MULTILINE | re.IGNORECASE,
)
_STRING = r"\"(?:[^\"\\]|\\[\s\S])*\"|'(?:[^'\\]|\\[\s\S])*'"
_VALUE = rf"{_STRING}|[+-]?(?:\d[\d.]*[eE][+-]?\d+|[\w.]+)"
_ARGUMENT = re.compile(rf"\s*(?:([A-Za-z_]\w*)\s*=\s*)?({_VALUE})\s*(,|\)|(?=[^,)]|\Z))")
_END = re.compile(r"\s*\)")
_COMMENTS: Final = 4
"""Comment lines before the first action of a constrained answer."""
_THOUGHT: Final = "# Thought: "
_IN_COMMENT: Final = r"[^\n\x00-\x1F]"
_FUNCTIONS: Final = frozenset({"exit", "go_backward", "go_forward"})
"""Forms written as a function of this name; the others are written `do(action="NAME", …)`."""

_BUTTON: Final = Slot("button", Kind.BUTTON, "button", "right", optional=True)
_COUNT: Final = Slot("count", Kind.COUNT, "count", "COUNT", optional=True)
_CLEAR: Final = Slot("clear", Kind.FLAG, "clear", "False", optional=True)
_ENTER: Final = Slot("enter", Kind.FLAG, "enter", "True", optional=True)


def _element(kind: Kind = Kind.CONTROL, *, optional: bool = False) -> Slot:
    return Slot("ref", kind, "element", "NUMBER", optional=optional)


def _argument(field: str, kind: Kind, shape: str) -> Slot:
    return Slot(field, kind, "argument", shape)


def _pixels(*names: str, optional: bool = False) -> tuple[Slot, ...]:
    return tuple(Slot(name, Kind.PIXELS, name, name.upper(), optional=optional, always=True) for name in names)


def _clicks(action: type[act.Click | act.ClickAt], suffix: str, *where: Slot, remark: str = "") -> tuple[Form, ...]:
    slots = (*where, _BUTTON, _COUNT)
    return (
        Form(f"Click{suffix}", action, slots, aliases=(f"Left Click{suffix}",), remark=remark),
        Form(f"Right Click{suffix}", action, slots, {"button": "right"}, beside=True),
        Form(f"Middle Click{suffix}", action, slots, {"button": "middle"}, beside=True),
        Form(f"Double Click{suffix}", action, slots, {"count": 2}, beside=True),
    )


def _scrolls() -> tuple[Form, ...]:
    slots = (_element(optional=True),)
    remark = 'element="NUMBER" scrolls that element'
    return tuple(
        Form(f"Scroll {direction.title()}", act.Scroll, slots, {"direction": direction}, remark=remark, beside=beside)
        for direction, beside in (("down", False), ("up", True), ("left", True), ("right", True))
    )


_TYPED: Final = (_argument("text", Kind.TEXT, "text"), _element(Kind.FIELD), _CLEAR, _ENTER)

FORMS: Final = FormTable(
    (
        *_clicks(act.Click, "", _element()),
        Form("Hover", act.Hover, (_element(),), beside=True),
        Form(
            "Type",
            act.Type,
            _TYPED,
            {"enter": False},
            remark='"Search" presses Enter too; clear=False adds to what is there',
        ),
        Form("Search", act.Type, _TYPED, {"enter": True}, beside=True),
        Form(
            "Select Dropdown Option",
            act.Select,
            (_argument("option", Kind.OPTION, "label"), _element(Kind.LIST)),
            aliases=("Select",),
        ),
        Form("Press Enter", act.Press, (), {"keys": "Enter"}),
        Form("Press Key", act.Press, (_argument("keys", Kind.KEYS, "Control+A"),), aliases=("Press",), beside=True),
        *_scrolls(),
        Form("Drag", act.Drag, (_element(), Slot("to_ref", Kind.CONTROL, "to", "NUMBER"))),
        Form("Upload", act.Upload, (_argument("path", Kind.FILE, "file.txt"), _element(Kind.FILE_FIELD))),
        *_clicks(act.ClickAt, " At", *_pixels("x", "y")),
        Form("Drag At", act.DragAt, _pixels("x", "y", "to_x", "to_y")),
        Form("Scroll At", act.ScrollAt, (*_pixels("x", "y"), *_pixels("dx", "dy", optional=True)), beside=True),
        Form(
            "Find",
            act.Find,
            (_argument("text", Kind.TEXT, "text"),),
            remark="shows every line with this text",
        ),
        Form(
            "Expand",
            act.Expand,
            (_argument("group", Kind.GROUP, "GROUP"), Slot("start", Kind.ROW, "start", "ROW", optional=True)),
            remark="shows hidden rows of a group, from start=ROW on",
        ),
        Form("Wait", act.Wait),
        Form(
            "Answer Dialog",
            act.AnswerDialog,
            (_argument("accept", Kind.DIALOG, "accept"), Slot("text", Kind.TEXT, "text", "text", optional=True)),
            remark='or "dismiss"; text="…" answers a prompt',
        ),
        Form("Goto", act.Goto, (_argument("url", Kind.URL, "https://…"),)),
        Form("go_backward", act.Back, aliases=("go back",), beside=True),
        Form("go_forward", act.Forward, beside=True),
        Form("New Tab", act.NewTab),
        Form("Close Tab", act.CloseTab, beside=True),
        Form("Switch Tab", act.FocusTab, (_argument("index", Kind.TAB, "TAB"),), beside=True),
        Form(
            "Use Tool",
            act.UseTool,
            (Slot("tool", Kind.TOOL, "tool", "name"), Slot("input", Kind.TEXT, "input", "input", optional=True)),
            remark='input="…" is what its line says',
        ),
        Form(
            "exit",
            act.Stop,
            (Slot("answer", Kind.TEXT, "message", "answer", optional=True, alias="argument"),),
            remark='ends the task; exit(message="answer") with an answer',
        ),
    )
)


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


def _call(form: Form, arguments: list[str]) -> str:
    """The call of *form* with *arguments*, each `name=value`."""
    if form.name in _FUNCTIONS:
        return f"{form.name}({', '.join(arguments)})"
    return f"do({', '.join((f'action={_text(form.name)}', *arguments))})"


def _written_argument(slot: Slot, value: Value) -> str:
    """*slot* with *value*, as the printer writes it."""
    match value:
        case bool() if slot.kind is Kind.DIALOG:
            return f"{slot.name}={_text('accept' if value else 'dismiss')}"
        case bool():
            return f"{slot.name}={value}"
        case int() | float() if slot.kind in NUMERIC:
            return f"{slot.name}={show_number(value)}"
        case _:
            return f"{slot.name}={_text(str(value))}"


def _placeholder(slot: Slot) -> str:
    return f"{slot.name}={slot.shape}" if slot.kind in NUMERIC else f"{slot.name}={_text(slot.shape)}"


def _text(text: str) -> str:
    """Quotes as JSON, whose escapes :func:`unescape` replaces."""
    return json.dumps(text, ensure_ascii=False)


class ProgramLanguage(Language):
    """The program style, see the module docstring. Use the instance :data:`PROGRAM`."""

    name = "program"
    forms: FormTable = FORMS
    introduction = "NUMBER stands for the number in brackets before a control of the page shown now."
    text_characters = r'[^"\\\x00-\x1F] | "\\" ["\\nt]'
    key_characters = r'[!#-[\]-~] | "\\" ["\\]'
    names_controls = True
    example = 'do(action="Click", element="NUMBER")'
    """Examples in messages contain words in place of numbers, because small models copy numbers from examples."""

    def show(self, action: Action) -> str:
        form = FORMS.form_of(action)
        filled = zip(form.slots, form.filled(action), strict=True)
        return _call(form, [_written_argument(slot, value) for slot, value in filled if value is not None])

    def shape(self, form: Form) -> str:
        return _call(form, [_placeholder(slot) for slot in form.written])

    def template(self, form: Form, shown: Sequence[tuple[Slot, str]]) -> str:
        return _call(form, [f"{slot.name}={text}" for slot, text in shown])

    def label(self, form: Form) -> str:
        return _text(form.name)

    def start(self, text: str) -> int:
        start = _START.search(text)
        if start is None:
            raise ParseError(f"no action found. Expected one line such as {self.example}")
        return start.start()

    def begin(self, text: str, position: int) -> int | None:
        return position if _START.match(text, position) is not None else None

    def read(self, text: str, position: int) -> tuple[Parsed, int]:
        """Parses the call that begins at *position*, where `_START` matches."""
        start = _START.match(text, position)
        assert start is not None
        function = start.group(1).lower()
        try:
            values, end = _call_arguments(text, start.end(), function)
            return self._action(function, values), end
        except Fault as fault:
            raise ParseError(f"{fault}. Expected one line such as {self.example}") from None

    def _action(self, function: str, values: dict[str, str]) -> Parsed:
        name = _fold(values.pop("action", "") if function == "do" else function)
        if not name:
            raise Fault("action is missing")
        form = self._by_name.get(name)
        if form is None:
            raise Fault(f"there is no action {quoted(name)}")
        try:
            return self.build(form, self._values(form, values))
        except Fault as fault:
            raise ParseError(f"{fault}. Expected: {self.shape(form)}", form.name) from None

    def _values(self, form: Form, values: dict[str, str]) -> dict[str, Value]:
        """The value of each slot that the call fills."""
        read: dict[str, Value] = {}
        for slot in form.slots:
            name = slot.name if slot.name in values or not slot.alias else slot.alias
            text = values.pop(name, None)
            if text is not None:
                read[slot.field] = self.value(slot, text)
            elif not slot.optional:
                raise Fault(f"{slot.name} is missing")
        if values:
            raise Fault(f"{', '.join(values)} does not belong here")
        return read

    @cached_property
    def _by_name(self) -> Mapping[str, Form]:
        return {_fold(name): form for form in self.forms.forms for name in (form.name, *form.aliases)}

    def answer_rule(self, actions: str, *, named: bool = False, opening: str = "") -> str:
        comment = _comment(named=named)
        if not opening:
            return f"{comment}{{0,{_COMMENTS}}} {actions}"
        thought = f'{literal(f"{_THOUGHT}{opening}")} {_IN_COMMENT}{{0,{COMMENT_CHARS}}} "\\n"'
        return f"{thought} {comment}{{0,{_COMMENTS - 1}}} {actions}"

    def ending_rule(self, ending: str, last_steps: Iterable[str], *, named: bool = False, opening: str = "") -> str:
        comments = f"{_comment(named=named)}{{0,{_COMMENTS - 1}}}"
        thought = f"{literal(_THOUGHT)} {_IN_COMMENT}{{0,{COMMENT_CHARS}}} {literal(TO_DO)}"
        begun = literal(f"{_THOUGHT}{opening}") if opening else f"{comments} {thought}"
        rest = rf"([^a-zA-Z\n\x00-\x1F] {_IN_COMMENT}{{0,{COMMENT_CHARS}}})?"  # the word ends there
        return f'{begun} {one_of(last_steps)} {rest} "\\n" {comments} {ending}'

    def form_rule(self, form: Form, offered: Offered) -> str:
        head, _, tail = _call(form, ["\0"] if offered else []).partition("\0")
        arguments: list[str] = []
        for slot, rule in offered:
            quote = "" if slot.kind in NUMERIC or slot.kind is Kind.FLAG else '"'
            parts = [
                literal(f"{', ' if arguments else ''}{slot.name}={quote}"),
                rule,
                *([literal(quote)] if quote else []),
            ]
            arguments.append(maybe(" ".join(parts), optional=slot.optional and not slot.always))
        return " ".join((literal(head), *arguments, *([literal(tail)] if tail else [])))

    def written(self, slot: Slot, value: Value) -> str:
        text = _written_argument(slot, value).removeprefix(f"{slot.name}=")
        return text if slot.kind in NUMERIC else text.removeprefix('"').removesuffix('"')


def _comment(*, named: bool) -> str:
    """GBNF rule of one comment line. *named*: none is an ELEMENT_LINE."""
    label = "[TNF] " if named else ""  # thought, note, forget note
    return f'("# " {label}{_IN_COMMENT}{{1,{COMMENT_CHARS}}} "\\n")'


class DescribingProgramLanguage(ProgramLanguage):
    """The program style with descriptions in words in place of numbers. Use :data:`DESCRIBING_PROGRAM`."""

    forms = FORMS.described("DESCRIPTION")
    introduction = (
        "DESCRIPTION stands for a control in words that fit it alone, as seen on the screenshot: what it is, its text, "
        "and where it is if there are others like it."
    )
    example = 'do(action="Click", element="DESCRIPTION")'
    describes = True
    names_controls = False


PROGRAM: Final = ProgramLanguage()
DESCRIBING_PROGRAM: Final = DescribingProgramLanguage()
