"""Id style, for large models [MiRA App. A.4, Fig. 18]: reasoning in prose, then one action in triple backticks.

    The form is filled in. In summary, the next action I will perform is ```click [7]```

Without the phrase, the first block in triple backticks counts; without a block, the first line that is an action.
Arguments are in brackets. Inside them a backslash escapes `[`, `]`, `` ` `` and itself; `\\n` and `\\t` are line break
and tab; balanced brackets need no escape. `parse` uses the first action of the block only. Words after it on its line
are ignored; a further bracket is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from envs.core import actions as act
from envs.core.action_languages.base import Fault, Parsed, ParseError, quoted, show_number, unescape
from envs.core.action_languages.form_language import COMMENT_CHARS, TO_DO, Language, Offered
from envs.core.action_languages.forms import Form, FormTable, Kind, Slot, Value
from envs.core.action_languages.gbnf import literal, maybe, one_of
from envs.core.actions import Action

PHRASE: Final = "In summary, the next action I will perform is"
_PHRASE = re.compile(r"in\s+summary,?\s+the\s+next\s+action\s+i\s+will\s+perform\s+is\s*:?\s*(?:```)?", re.IGNORECASE)
_VERB = re.compile(r"\s*([A-Za-z_]+)")
_BRACKET = re.compile(r"[ \t]*\[")
_SPECIAL = re.compile(r"\\[\s\S]|[\[\]]")
_RATIONALE: Final = f"[^`\\x00-\\x1F]{{0,{COMMENT_CHARS}}}"

_BUTTON: Final = Slot("button", Kind.BUTTON, "button", "button", optional=True)
_COUNT: Final = Slot("count", Kind.COUNT, "count", "count", optional=True)


def _id(kind: Kind = Kind.CONTROL, *, optional: bool = False) -> Slot:
    return Slot("ref", kind, "element", "id", optional=optional)


def _pixels(*names: str) -> tuple[Slot, ...]:
    return tuple(Slot(name, Kind.PIXELS, name, name) for name in names)


_TYPED: Final = (
    _id(Kind.FIELD),
    Slot("text", Kind.TEXT, "content", "content"),
    # Without the flag, Enter is not pressed.
    Slot("enter", Kind.FLAG, "the last bracket (press Enter)", "0|1", optional=True, always=True),
)

FORMS: Final = FormTable(
    (
        Form("click", act.Click, (_id(), _BUTTON, _COUNT)),
        Form("right_click", act.Click, (_id(),), {"button": "right"}, beside=True),
        Form("middle_click", act.Click, (_id(),), {"button": "middle"}, beside=True),
        Form("double_click", act.Click, (_id(),), {"count": 2}, beside=True),
        Form("hover", act.Hover, (_id(),), beside=True),
        Form("type", act.Type, _TYPED, {"clear": True}, remark="replaces what is there; 1 presses Enter afterwards"),
        Form("append", act.Type, _TYPED, {"clear": False}, remark="adds to what is there"),
        Form("select", act.Select, (_id(Kind.LIST), Slot("option", Kind.OPTION, "option", "option"))),
        Form("press", act.Press, (Slot("keys", Kind.KEYS, "keys", "keys"),), remark="for example Enter or Control+A"),
        Form(
            "scroll",
            act.Scroll,
            (Slot("direction", Kind.DIRECTION, "direction", "up|down|left|right"), _id(optional=True)),
            remark="a second [id] scrolls that element",
        ),
        Form("drag", act.Drag, (_id(), Slot("to_ref", Kind.CONTROL, "target", "to_id"))),
        Form("upload", act.Upload, (_id(Kind.FILE_FIELD), Slot("path", Kind.FILE, "file", "file"))),
        Form("click_at", act.ClickAt, (*_pixels("x", "y"), _BUTTON, _COUNT)),
        Form("drag_at", act.DragAt, _pixels("x", "y", "to_x", "to_y"), beside=True),
        Form("scroll_at", act.ScrollAt, _pixels("x", "y", "dx", "dy"), beside=True),
        Form(
            "find",
            act.Find,
            (Slot("text", Kind.TEXT, "text", "text"),),
            remark="shows every line with this text",
        ),
        Form(
            "expand",
            act.Expand,
            (Slot("group", Kind.GROUP, "group", "group"), Slot("start", Kind.ROW, "start", "start", optional=True)),
            remark="shows hidden rows of a group; a second [start] is the first row",
        ),
        Form("wait", act.Wait),
        Form(
            "dialog",
            act.AnswerDialog,
            (
                Slot("accept", Kind.DIALOG, "answer", "accept|dismiss"),
                Slot("text", Kind.TEXT, "text", "text", optional=True),
            ),
            remark="answers the open dialog; a second [text] answers a prompt",
        ),
        Form("goto", act.Goto, (Slot("url", Kind.URL, "url", "url"),)),
        Form("go_back", act.Back, beside=True),
        Form("go_forward", act.Forward, beside=True),
        Form("new_tab", act.NewTab),
        Form("close_tab", act.CloseTab, beside=True),
        Form("tab_focus", act.FocusTab, (Slot("index", Kind.TAB, "index", "index"),), beside=True),
        Form(
            "use_tool",
            act.UseTool,
            (Slot("tool", Kind.TOOL, "tool", "name"), Slot("input", Kind.TEXT, "input", "input", optional=True)),
            remark="a second [input] is what its line says",
        ),
        Form(
            "stop",
            act.Stop,
            (Slot("answer", Kind.TEXT, "answer", "answer", optional=True),),
            remark="ends the task; stop [answer] with an answer",
        ),
    )
)

_ACTION = rf"(?=(?:{'|'.join(FORMS.names)})[ \t]*(?:\[|`*[ \t]*$))"
_LINE = re.compile(rf"^[ \t]*{_ACTION}", re.MULTILINE | re.IGNORECASE)
_NEXT = re.compile(rf"^[ \t]*(?:{_PHRASE.pattern}|`{{3,}})?[ \t]*{_ACTION}", re.MULTILINE | re.IGNORECASE)


def _inside_fence(text: str, position: int) -> int:
    """Skips a fence's language tag: a single word on the fence's line that is not an action."""
    tag = re.compile(r"([A-Za-z]+)[ \t]*\n").match(text, position)
    return tag.end() if tag is not None and tag.group(1).lower() not in FORMS.names else position


def _argument(text: str, position: int) -> tuple[str, int]:
    """Returns the content of the bracket that opens before *position*, and the position after its closing bracket."""
    depth = 1
    for match in _SPECIAL.finditer(text, position):
        depth += {"[": 1, "]": -1}.get(match.group(), 0)
        if depth == 0:
            return unescape(text[position : match.start()]), match.end()
    raise Fault("a bracket is not closed (write \\[ and \\] inside a text)")


def _brackets(text: str, position: int) -> tuple[list[str], int]:
    """The contents of the brackets at *position*, and the position after them."""
    contents: list[str] = []
    while (bracket := _BRACKET.match(text, position)) is not None:
        content, position = _argument(text, bracket.end())
        contents.append(content)
        if len(contents) > 4:
            break
    return contents, position


def _value(slot: Slot, content: str) -> str:
    """*content* without the name that models trained on WebArena's style write before a flag."""
    return content.lower().removeprefix("press_enter_after=") if slot.kind is Kind.FLAG else content


