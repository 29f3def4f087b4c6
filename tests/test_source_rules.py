"""The rules of the sources that a parser can check: imports point down, files and functions stay short."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.timing import HANG_S

ROOT = Path(__file__).parent.parent
BELOW = {
    "envs": set[str](),
    "models": set[str](),
    "planners": {"envs", "models"},
    "judges": {"envs", "models"},
    "agent": {"envs", "models", "planners", "judges"},
    "training": {"envs", "models", "planners", "judges", "agent"},
}
SOURCES = sorted(path for package in BELOW for path in (ROOT / package).rglob("*.py"))
MAX_LINES = 500
MAX_FUNCTION_LINES = 80


def _imported_packages(tree: ast.AST) -> set[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return {name.split(".")[0] for name in names} & BELOW.keys()


def _imported_modules(tree: ast.AST, modules: set[str]) -> set[str]:
    """Those of *modules* that a file imports anywhere, also inside functions and for types only."""
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= inner & modules
            if inner - modules:
                names.add(node.module)
    return names & modules


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_source_file_keeps_the_rules(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert _imported_packages(tree) - {package} <= BELOW[package], "imports point down the list of packages only"
    assert text.count("\n") <= MAX_LINES
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno
            assert length <= MAX_FUNCTION_LINES, f"{node.name} is {length} lines long"
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name):
            assert node.exc.id != "NotImplementedError", "nothing may be a stub"


def test_modules_form_no_circle() -> None:
    """`__init__.py` files are left out: they only pass names on."""
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in SOURCES if path.name != "__init__.py"
    }
    graph = {
        name: _imported_modules(ast.parse(path.read_text(encoding="utf-8")), {*paths}) - {name}
        for name, path in paths.items()
    }
    assert sum(map(len, graph.values())) > len(graph), "imports are found"
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_the_packages_of_training_form_no_circle() -> None:
    graph: dict[str, set[str]] = {}
    for path in (ROOT / "training").rglob("*.py"):
        package = path.relative_to(ROOT / "training").parts[0]
        imported = re.findall(r"^\s*from training\.(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        graph.setdefault(package, set()).update(imported)
    for package, imported in graph.items():
        imported.discard(package)
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle
    assert order.index("data") < order.index("engine") < order.index("loop")


@pytest.mark.parametrize("package", BELOW)
def test_importing_a_package_is_light_and_silent(package: str) -> None:
    """A menu must not start a browser, load torch or print."""
    code = f"import sys, {package}; sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'playwright')))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_is_cited_can_be_got() -> None:
    """The papers are published; the specification from which the code was written is not in the repository."""
    sources = [path for package in BELOW for path in (ROOT / package).rglob("*.py")]
    read = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.py"), *sources]
    assert [str(path) for path in read if re.search(r"\bSPEC\b", path.read_text(encoding="utf-8"))] == []


TEXT_FIELDS = frozenset({"message", "detail", "note", "error"})
"""Fields that hold text for people."""
SEARCHES = frozenset({"startswith", "endswith", "find", "index", "count", "search", "match", "fullmatch", "findall"})
TEXT_SITES = {
    "envs/browser/action_executor.py": ("'interrupted'", "_INTERRUPTED", "DOWNLOAD_STARTS"),  # Playwright's errors
    "envs/browser/isolated_world.py": ("NO_CONTEXT",),  # Chromium's error over the DevTools protocol
    "envs/core/older_results.py": ("UNAPPROVED",),  # traces from before `ActionResult.reason`
    "training/data/trajectories.py": ("(None, REPEATS_NO_OP)",),  # a trace has the error of a call as text alone
}
"""Sites that may decide by a text, because the other side reports these cases by text alone."""


def _exceptions(tree: ast.AST) -> set[str]:
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}


def _is_text(node: ast.AST, exceptions: set[str], aliases: set[str]) -> bool:
    """Whether *node* is the text of a message or error, or is made from it by a method call, `or`, or assignment."""
    match node:
        case ast.Attribute(attr=attr):
            return attr in TEXT_FIELDS
        case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)]):
            return name in exceptions
        case ast.Call(func=ast.Attribute(value=value)):
            return _is_text(value, exceptions, aliases)
        case ast.BoolOp(values=values):
            return any(_is_text(value, exceptions, aliases) for value in values)
        case ast.Name(id=name):
            return name in aliases
        case _:
            return False


def _is_constant(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str(value)):
            return value != ""
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(), attr=name):
            return name.isupper()
        case ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.List(elts=parts):
            return any(_is_constant(part) for part in parts)
        case ast.JoinedStr():
            return True
        case _:
            return False


def _aliases(tree: ast.AST, exceptions: set[str]) -> set[str]:
    """Names that a text is assigned to."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.NamedExpr(ast.Name(id=name), value):
                if _is_text(value, exceptions, set()):
                    found.add(name)
            case _:
                pass
    return found


def decisions_by_text(tree: ast.AST) -> list[str]:
    """The constants that the texts of messages and errors are compared with or searched for."""
    exceptions = _exceptions(tree)
    found: list[str] = []
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in functions:
        aliases = _aliases(function, exceptions)
        for node in ast.walk(function):
            match node:
                case ast.Compare(left=left, comparators=right):
                    sides = [left, *right]
                case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args) if attr in SEARCHES:
                    sides = [value, *args]
                case _:
                    continue
            if any(_is_text(side, exceptions, aliases) for side in sides):
                found += [ast.unparse(side) for side in sides if _is_constant(side)]
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_decision_depends_on_the_text_of_a_message(path: Path) -> None:
    """`ActionResult.reason` and typed errors say why: a reworded message must change nothing."""
    allowed = TEXT_SITES.get(str(path.relative_to(ROOT)), ())
    assert [one for one in decisions_by_text(ast.parse(path.read_text(encoding="utf-8"))) if one not in allowed] == []


@pytest.mark.parametrize(
    "line",
    [
        "if result.message == 'gone': pass",
        "if 'gone' in result.message.lower(): pass",
        "if session.HUNG in result.message: pass",
        "if result.message.startswith(HUNG): pass",
        "if event.detail.endswith(('a', 'b')): pass",
        "if re.search('gone', look.note): pass",
        "if _GONE.search(call.error or ''): pass",
        "text = result.message or ''\n    if '--allow' in text: pass",
        "try: pass\n    except E as error:\n        if 'gone' in str(error): pass",
    ],
)
def test_a_decision_by_text_is_noticed(line: str) -> None:
    assert decisions_by_text(ast.parse(f"def f():\n    {line}")) != []


@pytest.mark.parametrize("line", ["if result.message: pass", "if result.status == OK: pass", "if a.message == b: pass"])
def test_other_comparisons_are_not_noticed(line: str) -> None:
    assert decisions_by_text(ast.parse(f"def f():\n    {line}")) == []
