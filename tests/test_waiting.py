"""Tests wait for events: none sleeps, and none compares a duration with a constant."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
OF_RECORDINGS = TESTS / "data"
"""Programs that recorded traces once; no test runs them."""
SOURCES = [path for path in sorted(TESTS.rglob("*.py")) if not path.is_relative_to(OF_RECORDINGS)]
CLOCKS = {"monotonic", "perf_counter", "time"}


def _sleeps(tree: ast.AST) -> list[int]:
    """Lines with a call of `sleep`. `asyncio.sleep(0)` only gives way; a clock's own `sleep` is injected."""
    found: list[int] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sleep":
            owner, (first, *_) = node.func.value, node.args or [None]
            gives_way = isinstance(first, ast.Constant) and first.value == 0
            if isinstance(owner, ast.Name) and owner.id in ("time", "asyncio") and not gives_way:
                found.append(node.lineno)
        if isinstance(node, ast.ImportFrom) and node.module in ("time", "asyncio"):
            found += [node.lineno for alias in node.names if alias.name == "sleep"]
    return found


def _upper_bounds(tree: ast.AST) -> list[int]:
    """Lines with `clock() - began < number`."""
    found: list[int] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE):
            left = node.left
            if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Sub) and _reads_clock(left.left):
                found.append(node.lineno)
    return found


def _reads_clock(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "time"
        and node.func.attr in CLOCKS
    )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(TESTS)))
def test_a_test_waits_for_events(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert _sleeps(tree) == [], "wait for an event, or see tests/timing.py"
    assert _upper_bounds(tree) == [], "tests.timing.Bound scales with the machine"


@pytest.mark.parametrize(
    ("code", "sleeps", "bounds"),
    [
        ("await asyncio.sleep(0.1)", 1, 0),
        ("time.sleep(x)", 1, 0),
        ("from time import sleep", 1, 0),
        ("await asyncio.sleep(0)", 0, 0),
        ("await clock.sleep(30)", 0, 0),
        ("assert time.monotonic() - began < 3", 0, 1),
        ("assert time.monotonic() - began >= 3", 0, 0),
    ],
)
def test_the_search_finds(code: str, sleeps: int, bounds: int) -> None:
    tree = ast.parse(f"async def f():\n    {code}")
    assert (len(_sleeps(tree)), len(_upper_bounds(tree))) == (sleeps, bounds)
