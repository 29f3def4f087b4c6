"""Text of pages and models on a terminal: no control characters, and no replacement characters for known ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli.terminal import printable, printable_lines
from envs.core.trace import Event
from tests.agent.episodes import AT, Play, write_run
from tests.mira_command import mira
from tests.timing import HANG_S

ROOT = Path(__file__).parents[3]

TEXTS = [
    pytest.param("plain é 日本 😀", "plain é 日本 😀", id="letters"),
    pytest.param("two\nlines\r\nand\ta tab", "two lines  and a tab", id="line breaks"),
    pytest.param("a\u00a0b\u2009c\u3000d", "a b c d", id="blanks of other widths"),
    pytest.param("a\u2028b\u2029c\x85d", "a b c d", id="separators"),
    pytest.param("soft\u00adhyphen, zero\u200bwidth, \ufeffmark", "softhyphen, zerowidth, mark", id="invisible"),
    pytest.param("\u202eevil\u2066", "evil", id="marks of direction"),
    pytest.param("\x1b[2Jgone\x07\x9b", "\\x1b[2Jgone\\x07\\x9b", id="control characters"),
    pytest.param("\ud800", "\\ud800", id="half a character"),
    pytest.param("\U0001fae9 \ue000", "\U0001fae9 \ue000", id="newer than this Python, and of private use"),
    pytest.param("a\ufffdb", "a\ufffdb", id="unchanged"),
    pytest.param("", "", id="empty"),
]


@pytest.mark.parametrize(("text", "shown"), TEXTS)
def test_no_replacement_character_stands_for_a_known_one(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


def test_an_answer_keeps_its_lines() -> None:
    assert printable_lines("1. a\u00a0b\n\x1b[31m2. c\n") == "1. a b\n\\x1b[31m2. c"


def test_a_terminal_without_unicode_shows_escapes() -> None:
    code = "from agent.cli.terminal import printable; print(printable('é\\n\\u2019'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        timeout=HANG_S,
        check=True,
        cwd=ROOT,
        env={"PYTHONIOENCODING": "ascii"},
    )
    assert done.stdout == b"\\xe9 \\u2019\n"


def test_a_parse_error_of_several_lines_is_shown_as_it_was(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = write_run(tmp_path / "r", [Play(outcome=None)]).trace("login-user-0-a1")
    detail = 'no action found | I\u00a0will click\nthe "Save" button\u2028now'
    with path.open("a", encoding="utf-8") as file:
        file.write(Event(step=3, name="parse_error", detail=detail, at=AT).model_dump_json() + "\n")
    assert mira(monkeypatch, "show", str(path)) == 0
    out = capsys.readouterr().out
    assert 'step 3: parse_error no action found | I will click the "Save" button now' in " ".join(out.split())
    assert "\ufffd" not in out
