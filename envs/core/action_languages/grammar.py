r"""The grammar of an action language on one page, for constrained decoding.

The grammar is text in GBNF, the notation of llama.cpp; its start rule is `root`. Every sentence is an answer that the
language parses to an action whose numbers are on the page, whose option is one of its list, and whose tab exists. An
action without a valid value is left out.

An answer may begin with comment lines (program style) or one paragraph (id style): rationale and notes. Where several
actions may be written, those before the last one fill in a form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from envs.core.action_languages import ids, program
from envs.core.action_languages.choices import PageChoices
from envs.core.action_languages.forms import NUMERIC, Form, Kind, Slot, Value
from envs.core.action_languages.protocol import Language
from envs.core.actions import FORM_FILLING

TEXT_CHARS: Final = 400
"""Longest text that can be typed, searched or answered."""
COMMENT_CHARS: Final = 400
"""Longest comment, or paragraph, before the first action."""
COMMENTS: Final = 4
KEYS: Final = (
    *("Enter", "Escape", "Tab", "Shift+Tab", "Backspace", "Delete", "Space", "Home", "End", "PageUp", "PageDown"),
    *(
        "ArrowUp",
        "ArrowDown",
        "ArrowLeft",
        "ArrowRight",
        "Control+A",
        "Control+C",
        "Control+V",
        "Control+X",
        "Control+Z",
    ),
)
"""Keys that can be pressed."""
DIRECTIONS: Final = ("up", "down", "left", "right")
_NUMBER: Final = r'"-"? [0-9]{1,5} ("." [0-9]{1,2})?'
_ROW: Final = "[1-9] [0-9]{0,5}"
_ADDRESS: Final = r'"http" "s"? "://" [!#-\[\]-~]{1,300}'
"""Printable ASCII without blanks, quotes and backslashes."""
_IN_QUOTES: Final = r'[^"\\\x00-\x1F] | "\\" ["\\nt]'
_IN_BRACKETS: Final = r'[^`\[\]\\\x00-\x1F] | "\\" [`\[\]\\nt]'


def grammar(language: Language, choices: PageChoices, most: int = 1) -> str:
    """The GBNF grammar of the answers that are valid on the page with *choices*, with at most *most* actions."""
    forms = [(form, rule) for form in language.forms.forms for rule in _alternatives(language, form, choices)]
    filling = [rule for form, rule in forms if form.action in FORM_FILLING]
    several = most > 1 and len(filling) > 0
    rules = {
        # A rule below `root`, because llguidance compiles every rule but `root` to one regular expression.
        "root": "answer",
        "answer": _answer(language, f'(filling "\\n"){{0,{most - 1}}} action' if several else "action"),
        "action": " | ".join(rule for _, rule in forms),
        **({"filling": " | ".join(filling)} if several else {}),
        "char": _IN_QUOTES if language.name == "program" else _IN_BRACKETS,
        "text": f"char{{0,{TEXT_CHARS}}}",
        **{name: _choice(map(str, numbers)) for name, numbers in _numbers(choices).items() if numbers},
    }
    return "".join(f"{name} ::= {rule}\n" for name, rule in rules.items())


def _answer(language: Language, actions: str) -> str:
    if language.name == "program":
        return f'("# " [^\\n\\x00-\\x1F]{{1,{COMMENT_CHARS}}} "\\n"){{0,{COMMENTS}}} {actions}'
    return f'[^`\\x00-\\x1F]{{0,{COMMENT_CHARS}}} {literal(f"{ids.PHRASE} ```")} {actions} "```"'


def _numbers(choices: PageChoices) -> dict[str, tuple[int, ...]]:
    return {"control": choices.controls, "field": choices.fields, "filefield": choices.file_fields}


def _alternatives(language: Language, form: Form, choices: PageChoices) -> Iterator[str]:
    """The ways to write *form* on this page: one for each drop-down of a selection, else one or none."""
    kinds = {slot.kind for slot in form.required}
    if not _is_possible(form, choices) or (Kind.PIXELS in kinds and not choices.coordinates):
        return
    if Kind.LIST not in kinds:
        values = [_value(language, slot, choices) for slot in form.slots if _is_offered(slot)]
        if None not in values:
            yield _sentence(language, form, [value or "" for value in values])
        return
    for number, options in choices.lists:
        option = _choice_of(language, form, options) if options else "text"
        yield _sentence(
            language, form, [literal(str(number)) if s.kind is Kind.LIST else option for s in form.required]
        )


def _is_possible(form: Form, choices: PageChoices) -> bool:
    """While a dialog is open it must be answered, or the task ended. Without one there is nothing to answer."""
    if form.name in ("stop", "exit"):
        return True
    answers = any(slot.kind is Kind.DIALOG for slot in form.slots)
    return answers == choices.dialog


def _is_offered(slot: Slot) -> bool:
    """Optional slots are left out, except for the texts of answers: a grammar of few actions is easier to follow."""
    return not slot.optional or slot.always or slot.kind is Kind.TEXT


def _value(language: Language, slot: Slot, choices: PageChoices) -> str | None:
    """The rule of a slot's value; None if the page has no valid one."""
    match slot.kind:
        case Kind.CONTROL:
            return "control" if choices.controls else None
        case Kind.FIELD:
            return "field" if choices.fields else None
        case Kind.FILE_FIELD:
            return "filefield" if choices.file_fields else None
        case Kind.TEXT:
            return "text"
        case Kind.URL:
            return _ADDRESS
        case Kind.PIXELS:
            return _NUMBER
        case Kind.ROW:
            return _ROW
        case Kind.FLAG:
            return '("0" | "1")'
        case _:
            values = _closed_set(slot.kind, choices)
            return _choice(_written(language, slot, value) for value in values) if values else None


