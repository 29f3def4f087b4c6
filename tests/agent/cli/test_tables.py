"""Tables fit the given width, and page text in cells cannot control the terminal."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.text import Text

from agent.cli.tables import Column, FittedTable
from agent.cli.terminal import Terminal, printable
from envs.core.actions import Click, Drag, Stop, Type
from envs.core.trace import Failure
from tests.agent.episodes import Play, write_run
from tests.agent.mira_process import run_mira

ROOT = Path(__file__).parents[3]
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31mred\r\u202egone"
"""Clears the screen, sets the title, colours by a C1 control, overwrites the line, turns the direction of text."""
CONTROLS = ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\r", "\u202e")


def printed(table: FittedTable, width: int, *, wide: bool = False) -> list[str]:
    console = Terminal(file=io.StringIO(), width=width)
    console.wide = wide
    with console.capture() as output:
        console.print(table, crop=not wide)
    return output.get().splitlines()


def plain_table() -> FittedTable:
    table = FittedTable(
        Column("episode"),
        Column("steps", right=True, drop=2),
        Column("held out\n(95 %)", right=True, drop=1),
        Column("why", wrap=12),
        title="run r",
    )
    table.row("login-user-0-a1", "3", "50% (1-99)", "it went round and round until the limit of steps was reached")
    table.section()
    table.row("all", "3", "", Text("two\nlines", "red"))
    return table


def test_a_table_with_room_has_every_column_on_one_line_a_row() -> None:
    assert printed(plain_table(), 120) == [
        "",
        "run r",
        "                          held out",
        "episode          steps      (95 %)  why",
        "─" * 96,
        "login-user-0-a1      3  50% (1-99)  it went round and round until the limit of steps was reached",
        "─" * 96,
        "all                  3              two",
        "                                    lines",
    ]


def test_a_narrow_table_wraps_long_cells_and_cuts_nothing() -> None:
    lines = printed(plain_table(), 60)
    assert max(map(cell_len, lines)) <= 60
    assert "".join(lines).count("…") == 0
    assert lines[5:8] == [
        "login-user-0-a1      3  50% (1-99)  it went round and round",
        "                                    until the limit of steps",
        "                                    was reached",
    ]


@pytest.mark.parametrize(
    ("width", "shown", "omitted"), [(44, "held out", "steps"), (34, "why", "steps, held out (95 %)")]
)
def test_columns_are_omitted_by_importance_and_named(width: int, shown: str, omitted: str) -> None:
    lines = printed(plain_table(), width)
    assert shown in " ".join(lines[:4])
    assert " ".join(" ".join(lines).split()).endswith(f"omitted for width: {omitted} (--wide shows every column)")
    assert max(map(cell_len, lines)) <= width
    assert any("login-user-0-a1" in line for line in lines), "the name of a row is complete"


def test_wide_has_every_column_whatever_the_terminal() -> None:
    assert printed(plain_table(), 20, wide=True) == printed(plain_table(), 120)


def test_a_very_narrow_terminal_folds_the_remaining_columns() -> None:
    lines = printed(plain_table(), 20)
    assert max(map(cell_len, lines)) <= 20
    assert lines[4].startswith("login-use ") and lines[5].startswith("r-0-a1 ")


def test_a_cell_of_limited_lines_ends_with_dots_unless_wide() -> None:
    table = FittedTable(Column("a"), Column("b", wrap=10, lines=2))
    table.row("x", "one two three four five six seven")
    assert printed(table, 13) == ["a  b", "─" * 13, "x  one two", "   three fou…"]
    assert printed(table, 13, wide=True)[2] == "x  one two three four five six seven"


def test_wide_characters_count_as_two_columns() -> None:
    table = FittedTable(Column("a", wrap=8), Column("b"))
    table.row("漢字漢字漢字漢字漢字", "x")
    assert printed(table, 14)[2:] == ["漢字漢字漢   x", "字漢字漢字"]


@pytest.mark.parametrize("cell", [EVIL, Text(EVIL), Text("fine\n" + EVIL, "green")], ids=["string", "text", "lines"])
def test_a_cell_cannot_control_the_terminal(cell: str | Text) -> None:
    table = FittedTable(Column("a"), title=EVIL)
    table.row(cell)
    output = "\n".join(printed(table, 80))
    assert "gone" in output and not [control for control in CONTROLS if control in output]


def test_a_console_replaces_control_characters_of_anything_printed() -> None:
    console = Terminal(file=io.StringIO(), width=80, force_terminal=True, color_system="truecolor")
    with console.capture() as output:
        console.print(Text(EVIL, "green"), EVIL)
    assert "\x1b[32m" in output.get(), "its own colours remain"
    assert not [control for control in CONTROLS if control in output.get()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\tc", "a b c"),
        ("\x1b[1m", "\\x1b[1m"),
        ("äß漢", "äß漢"),
        ("a\u200bb\u2028c", "ab c"),
        ("\x9b2J", "\\x9b2J"),
    ],
)
def test_printable(text: str, expected: str) -> None:
    assert printable(text) == expected


LONG = "A goal of many words that says what is to be done on which page and in which order, in one sentence"
STUCK = Failure(category="stuck_midway", key_step=2, reason=LONG)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs whose names, goals and policies are long, one of them hostile."""
    folder = tmp_path_factory.mktemp("runs")
    plain: dict[str, Any] = {
        "text": LONG,
        "checks": (True, True),
        "policy": "local:/a/long/path/to/a/checkpoint/of/some/phase/model",
    }
    task = "use-autocomplete-nodelay"
    actions = (Type(ref=1, text=LONG), Drag(ref=1, to_ref=2))
    write_run(
        folder / "20260101-120000-aaaaaa",
        [
            Play(task=task, seed=1, actions=actions, **plain),
            Play(task=task, seed=2, outcome="failure", failure=STUCK, checks=(True, False), text=LONG),
            Play(task=task, seed=3, outcome="unjudged", text=LONG, actions=(Click(ref=1), Stop(answer=LONG))),
        ],
    )
    evil: dict[str, Any] = {"text": EVIL, "policy": EVIL, "checks": (True, False)}
    write_run(
        folder / "20260101-120000-bbbbbb",
        [
            Play(task=task, seed=1, outcome="failure", actions=(Type(ref=1, text=EVIL), Click(ref=2)), **evil),
            Play(task=task, seed=2, **evil),
        ],
    )
    return folder


