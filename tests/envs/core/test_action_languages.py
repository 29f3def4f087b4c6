"""Both action languages: round trips, tolerance, and what must never be executed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.core import actions as act
from envs.core.action_languages import IDS, LANGUAGES, PROGRAM, Language, ParseError
from envs.core.actions import Action
from envs.core.record import storable

REFS = st.integers(0, 999_999_999)
TEXTS = st.one_of(st.text(), st.text(alphabet="[]`\\\"'\n#()n ")).map(storable)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
BUTTONS = st.sampled_from(["left", "right", "middle"])
COUNTS = st.integers(1, 3)

ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(act.Click, ref=REFS, button=BUTTONS, count=COUNTS),
    st.builds(act.Type, ref=REFS, text=TEXTS, clear=st.booleans(), enter=st.booleans()),
    st.builds(act.Select, ref=REFS, option=TEXTS),
    st.builds(act.Hover, ref=REFS),
    st.builds(act.Press, keys=TEXTS),
    st.builds(act.Scroll, direction=st.sampled_from(["up", "down", "left", "right"]), ref=st.none() | REFS),
    st.builds(act.Drag, ref=REFS, to_ref=REFS),
    st.builds(act.Upload, ref=REFS, path=TEXTS),
    st.builds(act.ClickAt, x=FLOATS, y=FLOATS, button=BUTTONS, count=COUNTS),
    st.builds(act.DragAt, x=FLOATS, y=FLOATS, to_x=FLOATS, to_y=FLOATS),
    st.builds(act.ScrollAt, x=FLOATS, y=FLOATS, dx=FLOATS, dy=FLOATS),
    st.builds(act.Find, text=TEXTS),
    st.builds(act.Expand, group=TEXTS, start=st.integers(1, 999_999_999)),
    st.builds(act.Wait),
    st.builds(act.AnswerDialog, accept=st.booleans(), text=TEXTS),
    st.builds(act.Goto, url=TEXTS),
    st.builds(act.Back),
    st.builds(act.Forward),
    st.builds(act.NewTab),
    st.builds(act.CloseTab),
    st.builds(act.FocusTab, index=REFS),
    st.builds(act.Stop, answer=st.none() | TEXTS),
)

both = pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)


@both
@given(action=ACTIONS)
def test_what_is_shown_parses_back(language: Language, action: Action) -> None:
    shown = language.show(action)
    assert "\n" not in shown
    assert language.parse(shown).action == action


SHARDS = [
    "do(",
    "exit(",
    'action="Click"',
    "element=7",
    "argument=",
    '"',
    "'",
    "\\",
    ",",
    ")",
    "[",
    "]",
    "```",
    "\n",
    "click [",
    "type [3] [",
    "# Note: x",
    "<think>",
    "</think>",
    "In summary, the next action I will perform is ",
    "-",
    "1e9",
    "\ud800",
    "\0",
    "x=",
    "Drag At",
    "Type",
    "stop",
    "goto",
]


@both
@given(text=st.one_of(st.text(), st.lists(st.sampled_from(SHARDS) | st.text(max_size=3)).map("".join)))
def test_any_text_gives_an_action_or_a_parse_error(language: Language, text: str) -> None:
    try:
        parsed = language.parse(text)
    except ParseError as error:
        assert "\n" not in str(error)
        assert "Expected" in str(error)
    else:
        assert language.parse(language.show(parsed.action)).action == parsed.action


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('do(action="Click", element="7")', act.Click(ref=7)),
        ("do(action='Click', element='7')", act.Click(ref=7)),
        ('do(action="Click", element=7)', act.Click(ref=7)),
        ('do(action="Click", element="[7]")', act.Click(ref=7)),
        ('do( element = "7" , action = "Click", )', act.Click(ref=7)),
        ('do(action="click", argument=None, element="7")', act.Click(ref=7)),
        ('do(action="Right Click", element="7")', act.Click(ref=7, button="right")),
        ('do(action="Double Click", element="7")', act.Click(ref=7, count=2)),
        ('do(action="Type", argument="a \\"b\\" c", element="7")', act.Type(ref=7, text='a "b" c')),
        ('do(action="Type", argument="two\nlines", element="7")', act.Type(ref=7, text="two\nlines")),
        ('do(action="Type", argument="two\\nlines", element="7")', act.Type(ref=7, text="two\nlines")),
        ('do(action="Type", argument="(a), b=\'c\'", element="7")', act.Type(ref=7, text="(a), b='c'")),
        ('do(action="Type", argument="\\ud83d\\ude00", element="7")', act.Type(ref=7, text="😀")),
        ('do(action="Type", argument=2024, element=7)', act.Type(ref=7, text="2024")),
        ('do(action="Search", argument="socks", element="7")', act.Type(ref=7, text="socks", enter=True)),
        ('do(action="Select Dropdown Option", argument="M", element="7")', act.Select(ref=7, option="M")),
        ('do(action="Hover", element="7")', act.Hover(ref=7)),
        ('do(action="Press Enter")', act.Press(keys="Enter")),
        ('do(action="Press Key", argument="Control+A")', act.Press(keys="Control+A")),
        ('do(action="Scroll Down")', act.Scroll(direction="down")),
        ('do(action="scroll_up", element="3")', act.Scroll(direction="up", ref=3)),
        ('do(action="Switch Tab", argument="1")', act.FocusTab(index=1)),
        ('do(action="Wait")', act.Wait()),
        ('do(action="Click At", x=10, y=-2.5)', act.ClickAt(x=10, y=-2.5)),
        ('do(action="Answer Dialog", argument="dismiss")', act.AnswerDialog(accept=False)),
        ('exit(message="42")', act.Stop(answer="42")),
        ('exit("42")', act.Stop(answer="42")),
        ("exit()", act.Stop()),
        ("exit(message=None)", act.Stop()),
        ("go_backward()", act.Back()),
        ("go_forward()", act.Forward()),
        ('I will click Save.\ndo(action="Click", element="7")\nThen it is done.', act.Click(ref=7)),
        ('```python\ndo(action="Click", element="7")\n```', act.Click(ref=7)),
        ('`do(action="Click", element="7")`', act.Click(ref=7)),
        ('Action: do(action="Click", element="7")', act.Click(ref=7)),
        ('do(action="Click", element="7")\ndo(action="Click", element="8")', act.Click(ref=7)),
    ],
)
def test_program_style_reads(text: str, expected: Action) -> None:
    assert PROGRAM.parse(text).action == expected


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no action found"),
        ("I cannot do(this)", "no action found"),
        ("do()", "action is missing"),
        ('do(action="Fly", element="7")', "no action 'fly'"),
        ('do(action="Click")', "element is missing"),
        ('do(action="Click", element="Save")', "element must be a number"),
        ('do(action="Click", element="7", element="8")', "given twice"),
        ('do(action="Click", element="7", colour="red")', "colour does not belong"),
        ('do("Click", "7")', "needs its name"),
        ('do(action="Type", argument="say "hi"", element="7")', "backslash"),
        ('do(action="Type", argument="abc", element="7"', "not closed"),
        ('do(action="Type", argument="abc', "not closed"),
        ('do(action="Type", argument="a" + "b", element="7")', "not closed"),
        ('do(action="Type", argument=open("x").read(), element="7")', "not closed"),
        ('do(action="Click", element=__import__("os"))', "not closed"),
        ('do(action="Click At", x=1e999, y=1)', "x must be a number"),
        ('do(action="Click At", x="nan", y=1)', "x must be a number"),
        ('do(action="Click", element="7", count=9)', "count must be"),
        ('do(action="Fly")\ndo(action="Click", element="7")', "no action 'fly'"),
        ('# do(action="Click", element="7")', "no action found"),
        ('The page says: do(action="Click", element="7")', "no action found"),
        ('<think>\ndo(action="Click", element="7")\n</think>', "no action found"),
        ('<think>\ndo(action="Click", element="7")', "no action found"),
    ],
)
def test_program_style_refuses(text: str, fault: str) -> None:
    with pytest.raises(ParseError, match=fault):
        PROGRAM.parse(text)


def test_program_style_keeps_comments_as_notes() -> None:
    text = '# Element: the Save button\n# Note: total is 3 < 4\n# aside\ndo(action="Click", element="7")\n# Note: late'
    assert PROGRAM.parse(text).notes == ("Element: the Save button", "Note: total is 3 < 4")


PHRASE = "In summary, the next action I will perform is"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Thinking. {PHRASE} ```click [7]```", act.Click(ref=7)),
        (f"{PHRASE}:\n```\nclick [7]\n```", act.Click(ref=7)),
        (f"{PHRASE} ```text\nclick [ 7 ]\n```", act.Click(ref=7)),
        (f"{PHRASE} click [7]", act.Click(ref=7)),
        ("Some words ```click [7]```", act.Click(ref=7)),
        ("click [7]", act.Click(ref=7)),
        ("I go back.\ngo_back\n", act.Back()),
        (f"{PHRASE} ```click [7] the Save button```", act.Click(ref=7)),
        (f"{PHRASE} ```type [7] [hello] [1]```", act.Type(ref=7, text="hello", enter=True)),
        (f"{PHRASE} ```type [7] [hello]```", act.Type(ref=7, text="hello")),
        (f"{PHRASE} ```type [7] [hello] [press_enter_after=0]```", act.Type(ref=7, text="hello")),
        (f"{PHRASE} ```type [7] [a [b] c] [0]```", act.Type(ref=7, text="a [b] c")),
        (f"{PHRASE} ```type [7] [a \\] c] [0]```", act.Type(ref=7, text="a ] c")),
        (f"{PHRASE} ```type [7] [two\\nlines] [0]```", act.Type(ref=7, text="two\nlines")),
        (f"{PHRASE} ```append [7] [x] [0]```", act.Type(ref=7, text="x", clear=False)),
        (f"{PHRASE} ```type [7] [{PHRASE} ```click [1]```] [0]```", act.Type(ref=7, text=f"{PHRASE} ```click [1]```")),
        (f"{PHRASE} ```hover [7]```", act.Hover(ref=7)),
        (f"{PHRASE} ```press [Control+A]```", act.Press(keys="Control+A")),
        (f"{PHRASE} ```scroll [direction=down]```", act.Scroll(direction="down")),
        (f"{PHRASE} ```new_tab```", act.NewTab()),
        (f"{PHRASE} ```close_tab```", act.CloseTab()),
        (f"{PHRASE} ```tab_focus [2]```", act.FocusTab(index=2)),
        (f"{PHRASE} ```goto [http://a.example/?q=[1]]```", act.Goto(url="http://a.example/?q=[1]")),
        (f"{PHRASE} ```go_forward```", act.Forward()),
        (f"{PHRASE} ```stop [42]```", act.Stop(answer="42")),
        (f"{PHRASE} ```stop```", act.Stop()),
        (f"{PHRASE} ```click [7]\nclick [8]```", act.Click(ref=7)),
    ],
)
def test_id_style_reads(text: str, expected: Action) -> None:
    assert IDS.parse(text).action == expected


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no action found"),
        ("Please click [7] now", "no action found"),
        (f"{PHRASE} ```fly [7]```", "no action 'fly'"),
        (f"{PHRASE} ``````", "no action"),
        (f"{PHRASE} ```click```", "has 0 brackets"),
        (f"{PHRASE} ```hover [7] [8]```", "has 2 brackets"),
        (f"{PHRASE} ```click [Save]```", "element must be a number"),
        (f"{PHRASE} ```type [7] hello```", "has 1 brackets"),
        (f"{PHRASE} ```type [7] [hello```", "not closed"),
        (f"{PHRASE} ```type [7] [hello] [2]```", "must be 0 or 1"),
        (f"{PHRASE} ```scroll [sideways]```", "direction must be"),
        (f"{PHRASE} ```fly``` ```click [7]```", "no action 'fly'"),
        ("# Note: click [7]", "no action found"),
        (f"<think>{PHRASE} ```click [7]```</think>", "no action found"),
    ],
)
def test_id_style_refuses(text: str, fault: str) -> None:
    with pytest.raises(ParseError, match=fault):
        IDS.parse(text)


@both
def test_every_action_of_the_reference_can_be_named(language: Language) -> None:
    """A prompt that teaches an action the parser refuses would waste the policy's turns."""
    words = (
        f"{language.reference}\n{language.pixels}".lower()
        .replace('"', " ")
        .replace("[", " ")
        .replace("(", " ")
        .replace(",", " ")
    )
    for action in _one_of_each():
        name = language.show(action).partition("```")[2] or language.show(action)
        verb = name.partition('action="')[2].partition('"')[0] or name.split("(")[0].split(" ")[0].strip("`")
        first = verb.lower().split()[0]
        assert first in words.split(), f"{verb} is not in the reference"