def _closed_set(kind: Kind, choices: PageChoices) -> Sequence[Value]:
    match kind:
        case Kind.FILE:
            return choices.files
        case Kind.GROUP:
            return choices.groups
        case Kind.TAB:
            return choices.tabs
        case Kind.KEYS:
            return KEYS
        case Kind.DIRECTION:
            return DIRECTIONS
        case Kind.DIALOG:
            return (True, False)
        case Kind.COUNT:
            return (2, 3)
        case Kind.BUTTON:
            return ("right", "middle")
        case _:
            raise ValueError(f"{kind} has no closed set of values")


def _choice_of(language: Language, form: Form, options: Iterable[str]) -> str:
    slot = next(slot for slot in form.slots if slot.kind is Kind.OPTION)
    return _choice(_written(language, slot, option) for option in options)


def _written(language: Language, slot: Slot, value: Value) -> str:
    """*value* as the language's printer writes it, without the quotes or brackets around it."""
    if language.name == "id":
        return ids.content(slot, value)
    text = program.argument(slot, value).removeprefix(f"{slot.name}=")
    return text if slot.kind in NUMERIC else text.removeprefix('"').removesuffix('"')


def _sentence(language: Language, form: Form, values: Sequence[str]) -> str:
    """The form with *values*, rules of the slots that are offered."""
    slots = [slot for slot in form.slots if _is_offered(slot)]
    if language.name == "id":
        return _brackets(form, slots, values)
    return _call(form, slots, values)


def _call(form: Form, slots: Sequence[Slot], values: Sequence[str]) -> str:
    head, tail = program.call(form, ["\0"]).split("\0") if slots else (program.call(form, []), "")
    parts: list[str] = []
    written = False
    for slot, value in zip(slots, values, strict=True):
        quote = "" if slot.kind in NUMERIC or slot.kind is Kind.FLAG else '"'
        start = f"{', ' if written else ''}{slot.name}={quote}"
        argument = f"{literal(start)} {value}{f' {literal(quote)}' if quote else ''}"
        parts.append(f"({argument})?" if slot.optional and not slot.always else argument)
        written = True
    return " ".join((literal(head), *parts, *([literal(tail)] if tail else [])))


def _brackets(form: Form, slots: Sequence[Slot], values: Sequence[str]) -> str:
    parts = [literal(form.name)]
    for slot, value in zip(slots, values, strict=True):
        bracket = f'" [" {value} "]"'
        parts.append(f"({bracket})?" if slot.optional and not slot.always else bracket)
    return " ".join(parts)


def _choice(texts: Iterable[str]) -> str:
    """One of *texts*."""
    return f"({' | '.join(map(literal, texts))})"


def literal(text: str) -> str:
    """*text* as a GBNF string."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
