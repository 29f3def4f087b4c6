"""Grammars of both action languages: what a constrained model can write is an action that is valid on the page."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from llguidance import LLMatcher, LLTokenizer
from llguidance.gbnf_to_lark import gbnf_to_lark
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

from envs.core import actions as act
from envs.core.action_languages import LANGUAGES, Language
from envs.core.action_languages.choices import PageChoices, page_choices
from envs.core.action_languages.grammar import MOST_NAMED, grammar
from envs.core.action_languages.program import PROGRAM
from envs.core.actions import Action, DialogReport
from envs.core.observation import Element, ElementKey, Observation, Tab

BYTES = LLTokenizer("byte")
END = BYTES.eos_token
CLOSING = frozenset(b'"]`\nI')
"""Octets that end a text or a rationale."""
PAGE = PageChoices(
    controls=(1, 2, 3, 4, 12),
    fields=(3,),
    lists=((2, ('A "q" [x]', "B\\", "ü`")), (5, ())),
    file_fields=(4,),
    files=("a b.txt",),
    groups=("g1",),
    tabs=(1,),
    coordinates=True,
)
both = pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)


def matcher(text: str) -> LLMatcher:
    started = LLMatcher(BYTES, LLMatcher.grammar_from_lark(gbnf_to_lark(text)), log_level=0)
    assert not started.is_error(), started.get_error()
    return started


def accepts(text: str, answer: str) -> bool:
    """Whether *answer* is a complete sentence of the grammar *text*."""
    started = matcher(text)
    octets = list(answer.encode())
    return started.try_consume_tokens(octets) == len(octets) and started.is_accepting()


def sentence(text: str, seed: int) -> str:
    """A random sentence of the grammar *text*; texts inside it are short, by a preference for closing them."""
    draw = random.Random(seed)
    started = matcher(text)
    bits: Any = allocate_token_bitmask(1, BYTES.vocab_size)
    octets: list[int] = []
    while True:
        fill_next_token_bitmask(started, bits)
        allowed = [i for i in range(BYTES.vocab_size) if bits[0, i // 32] >> (i % 32) & 1]
        closing = [token for token in allowed if token in CLOSING]
        token = draw.choice(closing if closing and draw.random() < 0.3 else allowed)
        if token == END:
            return bytes(octets).decode()
        octets.append(token)
        started.consume_token(token)
        if started.is_stopped():
            return bytes(octets).decode()


@both
def test_every_sentence_is_an_action_that_is_valid_on_the_page(language: Language) -> None:
    text = grammar(language, PAGE)
    actions = [language.parse(sentence(text, seed)).action for seed in range(60)]
    for action in actions:
        assert_valid(action)
    assert len({type(action) for action in actions}) > 8, "the sentences show few actions"


@both
@pytest.mark.parametrize("bracket", "[]")
def test_an_address_has_no_bracket_that_would_end_or_extend_an_argument(language: Language, bracket: str) -> None:
    answer = language.show(act.Goto(url="https://a.example/?rows=3"))
    assert accepts(grammar(language, PAGE), answer)
    assert not accepts(grammar(language, PAGE), answer.replace("3", bracket))


def assert_valid(action: Action) -> None:
    match action:
        case act.Type():
            assert action.ref in PAGE.fields
        case act.Select():
            options = dict(PAGE.lists)[action.ref]
            assert not options or action.option in options
        case act.Upload():
            assert (action.ref, action.path) == (4, "a b.txt")
        case act.FocusTab():
            assert action.index in PAGE.tabs
        case act.Expand():
            assert action.group in PAGE.groups
        case act.Drag():
            assert {action.ref, action.to_ref} <= set(PAGE.controls)
        case act.Click() | act.Hover():
            assert action.ref in PAGE.controls
        case act.Goto():
            assert action.url.startswith(("http://", "https://"))
        case _:
            assert not isinstance(action, act.AnswerDialog), "no dialog is open"


POSSIBLE: list[Action] = [
    act.Click(ref=12),
    act.Click(ref=1, button="right"),
    act.Click(ref=1, count=2),
    act.Type(ref=3, text='say "hi" [now] \\ `x` 漢'),
    act.Type(ref=3, text="a", enter=True),
    act.Type(ref=3, text="a", clear=False),
    act.Type(ref=3, text="a", clear=False, enter=True),
    act.Type(ref=3, text="a line of a long text\n" * 80),
    act.Select(ref=2, option='A "q" [x]'),
    act.Select(ref=2, option="B\\"),
    act.Select(ref=2, option="ü`"),
    act.Select(ref=5, option="not shown"),
    act.Hover(ref=1),
    act.Press(keys="Enter"),
    act.Press(keys="Control+A"),
    act.Press(keys="Control+Shift+s"),
    act.Press(keys="Shift+Tab"),
    act.Press(keys="F5"),
    *(act.Press(keys=key) for key in 'x9?"\\[`+'),
    act.Scroll(direction="down"),
    act.Drag(ref=1, to_ref=12),
    act.Upload(ref=4, path="a b.txt"),
    act.ClickAt(x=10, y=20.5),
    act.DragAt(x=1, y=2, to_x=3, to_y=4),
    act.ScrollAt(x=1, y=2, dx=0, dy=-300),
    act.Find(text="total"),
    act.Expand(group="g1"),
    act.Wait(),
    act.Goto(url="https://a.example/x?y=1"),
    act.Goto(url="https://müller.example/straße/東京?q=%5B1%5D"),
    act.Goto(url=f"https://a.example/?token={'0123456789' * 150}"),
    act.Back(),
    act.Forward(),
    act.NewTab(),
    act.CloseTab(),
    act.FocusTab(index=1),
    act.Stop(),
    act.Stop(answer="42"),
    act.Stop(answer='{"rows": [{"name": "Ann", "city": "Zürich"}]}\n' * 200),
]
IMPOSSIBLE: list[Action] = [
    act.Click(ref=7),
    act.Type(ref=1, text="a"),
    act.Select(ref=2, option="C"),
    act.Select(ref=1, option="B\\"),
    act.Upload(ref=4, path="other.txt"),
    act.Expand(group="g2"),
    act.FocusTab(index=0),
    act.Press(keys="no key"),
    act.Press(keys="Controls+A"),
    act.Goto(url="https://a.example/a b"),
    act.AnswerDialog(accept=True),
    act.Goto(url="javascript:alert(1)"),
]


@both
def test_every_possible_action_can_be_written(language: Language) -> None:
    text = grammar(language, PAGE)
    assert [action for action in POSSIBLE if not accepts(text, language.show(action))] == []


@both
def test_an_action_that_the_page_does_not_allow_cannot_be_written(language: Language) -> None:
    text = grammar(language, PAGE)
    assert [action for action in IMPOSSIBLE if accepts(text, language.show(action))] == []


@both
def test_an_open_dialog_is_answered_first(language: Language) -> None:
    text = grammar(language, PageChoices(controls=(1,), dialog=True))
    assert accepts(text, language.show(act.AnswerDialog(accept=False)))
    assert accepts(text, language.show(act.AnswerDialog(accept=True, text="Ann")))
    assert accepts(text, language.show(act.Stop()))
    assert not accepts(text, language.show(act.Click(ref=1)))


@both
def test_a_page_without_controls_leaves_actions_without_numbers(language: Language) -> None:
    text = grammar(language, PageChoices())
    assert accepts(text, language.show(act.Back()))
    assert not accepts(text, language.show(act.Click(ref=1)))
    assert not accepts(text, language.show(act.ClickAt(x=1, y=2))), "coordinates are not offered"


@both
def test_several_actions_fill_in_a_form(language: Language) -> None:
    one, three = grammar(language, PAGE), grammar(language, PAGE, most=3)
    actions = [act.Type(ref=3, text="Ann"), act.Select(ref=2, option="B\\"), act.Press(keys="Enter")]
    shown = [language.show(action) for action in actions]
    if language.name == "id":
        head, _, _ = shown[0].partition("```")
        shown = [f"{head}```" + "\n".join(text.split("```")[1] for text in shown) + "```"]
    answer = "\n".join(shown)
    assert accepts(three, answer) and not accepts(one, answer)
    assert [parsed.action for parsed in language.parse_all(answer)] == actions
    for seed in range(20):
        assert 1 <= len(language.parse_all(sentence(three, seed))) <= 3


@both
def test_a_rationale_may_come_first(language: Language) -> None:
    text = grammar(language, PAGE)
    rationale = "# the form is filled in\n" if language.name == "program" else "The form is filled in. "
    answer = rationale + language.show(act.Click(ref=12))
    assert accepts(text, answer)
    assert language.parse(answer).action == act.Click(ref=12)


LAST_STEPS = ("nothing", "answer")


def ending_grammar(language: Language) -> str:
    """Answers that end the task only with one of LAST_STEPS to do."""
    named = language.names_controls
    return grammar(language, replace(PAGE, labels=LABELS), named=named, last_steps=LAST_STEPS)


def with_rationale(language: Language, rationale: str, action: Action) -> str:
    comment = f"# Thought: {rationale}\n" if language.name == "program" else f"{rationale} "
    return comment + language.show(action)


@both
@pytest.mark.parametrize(
    ("rationale", "ends"),
    [
        ("Done: the form is sent. To do: nothing.", True),
        ("Done: Shop is open. To do: answer with the price, 34 EUR.", True),
        ("Done: nothing. The price is not on this page. To do: open Shop, answer with the price.", False),
        ("Done: nothing. To do: answered mails.", False),
        ("The form is sent.", False),
    ],
)
def test_a_task_is_ended_only_with_a_last_step_to_do(language: Language, rationale: str, ends: bool) -> None:
    text = ending_grammar(language)
    ending = with_rationale(language, rationale, act.Stop(answer="34 EUR"))
    assert accepts(text, ending) is ends
    assert accepts(grammar(language, PAGE), ending), "without the condition any rationale ends it"
    assert accepts(text, with_rationale(language, rationale, act.Press(keys="Enter"))), "other actions may follow any"
    assert not accepts(text, language.show(act.Stop(answer="34 EUR"))), "a rationale is needed"


@both
def test_a_rationale_begins_with_the_given_text(language: Language) -> None:
    opening = 'Not yet: The "price" is shown. To do: '
    for named in {False, language.names_controls}:
        text = grammar(language, replace(PAGE, labels=LABELS), named=named, last_steps=LAST_STEPS, opening=opening)
        press, stop = act.Press(keys="Enter"), act.Stop(answer="34 EUR")
        assert accepts(text, with_rationale(language, f"{opening}open Shop.", press))
        assert accepts(text, with_rationale(language, f"{opening}answer with 34 EUR.", stop))
        assert not accepts(text, with_rationale(language, f"{opening}open Shop.", stop))
        for other in ("Done: The price is shown. To do: answer.", "I know it."):
            assert not accepts(text, with_rationale(language, other, press))
            assert not accepts(text, with_rationale(language, other, stop))
        assert not accepts(text, language.show(press)), "the rationale is needed"


@both
def test_the_last_answer_of_several_actions_needs_no_rationale(language: Language) -> None:
    text = grammar(language, PAGE, most=3, last_steps=LAST_STEPS)
    assert text == grammar(language, PAGE, most=3)


LABELS = ('button "Save"', 'combobox "Size"', 'textbox "Na\\"me"', 'file "Photo"', 'button "Save"')


def named_grammar() -> str:
    return grammar(PROGRAM, replace(PAGE, labels=LABELS), named=True)


@pytest.mark.parametrize(
    ("label", "action"),
    [
        ('button "Save"', act.Click(ref=1)),
        ('button "Save"', act.Click(ref=12, button="right")),
        ('textbox "Na\\"me"', act.Type(ref=3, text="Ann")),
        ('combobox "Size"', act.Select(ref=2, option="B\\")),
        ('file "Photo"', act.Upload(ref=4, path="a b.txt")),
        ('button "Save"', act.Drag(ref=12, to_ref=2)),
    ],
)
def test_the_label_of_a_control_implies_its_number(label: str, action: Action) -> None:
    text, line = named_grammar(), PROGRAM.show(action)
    answer = f"# Element: {label}\n{line}"
    assert accepts(text, answer)
    assert accepts(text, f"# Thought: press it\n{answer}")
    assert PROGRAM.parse(f"# Thought: press it\n{answer}").rationale == "press it"
    for other in {*LABELS} - {label}:
        assert not accepts(text, f"# Element: {other}\n{line}")
    assert not accepts(text, line), "an action on a control needs its label"
    assert not accepts(text, f"# Element: {label} of the form\n{line}")


def test_actions_without_a_control_have_no_label() -> None:
    text = named_grammar()
    free = [action for action in POSSIBLE if getattr(action, "ref", None) is None]
    assert len(free) > 12
    assert [action for action in free if not accepts(text, f"# Thought: next\n{PROGRAM.show(action)}")] == []


def test_a_page_of_many_controls_is_not_named() -> None:
    many = tuple(range(1, MOST_NAMED + 2))
    choices = PageChoices(controls=many, labels=tuple(f'link "{ref}"' for ref in many))
    assert grammar(PROGRAM, choices, named=True) == grammar(PROGRAM, choices)
    fewer = replace(choices, controls=many[1:], labels=choices.labels[1:])
    assert accepts(grammar(PROGRAM, fewer, named=True), f'# Element: link "9"\n{PROGRAM.show(act.Click(ref=9))}')


def element(ref: int, role: str, *states: str, tag: str = "div", options: tuple[str, ...] = ()) -> Element:
    key = ElementKey("", role, f"name {ref}", 0, "0" * 8)
    return Element(ref, key, tag, states, None, options, None, shown=True)


def test_choices_are_read_from_the_observation() -> None:
    observation = Observation(
        url="http://a.example/",
        title="",
        text='[1] button "name 1"\n[4] combobox "name 4" options: "S" "M" … 3 more\n… g1: row ×90, shown 1-28',
        elements=(
            element(1, "button"),
            element(2, "textbox", tag="input"),
            element(3, "textbox", "disabled", tag="input"),
            element(4, "combobox", tag="select", options=("S", "M")),
            element(5, "listbox", tag="select", options=("S", "S", "L")),
            element(6, "checkbox", tag="input"),
            element(7, "file", tag="input"),
            element(8, "date", tag="input"),
            element(9, "searchbox", "readonly", tag="input"),
        ),
        tabs=(Tab(0, "", "", active=True), Tab(1, "", "", active=False)),
        digest="",
        viewport=(800, 600),
        scroll=(0, 0),
        controls_total=9,
        dialog=DialogReport(type="alert", message="", answer="open"),
    )
    assert page_choices(observation, files=("a.txt",)) == PageChoices(
        controls=(1, 2, 4, 5, 6, 7, 8, 9),
        labels=tuple(f'{observation.elements[ref - 1].key.role} "name {ref}"' for ref in (1, 2, 4, 5, 6, 7, 8, 9)),
        fields=(2, 8),
        lists=((4, ()), (5, ("S", "L"))),
        file_fields=(7,),
        files=("a.txt",),
        groups=("g1",),
        tabs=(1,),
        dialog=True,
        has_lists=True,
        shortened=True,
    )


@both
def test_a_thought_in_tags_may_come_first(language: Language) -> None:
    text = grammar(language, PAGE, thoughts=True)
    action = act.Click(ref=2)
    shown = language.show(action)
    for thought in ("", 'The second one, "2".\nClick it.'):
        answer = f"<think>{thought}</think>\n{shown}"
        assert accepts(text, answer) and language.parse(answer).action == action
        tagged = f"<think>{thought}</think><answer>{shown}</answer>"
        assert accepts(text, tagged) and language.parse(tagged).action == action
    assert accepts(text, shown)
    assert not accepts(text, "<think></think>\n")
    assert not accepts(grammar(language, PAGE), "<think></think>")
