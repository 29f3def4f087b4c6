"""The code has every message that docs/troubleshooting.md quotes, and the page says what to do about each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.docs.documented import PACKAGES, ROOT
from tests.mira_command import mira

PAGE = ROOT / "docs" / "troubleshooting.md"
LEAST_SHARE = 0.2
"""Share of a message that must stand in the code itself; values fill the rest."""
LEAST_CHARS = 12
_BLOCK = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)


def messages() -> list[str]:
    """The quoted messages, one a line, without the name of the program."""
    blocks = _BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    return [line.removeprefix("mira: ") for block in blocks for line in block.splitlines()]


@cache
def templates() -> tuple[tuple[str, ...], ...]:
    """The texts of the code, each as the literal parts between its values."""
    sources = [path for room in PACKAGES for path in (ROOT / room).rglob("*.py")]
    return tuple(parts for path in sources for parts in _texts(path))


def _texts(path: Path) -> Iterator[tuple[str, ...]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.JoinedStr(values=values):
                yield tuple(str(value.value) if isinstance(value, ast.Constant) else "\0" for value in values)
            case ast.Constant(value=str(text)):
                yield (text,)
            case _:
                pass


def _says(parts: tuple[str, ...], message: str) -> bool:
    """Whether *message* contains the text of *parts*, with any values in their places."""
    literal = sum(len(part) for part in parts if part != "\0")
    if literal < max(LEAST_CHARS, LEAST_SHARE * len(message)):
        return False
    return re.search("".join(".*" if part == "\0" else re.escape(part) for part in parts), message) is not None


@pytest.mark.parametrize("message", messages())
def test_the_code_has_the_message(message: str) -> None:
    assert any(_says(parts, message) for parts in templates())


def test_a_reworded_message_is_noticed() -> None:
    assert len(messages()) >= 25
    message = next(message for message in messages() if message.startswith("no Chromium found"))
    reworded = message.replace("run", "call")
    assert not any(_says(parts, reworded) for parts in templates())


def test_each_problem_has_a_message_a_cause_and_a_remedy() -> None:
    sections = _SECTION.findall(PAGE.read_text(encoding="utf-8"))
    assert len(sections) >= 15
    for heading, text in sections:
        assert _BLOCK.search(text), heading
        assert "**Cause.**" in text or "**Cause and remedy**" in text, heading
        assert "**Remedy.**" in text or "**Cause and remedy**" in text, heading


PRINTED = {
    "openai:gpt-4o needs a key": ("run", "Find it", "--url", "https://shop.example", "--policy", "openai:gpt-4o"),
    "unknown model 'my-model'": ("run", "--suite", "miniwob", "--policy", "my-model"),
    "local:Qwen/Qwen2.5-0.5B: no folder": ("run", "--suite", "miniwob", "--policy", "local:Qwen/Qwen2.5-0.5B"),
    "'shop.example' is no http": ("run", "Find it", "--url", "shop.example"),
    "'runs/nosuch' holds no run": ("resume", "runs/nosuch"),
    "no Chromium found": ("doctor",),
    "MIRA_CHROMIUM names": ("doctor",),
}
"""Beginnings of messages that are printed before a browser starts, and commands that print them."""


@pytest.mark.parametrize("begins", PRINTED)
def test_the_command_prints_the_message(
    begins: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MIRA_CHROMIUM"):
        monkeypatch.delenv(name, raising=False)
    if begins.startswith("MIRA_CHROMIUM"):
        monkeypatch.setenv("MIRA_CHROMIUM", "/nowhere/chromium")
    else:
        monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
        monkeypatch.setenv("PATH", str(tmp_path))
    assert mira(monkeypatch, *PRINTED[begins]) == 2
    (message,) = (one for one in messages() if one.startswith(begins))
    printed = capsys.readouterr().err.splitlines()[-1].removeprefix("mira: ")
    assert printed == message or (message.endswith("…") and printed.startswith(message.removesuffix("…")))
