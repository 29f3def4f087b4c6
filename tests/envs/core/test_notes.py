"""Notes of the policy: how an answer writes them, and what the bounds do."""

from __future__ import annotations

import pytest

from envs.core.action_languages import IDS, PROGRAM
from envs.core.action_languages.note_lines import note_edits
from envs.core.actions import Click, Type
from envs.core.notes import NOTE_CHARS, Note, Notebook, NoteEdit, edited, edits_between

ADD = NoteEdit(None, "order 17 was paid by Ana")


def notes(*texts: str) -> tuple[Note, ...]:
    return tuple(Note(number=number, text=text) for number, text in enumerate(texts, 1))


@pytest.mark.parametrize(
    ("answer", "edits"),
    [
        ('# Note: order 17 was paid by Ana\ndo(action="Wait")', (ADD,)),
        ('do(action="Wait")\n# note : order 17 was paid by Ana', (ADD,)),
        ("I see it.\n  # Note: order 17 was paid by Ana\n```click [3]```", (ADD,)),
        ("`# Note: order 17 was paid by Ana`\nclick [3]", (ADD,)),
        ("- # Note: order 17 was paid by Ana\n- # Note: order 17 was paid by Ana", (ADD,)),
        (
            "# Note 2: open\n# Note [3]: closed\n# Note #4: lost",
            tuple(map(NoteEdit, (2, 3, 4), ("open", "closed", "lost"))),
        ),
        ("# Forget note 2\n# remove note 3: done\n# Note 4:", (NoteEdit(2, ""), NoteEdit(3, ""), NoteEdit(4, ""))),
        ("# Note: a: b # c", (NoteEdit(None, "a: b # c"),)),
    ],
)
def test_an_answer_changes_notes(answer: str, edits: tuple[NoteEdit, ...]) -> None:
    assert note_edits(answer) == edits


@pytest.mark.parametrize(
    "answer",
    [
        '<think>\n# Note: no\n</think>do(action="Wait")',
        "# Note:\n# Element: the Save button\n# Forget note\n# Notes follow\n# Notebook: x",
        "A note: nothing\nNote: nothing\n# Forget it",
    ],
    ids=["in a thought", "without text", "no comment"],
)
def test_other_lines_change_none(answer: str) -> None:
    assert note_edits(answer) == ()


def test_typed_text_is_no_note() -> None:
    action = Type(ref=1, text="list\n# Note: milk")
    answer = '# Note: bought\ndo(action="Type", argument="list\n# Note: milk", element="1")'
    assert PROGRAM.parse(answer).action == action
    assert note_edits(answer, action) == (NoteEdit(None, "bought"),)


def test_a_note_is_no_action() -> None:
    note = '# Note: [4] was do(action="Click", element="4")\n'
    assert PROGRAM.parse(note + PROGRAM.show(Click(ref=3))).action == Click(ref=3)
    assert IDS.parse(note + "click [3]").action == Click(ref=3)


def test_notes_keep_their_numbers() -> None:
    book = edited((), [NoteEdit(None, "a"), NoteEdit(None, "b"), NoteEdit(None, "c")], 20)
    assert book.notes == notes("a", "b", "c")
    book = edited(book.notes, [NoteEdit(2, ""), NoteEdit(None, "d")], 20)
    assert book == Notebook(notes=notes("a", "d", "c"))
    assert edited(book.notes, [NoteEdit(None, " a\n")], 20) == book, "a known text is not kept twice"
    assert edited((), [NoteEdit(7, "seven")], 20).notes == (Note(number=7, text="seven"),)
    assert edited((), [NoteEdit(99, "first")], 20).notes == notes("first"), "a number beyond the bound"


def test_nothing_is_lost_without_a_remark() -> None:
    full = edited((), [NoteEdit(None, str(n)) for n in range(4)], 3)
    assert full.notes == notes("0", "1", "2")
    (remark,) = full.remarks
    assert "no more than 3" in remark and remark.endswith(": 3")
    replaced = edited(full.notes, [NoteEdit(2, "new")], 3)
    assert replaced.notes == notes("0", "new", "2")
    assert replaced.remarks == ("note 2 was replaced; it said: 1",)
    assert edited((), [NoteEdit(5, "")], 3).remarks == ("there is no note 5 to remove",)
    long = edited((), [NoteEdit(None, "x" * 500)], 3)
    assert len(long.notes[0].text) == NOTE_CHARS and long.remarks == ("note 1 was cut at 400 characters",)


def test_a_secret_is_masked_before_a_note_is_cut() -> None:
    text = "x" * (NOTE_CHARS - 4) + "s3cret"
    book = edited((), [NoteEdit(None, text)], 3, lambda value: value.replace("s3cret", "<secret>KEY</secret>"))
    assert "s3" not in book.notes[0].text


@pytest.mark.parametrize("after", [("b", "a"), (), ("a",), ("a", "b", "c"), ("c", "b")])
def test_the_changes_between_two_states(after: tuple[str, ...]) -> None:
    before = notes("a", "b")
    assert edited(before, edits_between(before, notes(*after)), 20) == Notebook(notes=notes(*after))
