r"""The grammar of an action language on one page, for constrained decoding.

The grammar is text in GBNF, the notation of llama.cpp; its start rule is `root`. Every sentence is an answer that the
language parses to an action whose numbers are on the page, whose option is one of its list, and whose tab exists. An
action without a valid value is left out.

An answer may begin with comment lines (program style) or one paragraph (id style): rationale and notes. Where several
actions may be written, those before the last one fill in a form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from envs.core.action_languages.choices import PageChoices
from envs.core.action_languages.descriptions import DESCRIPTION_CHARS
from envs.core.action_languages.form_language import ELEMENT_LINE, Language
from envs.core.action_languages.forms import CONTROLS, Form, Kind, Slot, Value
from envs.core.action_languages.gbnf import literal, one_of
from envs.core.actions import FORM_FILLING, Stop
from envs.core.key_names import KEY_NAMES

MODIFIERS: Final = ("Control", "Shift", "Alt", "Meta")
KEYS: Final = tuple(name for name in dict.fromkeys(KEY_NAMES.values()) if name not in MODIFIERS and len(name) > 1)
"""Keys that have a name. Others are one character."""
DIRECTIONS: Final = ("up", "down", "left", "right")
THOUGHT_CHARS: Final = 1_900
"""Longest thought in tags before an answer. llama.cpp refuses to repeat something 2,000 times."""
_THOUGHT_FIRST: Final = r'("<think>" thought "</think>" "\n"?)? ("<answer>" "\n"? plain "\n"? "</answer>" | plain)'
_NUMBER: Final = r'"-"? [0-9]{1,5} ("." [0-9]{1,4})?'
_ROW: Final = "[1-9] [0-9]{0,5}"
_ADDRESS: Final = r'"http" "s"? "://" [^\x00-\x20"\\\[\]\x7F-\xA0]+'
"""Characters of any script without blanks, quotes, backslashes and brackets, which delimit arguments; addresses have
`%5B`."""

MOST_NAMED: Final = 200
"""Controls of a page up to which an answer names its control: each has a rule of its own."""


def grammar(
    language: Language,
    choices: PageChoices,
    most: int = 1,
    *,
    named: bool = False,
    last_steps: Sequence[str] = (),
    opening: str = "",
    thoughts: bool = False,
) -> str:
    """The GBNF grammar of the answers that are valid on the page with *choices*, with at most *most* actions.

    *named*: an action on a control follows a line with the label of this control, so that its number is implied; for
    single actions on a page of up to MOST_NAMED controls, in a language that has such a line. *last_steps*: an answer
    ends the task only if one of these words follows TO_DO in its rationale; for single actions, () for no condition.
    *opening*: text that the rationale begins with; with *last_steps* it ends with TO_DO. *thoughts*: a thought in
    `<think>` tags, also an empty one, may come before the answer, and the answer may be in `<answer>` tags."""
    forms = [(form, rule) for form in language.forms.forms for rule in _alternatives(language, form, choices)]
    filling = [rule for form, rule in forms if form.action in FORM_FILLING]
    several = most > 1 and len(filling) > 0
    ending = " | ".join(rule for form, rule in forms if last_steps and most == 1 and form.action is Stop)
    if ending:
        forms = [(form, rule) for form, rule in forms if form.action is not Stop]
    labelled = named and most == 1 and language.names_controls and 0 < len(choices.controls) <= MOST_NAMED
    if labelled:
        forms = [(form, rule) for form, rule in forms if not _acts_on_control(form)]
        answer = language.answer_rule(f"({literal(ELEMENT_LINE)} named | action)", named=True, opening=opening)
    else:
        actions = f'(filling "\\n"){{0,{most - 1}}} action' if several else "action"
        answer = language.answer_rule(actions, opening=opening)
    if ending:
        answer = f"{answer} | {language.ending_rule('ending', last_steps, named=labelled, opening=opening)}"
    rules = {
        # A rule below `root`, because llguidance compiles every rule but `root` to one regular expression.
        "root": "answer",
        "answer": _THOUGHT_FIRST if thoughts else answer,
        **({"thought": f"[^<]{{0,{THOUGHT_CHARS}}}", "plain": answer} if thoughts else {}),
        **({"named": _named(language, choices)} if labelled else {}),
        **({"ending": ending} if ending else {}),
        "action": " | ".join(rule for _, rule in forms),
        **({"filling": " | ".join(filling)} if several else {}),
        "char": language.text_characters,
        # Limited only by the tokens of an answer: a limit here takes xgrammar 0.7 s a token, and would forbid the long
        # JSON of a schema.
        "text": "char*",
        "modifier": one_of(f"{name}+" for name in MODIFIERS),
        "key": f"modifier{{0,3}} ({one_of(KEYS)} | {language.key_characters})",
        **({"description": f"char{{1,{DESCRIPTION_CHARS}}}"} if language.describes else {}),
        **{name: one_of(map(str, numbers)) for name, numbers in _numbers(choices).items() if numbers},
    }
    return "".join(f"{name} ::= {rule}\n" for name, rule in rules.items())


def _numbers(choices: PageChoices) -> dict[str, tuple[int, ...]]:
    return {"control": choices.controls, "field": choices.fields, "filefield": choices.file_fields}


def _acts_on_control(form: Form) -> bool:
    return any(slot.field == "ref" and _is_offered(slot) for slot in form.slots)


def _named(language: Language, choices: PageChoices) -> str:
    """The rule of a label and an action on a control that has it."""
    refs: dict[str, list[int]] = {}
    for ref, label in zip(choices.controls, choices.labels, strict=True):
        refs.setdefault(label, []).append(ref)
    forms = [form for form in language.forms.forms if _acts_on_control(form)]
    rules = {
        label: [rule for ref in alike for form in forms for rule in _alternatives(language, form, _only(choices, ref))]
        for label, alike in refs.items()
    }
    return " | ".join(f'{literal(label)} "\\n" ({" | ".join(acts)})' for label, acts in rules.items() if acts)


def _only(choices: PageChoices, ref: int) -> PageChoices:
    """*choices* with one control to act on."""
    return replace(
        choices,
        acted_on=ref,
        fields=tuple(number for number in choices.fields if number == ref),
        lists=tuple(one for one in choices.lists if one[0] == ref),
        file_fields=tuple(number for number in choices.file_fields if number == ref),
    )


def _alternatives(language: Language, form: Form, choices: PageChoices) -> Iterator[str]:
    """The ways to write *form* on this page: one for each drop-down of a selection, else one or none."""
    if not _is_possible(form, choices) or (form.at_point and not choices.coordinates):
        return
    slots = [slot for slot in form.slots if _is_offered(slot)]
    if language.describes or all(slot.kind is not Kind.LIST for slot in slots):
        rules = [(slot, _value(language, slot, choices)) for slot in slots]
        valid = [(slot, rule) for slot, rule in rules if rule is not None]
        if len(valid) == len(slots):
            yield language.form_rule(form, valid)
        return
    for number, options in choices.lists:
        option = _choice_of(language, form, options) if options else "text"
        yield language.form_rule(
            form, [(slot, literal(str(number)) if slot.kind is Kind.LIST else option) for slot in slots]
        )


def _is_possible(form: Form, choices: PageChoices) -> bool:
    """While a dialog is open it must be answered, or the task ended. Without one there is nothing to answer."""
    if form.name in ("stop", "exit"):
        return True
    answers = any(slot.kind is Kind.DIALOG for slot in form.slots)
    return answers == choices.dialog


def _is_offered(slot: Slot) -> bool:
    """Optional slots are left out, except for the texts of answers and those that no other form replaces: a grammar of
    few actions is easier to follow."""
    return not slot.optional or slot.always or slot.kind is Kind.TEXT or slot.field == "clear"


def _value(language: Language, slot: Slot, choices: PageChoices) -> str | None:
    """The rule of a slot's value; None if the page has no valid one."""
    if language.describes and slot.kind in (*CONTROLS, Kind.OPTION):
        return _described(slot.kind, choices)
    if choices.acted_on is not None and slot.field == "ref":
        valid = {Kind.FIELD: choices.fields, Kind.FILE_FIELD: choices.file_fields}.get(slot.kind, choices.controls)
        return literal(str(choices.acted_on)) if choices.acted_on in valid else None
    match slot.kind:
        case Kind.CONTROL:
            return "control" if choices.controls else None
        case Kind.FIELD:
            return "field" if choices.fields else None
        case Kind.FILE_FIELD:
            return "filefield" if choices.file_fields else None
        case Kind.TEXT:
            return "text"
        case Kind.KEYS:
            return "key"
        case Kind.URL:
            return _ADDRESS
        case Kind.PIXELS:
            return _NUMBER
        case Kind.ROW:
            return _ROW
        case _:
            values = _closed_set(slot.kind, choices)
            return one_of(language.written(slot, value) for value in values) if values else None


