"""The rules of the house that a parser can hold: imports point down, rooms stay small, nothing is left half-done."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BELOW = {
    "envs": set[str](),
    "models": set[str](),
    "planners": {"envs", "models"},
    "judges": {"envs", "models"},
    "agent": {"envs", "models", "planners", "judges"},
    "training": {"envs", "models", "planners", "judges", "agent"},
}
SOURCES = sorted(path for room in BELOW for path in (ROOT / room).rglob("*.py"))
MAX_LINES = 500
MAX_FUNCTION_LINES = 80


def _imported_rooms(tree: ast.AST) -> set[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return {name.split(".")[0] for name in names} & BELOW.keys()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_source_file_keeps_the_rules(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert _imported_rooms(tree) - {room} <= BELOW[room], "imports point down the list of rooms only"
    assert text.count("\n") <= MAX_LINES
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno
            assert length <= MAX_FUNCTION_LINES, f"{node.name} is {length} lines long"
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name):
            assert node.exc.id != "NotImplementedError", "nothing may be a stub"


def test_the_packages_of_training_form_no_circle() -> None:
    graph: dict[str, set[str]] = {}
    for path in (ROOT / "training").glob("*/*.py"):
        imported = re.findall(r"^\s*from training\.(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        graph.setdefault(path.parent.name, set()).update(imported)
    for package, imported in graph.items():
        imported.discard(package)
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("room", BELOW)
def test_importing_a_room_is_light_and_silent(room: str) -> None:
    """A menu must not start a browser, load torch or print."""
    code = f"import sys, {room}; sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'playwright')))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_is_cited_can_be_got() -> None:
    """The papers are published; the specification from which the code was written is not in the repository."""
    rooms = [path for room in BELOW for path in (ROOT / room).rglob("*.py")]
    read = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.py"), *rooms]
    assert [str(path) for path in read if re.search(r"\bSPEC\b", path.read_text(encoding="utf-8"))] == []
