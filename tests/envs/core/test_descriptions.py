"""Action languages in which controls are described in words: one table of forms gives them too."""

from __future__ import annotations

import pytest

from envs.core.action_languages import DESCRIBING, LANGUAGES, Language, ParseError
from envs.core.action_languages.choices import PageChoices
from envs.core.action_languages.descriptions import DESCRIPTION_CHARS
from envs.core.action_languages.grammar import grammar
from envs.core.actions import Click, Drag, Scroll, Select, Type
from envs.core.grounding import UNGROUNDED, Description

SAVE = "the Save button of the second row"
PROGRAM, IDS = DESCRIBING["program"], DESCRIBING["id"]


@pytest.mark.parametrize(
    ("language", "answer"),
    [(PROGRAM, f'do(action="Click", element="{SAVE}")'), (IDS, f"The row is full. ```click [{SAVE}]```")],
)
def test_a_description_stands_for_a_number(language: Language, answer: str) -> None:
    parsed = language.parse(answer)
    assert (parsed.action, parsed.described) == (Click(ref=UNGROUNDED), (Description("ref", SAVE),))


def test_every_control_of_every_action_is_described() -> None:
    answer = (
        'do(action="Type", argument="a [7] b", element="  the field\n of  Ana ")\n'
        'do(action="Select", argument="M", element="sizes")\ndo(action="Drag", element="7", to="the bin")'
    )
    typed, selected, dragged = PROGRAM.parse_all(answer)
    assert typed.action == Type(ref=UNGROUNDED, text="a [7] b")
    assert typed.described == (Description("ref", "the field of Ana"),)
    assert selected.action == Select(ref=UNGROUNDED, option="M")
    assert dragged.action == Drag(ref=UNGROUNDED, to_ref=UNGROUNDED)
    assert dragged.described == (Description("ref", "7"), Description("to_ref", "the bin")), "7 may be a key's label"
    scrolled = IDS.parse("```scroll [down] [the list]```")
    assert (scrolled.action, len(scrolled.described)) == (Scroll(direction="down", ref=UNGROUNDED), 1)
    assert IDS.parse("```scroll [down]```").described == ()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ('do(action="Click", element="[7]")', "controls have no numbers here"),
        ('do(action="Click", element="  ")', "element is empty"),
        (f'do(action="Click", element="{"x" * (DESCRIPTION_CHARS + 1)}")', "more than 300 characters"),
        ('do(action="Click At", x=1, y=2)', "there is no action"),
        ('do(action="Click")', 'Expected: do(action="Click", element="DESCRIPTION")'),
    ],
)
def test_the_message_says_what_is_wrong(answer: str, problem: str) -> None:
    with pytest.raises(ParseError) as caught:
        PROGRAM.parse(answer)
    assert problem in str(caught.value) and "NUMBER" not in str(caught.value)


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_reference_asks_for_descriptions_alone(name: str) -> None:
    described = next(language for key, language in DESCRIBING.items() if key == name)
    assert "description stands for a control" in described.reference.lower()
    assert not any(word in described.reference for word in ("NUMBER", "[id]", "to_id"))
    assert described.pixels == ""
    numbered = next(language for key, language in LANGUAGES.items() if key == name)
    assert "description" not in numbered.reference.lower(), "the languages with numbers stay as they are"


@pytest.mark.parametrize("language", DESCRIBING.values(), ids=DESCRIBING)
def test_the_grammar_has_descriptions_where_the_page_has_controls(language: Language) -> None:
    full = grammar(language, PageChoices(controls=(1, 2), fields=(1,), lists=((2, ("S", "M")),)), 3)
    assert "description ::= char{1,300}" in full and "control ::=" in full
    click = next(form for form in language.forms.forms if form.action is Click)
    rule = next(line for line in full.splitlines() if line.startswith("action ::="))
    assert language.form_rule(click, [(click.slots[0], "description")]) in rule
    bare = grammar(language, PageChoices(), 1)
    typing = [form for form in language.forms.forms if form.action in (Type, Select)]
    assert all(f'"{form.name}' not in bare and f'\\"{form.name}' not in bare for form in typing)