COMMANDS = [
    ["show", "{runs}"],
    ["show", "{a}"],
    ["show", "{a}/episodes/use-autocomplete-nodelay-1-a1.jsonl"],
    ["show", "{b}/episodes/use-autocomplete-nodelay-1-a1.jsonl"],
    ["tasks"],
    ["tasks", "--suite", "sites"],
    ["models"],
    ["quality", "{runs}"],
    ["compare", "{a}", "{b}"],
    ["analyze", "{runs}"],
    ["eval", "{runs}"],
    ["eval", "--arm", "a-name-that-is-rather-long-for-an-arm={a}", "--arm", "b={b}"],
    ["data", "list"],
    ["sites", "status"],
]


def mira(runs: Path, words: Sequence[str], **environment: str) -> str:
    """The output of the command on a pipe, with stderr."""
    places = {"runs": str(runs), "a": str(runs / "20260101-120000-aaaaaa"), "b": str(runs / "20260101-120000-bbbbbb")}
    env = {**{name: value for name, value in os.environ.items() if name != "COLUMNS"}, **environment}
    done = run_mira(*(word.format(**places) for word in words), env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_table_fits_80_columns_in_a_pipe(runs: Path, words: list[str]) -> None:
    output = mira(runs, words)
    assert output and max(map(cell_len, output.splitlines())) <= 80
    assert not [control for control in CONTROLS if control in output]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_lets_page_text_control_a_terminal(runs: Path, words: list[str]) -> None:
    output = mira(runs, words, FORCE_COLOR="1", COLUMNS="60")
    assert "\x1b[" in output or "no copies are running" in output, "it has its own colours"
    assert not [control for control in CONTROLS if control in output]


def test_a_narrow_list_omits_columns_and_wide_has_them_all(runs: Path) -> None:
    narrow = mira(runs, ["show", "{runs}"])
    assert narrow.count("use-autocomplete-nodelay-1-a1") == 2, "the name of a row is never cut"
    assert "omitted for width: ended by, milestones, instruction (--wide shows every column)" in " ".join(
        narrow.split()
    )
    wide = mira(runs, ["show", "{runs}", "--wide"])
    assert "omitted" not in wide and wide.count(LONG) == 3 and "ended by" in wide
