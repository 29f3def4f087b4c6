"""Several actions in one answer, and the words before them, in both action languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.core.action_languages import IDS, LANGUAGES, PROGRAM, Language, ParseError
from envs.core.actions import Action, Click, Select, Stop, Type, Wait
from tests.envs.core.test_action_languages import ACTIONS, SHARDS

both = pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)

PROGRAM_TEXT = """\
# Thought: the form is empty
# Note: the code is 5
do(action="Type", argument="do(action=\\"Wait\\")\\ndo(", element="1")
# Element: the city
do(action="Select", argument="Oslo", element="2")

```
do(action="Click", element="3")  # sends it
```
Then I would do this:
do(action="Click", element="9")"""
ID_TEXT = """\
The form is empty. In summary, the next action I will perform is ```type [1] [stop
wait]
# Element: the city
select [2] [Oslo]
click [3] to send it
```
Then:
```click [9]```"""


@both
@given(actions=st.lists(ACTIONS, min_size=1, max_size=4))
def test_what_is_shown_line_by_line_parses_back(language: Language, actions: list[Action]) -> None:
    shown = "\n".join(map(language.show, actions))
    assert [parsed.action for parsed in language.parse_all(shown)] == actions
    assert language.parse(shown).action == actions[0]


@both
@given(text=st.lists(st.sampled_from(SHARDS), max_size=12).map("".join))
def test_any_text_gives_actions_or_a_parse_error(language: Language, text: str) -> None:
    try:
        parsed = language.parse_all(text)
    except ParseError:
        return
    assert parsed[0] == language.parse(text)


def test_actions_end_where_other_text_begins() -> None:
    first, second, third = PROGRAM.parse_all(PROGRAM_TEXT)
    assert first.action == Type(ref=1, text='do(action="Wait")\ndo(')
    assert (first.notes, first.rationale) == (("Note: the code is 5",), "the form is empty")
    assert (second.action, second.notes) == (Select(ref=2, option="Oslo"), ("Element: the city",))
    assert third.action == Click(ref=3)


def test_a_block_of_the_id_style_holds_an_action_a_line() -> None:
    first, second, third = IDS.parse_all(ID_TEXT)
    assert first.action == Type(ref=1, text="stop\nwait")
    assert first.rationale == "The form is empty."
    assert (second.action, second.notes) == (Select(ref=2, option="Oslo"), ("Element: the city",))
    assert third.action == Click(ref=3)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (PROGRAM, 'do(action="Wait")\ndo(action="Fly", element="1")'),
        (PROGRAM, 'do(action="Wait")\ndo(action="Type", argument="x'),
        (IDS, "```wait\ntype [1]```"),
    ],
)
def test_a_malformed_later_action_is_an_error_of_the_whole_answer(language: Language, text: str) -> None:
    assert language.parse(text).action == Wait()
    with pytest.raises(ParseError):
        language.parse_all(text)


@pytest.mark.parametrize(
    ("before", "rationale"),
    [
        ("", ""),
        ("# Thought: a\n# Thought: b\n", "a b"),
        ("**Thought:** buy `it`\nAction:\n```python\n", "buy it"),
        ("Reasoning: one\ntwo\n# Note: kept\n\nNext action:\n", "one two"),
        ("<think>hidden</think>shown\n", "shown"),
    ],
)
def test_the_rationale_is_what_stands_before_the_action(before: str, rationale: str) -> None:
    parsed = PROGRAM.parse(f"{before}exit()")
    assert (parsed.action, parsed.rationale) == (Stop(), rationale)
