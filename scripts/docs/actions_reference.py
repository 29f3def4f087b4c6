"""Generates the reference of the actions from their records, the forms of both languages, and the rules of prompts and
approval."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, NamedTuple, get_args

from agent.config import ActionClass
from agent.episode.approval import classes_of, needs_approval
from envs.core.action_languages import DESCRIBING, LANGUAGES, Language, ids, note_lines, program
from envs.core.action_languages.choices import PageChoices
from envs.core.action_languages.forms import CONTROLS, NUMERIC, Form, Kind, Slot, Value
from envs.core.action_languages.short_reference import possible_now, short_reference, short_shape
from envs.core.action_languages.situations import SITUATIONS
from envs.core.actions import ACTION, FORM_FILLING, Action, Click, Upload, UseTool
from envs.core.observation import Effect, Element, ElementKey, Observation
from envs.core.record import Record
from scripts.docs.config_reference import attribute_texts, cell, keys, markdown

INTRODUCTION: Final = """# Actions

Generated from the code. This page lists every action that a policy can take: how it is written in both action
languages, which prompts offer it, and which classes of `--approve` it belongs to. A policy writes `program` unless
`--language id` says otherwise. Both languages parse to the same actions, which the trace records. Tool calls of
[vendors' models](../howto/models.md#tool-sets-of-the-vendors) become the same actions.

*Large* and *small* are [prompt profiles](../howto/prompt-profiles.md); prompts of the profile `compact` list no
actions. An action that a prompt did not offer is executed all the same, with two exceptions. In these two profiles one
at a point of the view is sent back to the policy, and
[constrained answers](../howto/prompt-profiles.md#constrained-answers) cannot contain it. The
[Python API](api/data.md) has the statuses and reasons with which an action can end.
"""
APPROVAL: Final = """## Approval

`--approve` takes classes of actions. An action that belongs to one of them needs a person's approval;
[Approval](../approval.md) explains how the effect of a control is found. *Always* are the classes of every action of
the kind, *maybe* those that depend on its control, key or address. With `--approve all` every action needs approval,
except those with a *no* in the last column.
"""
ON_CONTROLS: Final = """### Classes by control

The effect of a control decides, not its name. Only `download` also takes a name such as "Export" or "report.pdf" as a
hint. Typing is without Enter here.
"""

SAMPLES: Final[Mapping[Kind, Value]] = {
    **dict.fromkeys(CONTROLS, 7),
    Kind.TEXT: "Oslo",
    Kind.OPTION: "Large",
    Kind.FILE: "file.txt",
    Kind.GROUP: "g1",
    Kind.URL: "https://shop.example/",
    Kind.KEYS: "Enter",
    Kind.ROW: 29,
    Kind.TAB: 1,
    Kind.TOOL: "one_time_code",
    Kind.COUNT: 2,
    Kind.BUTTON: "right",
    Kind.DIRECTION: "down",
    Kind.DIALOG: True,
    Kind.FLAG: True,
    Kind.PIXELS: 120.0,
}
"""A value of each kind, for examples."""
VARIANTS: Final[Mapping[str, Sequence[Mapping[str, Value]]]] = {
    "type": ({"enter": False}, {"enter": True}),
    "press": ({"keys": "Enter"}, {"keys": "Tab"}),
    "answer_dialog": ({"accept": True}, {"accept": False}),
    "goto": ({"url": "https://shop.example/"}, {"url": "https://shop.example/data.zip"}),
}
"""Values of an action that may change its classes."""
NOTHING: Final = Effect(sends="", leads="", takes="", listened=frozenset())
EFFECTS: Final[Mapping[str, tuple[str, Effect | None]]] = {
    "button that sends nothing, without listeners": ("button", NOTHING),
    "button that a script listens to": ("button", replace(NOTHING, listened=frozenset({"press"}))),
    "button that sends a form by GET": ("button", replace(NOTHING, sends="get")),
    "button that sends a form by POST": ("button", replace(NOTHING, sends="post")),
    "link to a page": ("link", replace(NOTHING, leads="page")),
    "link to a download": ("link", replace(NOTHING, leads="file")),
    "text field without listeners": ("textbox", replace(NOTHING, takes="text")),
    "text field that a script listens to": ("textbox", replace(NOTHING, takes="text", listened=frozenset({"edit"}))),
    "drop-down without listeners": ("combobox", replace(NOTHING, takes="choice")),
    "file field without listeners": ("file", replace(NOTHING, takes="file")),
    "control whose listeners are unknown": ("button", replace(NOTHING, listened=frozenset({"press", "edit", "hover"}))),
}
"""Controls by their effect, in words: role and effect."""
EVERYTHING: Final = PageChoices(
    controls=(1,),
    labels=("button",),
    fields=(1,),
    lists=((1, ("Large",)),),
    file_fields=(1,),
    files=("file.txt",),
    groups=("g1",),
    tabs=(1,),
    tools=("one_time_code",),
    dialog=True,
    coordinates=True,
    has_lists=True,
    shortened=True,
)
"""The choices of a page that permits every action."""


class Classes(NamedTuple):
    """The classes of a kind of action."""

    always: tuple[ActionClass, ...]
    maybe: tuple[ActionClass, ...]
    asked: bool
    """Whether `--approve all` asks about it."""


def action_kinds() -> tuple[type[Record], ...]:
    """The records of all actions, in the order of the union."""
    return get_args(get_args(Action)[0])


def kind_of(record: type[Record]) -> str:
    """The `kind` of *record*, by which a trace names the action."""
    return record.model_fields["kind"].default


def actions_page() -> str:
    """Markdown of one page with every action."""
    parts = [INTRODUCTION, _overview(), APPROVAL, _approval_table(), ON_CONTROLS, _control_table(), _languages()]
    return "\n".join([*parts, *map(_section, action_kinds())])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines]) + "\n"


def _codes(values: Iterable[object]) -> str:
    return ", ".join(f"`{value}`" for value in values)


# Which prompts offer an action


def _overview() -> str:
    rows = ((_link(record), _first_sentence(record), in_large(record), in_small(record)) for record in action_kinds())
    return _table(("action", "what it does", "large", "small"), rows)


def _link(record: type[Record]) -> str:
    return f"[`{kind_of(record)}`](#{kind_of(record)})"


def _first_sentence(record: type[Record]) -> str:
    text = cell(inspect.getdoc(record) or "")
    return text.partition(". ")[0].partition("; ")[0].rstrip(".")


def forms_of(language: Language, record: type[Record]) -> list[Form]:
    """The forms of *record* in *language*."""
    return [form for form in language.forms.forms if form.action is record]


def in_large(record: type[Record]) -> str:
    """Where the prompts of the profile `large` list *record*."""
    if all(form.at_point for form in forms_of(LANGUAGES["program"], record)):
        return POINTS
    if record in (Upload, UseTool):
        return _WORDS["files" if record is Upload else "tools"]
    return _situation(SITUATIONS[record]) if record in SITUATIONS else "always"


def in_small(record: type[Record]) -> str:
    """Where the prompts of the profile `small` list *record*."""
    language = LANGUAGES["program"]
    forms = forms_of(language, record)
    shapes = [short_shape(language, form) for form in forms]
    if all(form.at_point for form in forms):
        return POINTS
    if any(line.startswith(shape) for line in short_reference(language).splitlines() for shape in shapes):
        return "always"
    if set(shapes) & set(possible_now(language, EVERYTHING)):
        return _situation(lambda choices: bool(set(shapes) & set(possible_now(language, choices))))
    return "never"


POINTS: Final = "where the policy sees a screenshot or boxes, or the page has a drawn area"


def _situation(permits: Callable[[PageChoices], bool]) -> str:
    """What a page must have, in the words of :class:`PageChoices`: the fields without which *permits* is false."""
    empty = {name: getattr(PageChoices(), name) for name in _choice_names()}
    needed = [name for name in _choice_names() if not permits(replace(EVERYTHING, **{name: empty[name]}))]
    texts = attribute_texts(PageChoices)
    return ", ".join(_WORDS.get(name) or texts[name].rstrip(".") for name in needed)


def _choice_names() -> list[str]:
    return [field.name for field in fields(PageChoices)]


_WORDS: Final[Mapping[str, str]] = {
    "file_fields": "where a file field is on the page",
    "files": "in runs with `--upload-folder`",
    "tools": "in runs with [tools](../howto/tools.md)",
    "groups": "where a group is collapsed",
    "tabs": "where another tab is open",
    "dialog": "where a dialog is open",
    "has_lists": "where a drop-down is on the page",
    "shortened": "where the text of the page is shortened",
}
"""What a field of :class:`PageChoices` permits, in place of its own text."""


# Classes of approval


def _approval_table() -> str:
    rows: list[tuple[str, ...]] = []
    for record in action_kinds():
        found = classes(record)
        rows.append((_link(record), _codes(found.always), _codes(found.maybe), "yes" if found.asked else "no"))
    return _table(("action", "always", "maybe", "asked with `all`"), rows)


def classes(record: type[Record]) -> Classes:
    """The classes of the actions of *record*, over its variants and all controls."""
    cases = [(action, observation) for action in _actions(record) for observation in map(_page, EFFECTS)]
    found = [classes_of(action, observation) for action, observation in cases]
    always, ever = frozenset.intersection(*found), frozenset.union(*found)
    names: tuple[ActionClass, ...] = get_args(ActionClass)
    return Classes(
        always=tuple(name for name in names if name in always),
        maybe=tuple(name for name in names if name in ever - always),
        asked=all(needs_approval(action, observation, ("all",)) for action, observation in cases),
    )


def _control_table() -> str:
    taking = [record for record in action_kinds() if _takes_control(record)]
    rows = ((control, *(_classes_on(record, control) for record in taking)) for control in EFFECTS)
    return _table(("control", *map(_link, taking)), rows)


def _takes_control(record: type[Record]) -> bool:
    return "ref" in record.model_fields and record.model_fields["ref"].is_required()


def _classes_on(record: type[Record], control: str) -> str:
    """The classes of an action of *record* on *control*, in the least variant."""
    found = min((classes_of(action, _page(control)) for action in _actions(record)), key=len)
    return _codes(name for name in get_args(ActionClass) if name in found) or "–"


def _page(control: str) -> Observation:
    """A page whose only controls are two of *control*; the first has the focus."""
    role, effect = EFFECTS[control]
    elements = tuple(_element(ref, role, effect) for ref in (1, 2))
    return Observation(
        url="https://shop.example/",
        title="",
        text="",
        elements=elements,
        tabs=(),
        digest="",
        viewport=(1280, 800),
        scroll=(0, 0),
        controls_total=len(elements),
    )


def _element(ref: int, role: str, effect: Effect | None) -> Element:
    states = ("focused",) if ref == 1 else ()
    key = ElementKey(frame="", role=role, name="", ordinal=ref - 1, digest="")
    return Element(ref, key, "", states, value=None, options=(), box=None, shown=True, effect=effect)


def _actions(record: type[Record]) -> list[Action]:
    """Actions of *record* on the first control of a page, onto the second."""
    on = {name: value for name, value in (("ref", 1), ("to_ref", 2)) if name in record.model_fields}
    example = sample(record).model_dump() | (on if _takes_control(record) else {})
    variants = VARIANTS.get(kind_of(record), ({},))
    return [ACTION.validate_python({**example, **variant}) for variant in variants]


# Languages and sections


def _languages() -> str:
    described = [language.shape(forms_of(language, Click)[0]) for language in DESCRIBING.values()]
    return "\n".join(
        (
            f"## The language `program`\n\n{_docstring(program)}\n",
            f"## The language `id`\n\n{_docstring(ids)}\n",
            f"## Notes\n\n{_docstring(note_lines)}\n",
            "## Controls in words\n\nWith a [grounder](../howto/vision.md#a-separate-grounding-model) an answer has a "
            f"description in place of a control's number:\n\n{_block(*described)}",
        )
    )


def _block(*lines: str) -> str:
    """A code block; the language `id` has backticks of its own."""
    return "\n".join(("````text", *lines, "````\n"))


def _docstring(module: Any) -> str:
    return markdown(inspect.cleandoc(module.__doc__ or ""))


def _section(record: type[Record]) -> str:
    found = classes(record)
    more = ["Another action may follow it in the same answer."] if issubclass(record, FORM_FILLING) else []
    approval = _codes((*found.always, *found.maybe)) or "none"
    facts = (
        f"- Offered in large prompts: {in_large(record)}; in small prompts: {in_small(record)}.",
        f"- Classes of approval, depending on its values and control: {approval}.",
        *(f"- {text}" for text in more),
    )
    parts = [f"## `{kind_of(record)}` {{#{kind_of(record)}}}\n", markdown(inspect.getdoc(record) or ""), ""]
    parts += [*facts, "", *_arguments(record), _table(("language", "written", "sets", "may add"), _written(record))]
    parts += [f"Examples:\n\n{_block(*examples(record))}"]
    return "\n".join(parts)


def _arguments(record: type[Record]) -> list[str]:
    rows = [
        (
            f"`{key.path}`",
            f"{key.type}; {key.default}",
            *(_names(language, record, key.path) for language in LANGUAGES.values()),
        )
        for key in keys(record)
        if key.path != "kind"
    ]
    return [_table(("argument", "type, default", *(f"in `{name}`" for name in LANGUAGES)), rows)] if rows else []


def _names(language: Language, record: type[Record], field: str) -> str:
    """What the forms of *record* call *field*; a bracket has no name."""
    forms = forms_of(language, record)
    slots = [(number, slot) for form in forms for number, slot in enumerate(form.slots, 1) if slot.field == field]
    named = dict.fromkeys(slot.name if language.name == "program" else f"bracket {number}" for number, slot in slots)
    implied = ["the name of the action"] if any(field in form.fixed for form in forms) else []
    texts = [f"`{name}`" if language.name == "program" else name for name in named]
    return ", ".join([*texts, *implied]) or "–"


def _written(record: type[Record]) -> Iterator[tuple[str, ...]]:
    for name, language in LANGUAGES.items():
        for form in forms_of(language, record):
            sets = ", ".join(f"`{field}` is {json.dumps(value)}" for field, value in form.fixed.items())
            added = [slot for slot in form.slots if slot not in form.written and slot.field not in form.fixed]
            yield (
                f"`{name}`",
                f"`{language.shape(form)}`",
                sets,
                _codes(_placeholder(language, slot) for slot in added),
            )


def _placeholder(language: Language, slot: Slot) -> str:
    """An optional argument as an answer writes it."""
    if language.name == "id":
        return f"[{slot.shape}]"
    return f"{slot.name}={slot.shape if slot.kind in NUMERIC else json.dumps(slot.shape, ensure_ascii=False)}"


def examples(record: type[Record]) -> list[str]:
    """An action of *record* in each language, as its printer writes it."""
    return [language.show(sample(record)) for language in LANGUAGES.values()]


def sample(record: type[Record]) -> Action:
    """An action of *record*, with a value for each argument that its first form writes."""
    form = forms_of(LANGUAGES["program"], record)[0]
    return form.build({slot.field: _value(slot.kind, number) for number, slot in enumerate(form.written)})


def _value(kind: Kind, number: int) -> Value:
    """A value of *kind* for the argument with this *number*: two controls or distances differ."""
    value = SAMPLES[kind]
    return value + 40 * number if kind is Kind.PIXELS and isinstance(value, float) else _other(value, kind, number)


def _other(value: Value, kind: Kind, number: int) -> Value:
    return value + 2 * number if kind in CONTROLS and isinstance(value, int) else value