def _described(kind: Kind, choices: PageChoices) -> str | None:
    """The rule of a control in words, if the page has one that fits, or of an option of the list so described. Anything
    that is seen can be clicked, also where no control has a number."""
    match kind:
        case Kind.OPTION:
            return "text"
        case Kind.FIELD if not choices.fields:
            return None
        case Kind.LIST if not choices.lists:
            return None
        case Kind.FILE_FIELD if not choices.file_fields:
            return None
        case _:
            return "description"


def _closed_set(kind: Kind, choices: PageChoices) -> Sequence[Value]:
    match kind:
        case Kind.FILE:
            return choices.files
        case Kind.GROUP:
            return choices.groups
        case Kind.TAB:
            return choices.tabs
        case Kind.TOOL:
            return choices.tools
        case Kind.DIRECTION:
            return DIRECTIONS
        case Kind.DIALOG | Kind.FLAG:
            return (True, False)
        case Kind.COUNT:
            return (2, 3)
        case Kind.BUTTON:
            return ("right", "middle")
        case _:
            raise ValueError(f"{kind} has no closed set of values")


def _choice_of(language: Language, form: Form, options: Iterable[str]) -> str:
    slot = next(slot for slot in form.slots if slot.kind is Kind.OPTION)
    return one_of(language.written(slot, option) for option in options)