def _call(form: Form, contents: list[str]) -> str:
    """The action of *form* with *contents* in its brackets."""
    return " ".join((form.name, *(f"[{content}]" for content in contents)))


def _content(slot: Slot, value: Value) -> str:
    """*value* of *slot* as the printer writes it in a bracket."""
    match value:
        case bool() if slot.kind is Kind.DIALOG:
            return "accept" if value else "dismiss"
        case bool():
            return str(int(value))
        case int():
            return str(value)
        case float():
            return show_number(value)
        case str():
            return value.translate(_ESCAPED)


_ESCAPED: Final = str.maketrans(
    {"\\": "\\\\", "[": "\\[", "]": "\\]", "`": "\\`", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
)


class IdLanguage(Language):
    """The id style, see the module docstring. Use the instance :data:`IDS`."""

    name = "id"
    forms: FormTable = FORMS
    introduction = "id stands for the number in brackets before a control of the page shown now."
    text_characters = r'[^`\[\]\\\x00-\x1F] | "\\" [`\[\]\\nt]'
    key_characters = r'[!-Z^-_a-~] | "\\" [`\[\]\\]'
    example = f"{PHRASE} ```click [id]```"
    """Examples in messages contain words in place of numbers, because small models copy numbers from examples."""

    def show(self, action: Action) -> str:
        form = FORMS.form_of(action)
        filled = form.filled(action)
        while filled and filled[-1] is None:
            filled.pop()
        # Brackets have no names, so every slot before a written one is written as well.
        contents = [_content(slot, getattr(action, slot.field)) for slot in form.slots[: len(filled)]]
        return f"{PHRASE} ```{_call(form, contents)}```"

    def shape(self, form: Form) -> str:
        return _call(form, [slot.shape for slot in form.written])

    def template(self, form: Form, shown: Sequence[tuple[Slot, str]]) -> str:
        return _call(form, [text for _, text in shown])

    def label(self, form: Form) -> str:
        return form.name

    def start(self, text: str) -> int:
        """Finds it after the phrase, else after the first fence, else at the first action line."""
        phrase = _PHRASE.search(text)
        if phrase is not None:
            return _inside_fence(text, phrase.end())
        fence = text.find("```")
        if fence >= 0:
            return _inside_fence(text, fence + 3)
        line = _LINE.search(text)
        if line is None:
            raise ParseError(f"no action found. Expected: {self.example}")
        return line.end()

    def begin(self, text: str, position: int) -> int | None:
        """Position of the verb with which the line at *position* begins, maybe behind the phrase or a fence."""
        line = _NEXT.match(text, position)
        return None if line is None else line.end()

    def read(self, text: str, position: int) -> tuple[Parsed, int]:
        verb = _VERB.match(text, position)
        form = self.forms.find(verb.group(1).lower()) if verb else None
        if verb is None or form is None:
            raise ParseError(f"no action {quoted(verb.group(1)) if verb else 'there'}. Expected: {self.example}")
        try:
            contents, end = _brackets(text, verb.end())
            return self.build(form, self._values(form, contents)), end
        except Fault as fault:
            raise ParseError(f"{fault}. Expected: {PHRASE} ```{self.shape(form)}```", form.name) from None

    def _values(self, form: Form, contents: list[str]) -> dict[str, Value]:
        """The value of each slot that has a bracket."""
        if not len(form.required) <= len(contents) <= len(form.slots):
            raise Fault(f"{form.name} has {len(contents)} brackets")
        return {
            slot.field: self.value(slot, _value(slot, content))
            for slot, content in zip(form.slots, contents, strict=False)
        }

    def answer_rule(self, actions: str, *, named: bool = False, opening: str = "") -> str:
        begun = f"{literal(opening)} {_RATIONALE}" if opening else _RATIONALE
        return f'{begun} {literal(f"{PHRASE} ```")} {actions} "```"'

    def ending_rule(self, ending: str, last_steps: Iterable[str], *, named: bool = False, opening: str = "") -> str:
        begun = literal(opening) if opening else f"{_RATIONALE} {literal(TO_DO)}"
        return f"{begun} {one_of(last_steps)} [^`a-zA-Z\\x00-\\x1F] {self.answer_rule(ending)}"

    def form_rule(self, form: Form, offered: Offered) -> str:
        brackets = (maybe(f'" [" {rule} "]"', optional=slot.optional and not slot.always) for slot, rule in offered)
        return " ".join((literal(form.name), *brackets))

    def written(self, slot: Slot, value: Value) -> str:
        return _content(slot, value)


class DescribingIdLanguage(IdLanguage):
    """The id style with descriptions in words in place of numbers. Use the instance :data:`DESCRIBING_IDS`."""

    forms = FORMS.described("description")
    introduction = (
        "description stands for a control in words that fit it alone, as seen on the screenshot: what it is, its text, "
        "and where it is if there are others like it."
    )
    example = f"{PHRASE} ```click [description]```"
    describes = True


IDS: Final = IdLanguage()
DESCRIBING_IDS: Final = DescribingIdLanguage()