def _one_of_each() -> list[Action]:
    return [
        act.Click(ref=1),
        act.Type(ref=1, text="a"),
        act.Type(ref=1, text="a", enter=True),
        act.Select(ref=1, option="a"),
        act.Hover(ref=1),
        act.Press(keys="Enter"),
        act.Scroll(direction="down"),
        act.Drag(ref=1, to_ref=2),
        act.Upload(ref=1, path="a"),
        act.ClickAt(x=1, y=2),
        act.DragAt(x=1, y=2, to_x=3, to_y=4),
        act.ScrollAt(x=1, y=2),
        act.Find(text="a"),
        act.Expand(group="g1"),
        act.Wait(),
        act.AnswerDialog(accept=True),
        act.Goto(url="a"),
        act.Back(),
        act.Forward(),
        act.NewTab(),
        act.CloseTab(),
        act.FocusTab(index=0),
        act.Stop(),
    ]


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_the_reference_shows_how_far_a_wheel_turns(language: Language) -> None:
    """Symptom: the reference of `program` showed neither distance, and the wheel turned by nothing."""
    (form,) = [form for form in language.forms.forms if form.action is act.ScrollAt]
    names = "|".join(slot.shape for slot in form.slots)
    written = re.sub(rf"(?<=[=\[ ])({names})(?=[,)\] ])", "7", language.shape(form))
    assert language.parse(written).action == act.ScrollAt(x=7, y=7, dx=7, dy=7), written
