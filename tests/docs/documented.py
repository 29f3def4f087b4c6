"""Finds the commands in the documentation."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("agent", "envs", "judges", "models", "planners", "training")
SHELL = ("", "sh", "bash", "console", "text")
"""Languages of fenced blocks that may hold commands."""
_FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^(?: {4}|\t)(?! *[-*] ).*\n?)+", re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*")
_ENDS_COMMAND = frozenset({"|", "||", "&&", ";", ">", "<", "&"})


class Command(NamedTuple):
    """One command as documented."""

    place: str
    """File and line."""
    words: tuple[str, ...]


def pages() -> list[Path]:
    """Every page of documentation, without generated ones."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *_others()]


def _others() -> list[Path]:
    return [*sorted((ROOT / "examples").glob("*.md")), *sorted((ROOT / ".github").rglob("*.md"))]


def sources() -> list[Path]:
    """Programs and configurations with commands in comments."""
    return [*sorted((ROOT / "examples").glob("*.py")), *sorted((ROOT / "training/configs").glob("*.toml"))]


def block_commands(program: str) -> list[Command]:
    """The commands of *program* in code blocks of pages, docstrings of examples and comments of configurations."""
    commands = [command for path in pages() for command in _of_page(path)]
    commands += [command for path in sources() for command in _of_source(path)]
    return [command for command in commands if command.words[0] == program]


def inline_commands(program: str) -> list[Command]:
    """The commands of *program* in sentences; they may be incomplete."""
    commands = []
    for path in pages():
        text = _FENCE.sub(_blanked, path.read_text(encoding="utf-8"))
        for match in _INLINE.finditer(text):
            words = _words(match[1])
            if len(words) > 1 and words[0] == program:
                commands.append(Command(_place(path, text, match.start()), tuple(words)))
    return commands


def python_blocks(path: Path) -> list[str]:
    """The Python programs in fenced blocks of a page."""
    return [match[2] for match in _FENCE.finditer(path.read_text(encoding="utf-8")) if match[1] == "python"]


def python_programs() -> Iterator[tuple[Path, ast.Module]]:
    """The Python of pages, examples and the example package, parsed."""
    files = [*sorted((ROOT / "examples").glob("*.py")), *sorted((ROOT / "tests/data/acme/acme").glob("*.py"))]
    texts = [(path, block) for path in pages() for block in python_blocks(path)]
    for path, text in [*texts, *((path, path.read_text(encoding="utf-8")) for path in files)]:
        yield path, compile(text, str(path), "exec", flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def imported_names() -> Iterator[tuple[Path, str]]:
    """Each name of Mira that a documented program imports, with the program's path in the repository."""
    for path, tree in python_programs():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PACKAGES:
                yield from ((path.relative_to(ROOT), f"{node.module}.{alias.name}") for alias in node.names)


def _of_page(path: Path) -> Iterator[Command]:
    text = path.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        if match[1] in SHELL:
            yield from _of_block(match[2], path, text, match.start(2))
    text = _FENCE.sub(_blanked, text)
    for match in _INDENTED.finditer(text):
        yield from _of_block(match[0], path, text, match.start())


def _of_source(path: Path) -> Iterator[Command]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _of_block(ast.get_docstring(ast.parse(text)) or "", path, text, 0)
    else:
        comments = "\n".join(line.lstrip("# ") if line.startswith("#") else "" for line in text.splitlines())
        yield from _of_block(comments, path, text, 0)


def _of_block(block: str, path: Path, text: str, start: int) -> Iterator[Command]:
    joined = re.sub(r"\\\n\s*", " ", block)
    for line in joined.splitlines():
        for words in _split(_words(line)):
            yield Command(_place(path, text, start), tuple(words))


def _words(line: str) -> list[str]:
    """Shell words without comment, prompt and ellipses; empty for a line that is not a shell command."""
    if re.match(r"\s*[├└│#]", line):
        return []
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return []
    return [word for word in words if word not in ("…", "...", "$")]


def _split(words: list[str]) -> Iterator[list[str]]:
    """The simple commands of a line, without assignments before them and redirections after them."""
    command: list[str] = []
    for word in [*words, ";"]:
        if word in _ENDS_COMMAND:
            if command:
                yield command
            command = []
        elif command or not _ASSIGNMENT.fullmatch(word):
            command.append(word)


def _blanked(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _place(path: Path, text: str, offset: int) -> str:
    return f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, offset) + 1}"
