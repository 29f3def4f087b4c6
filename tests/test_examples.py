"""The programs in `examples/` run as a user runs them, and print what their comments promise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.agent.mira_process import run_program

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
HELPERS = {"local_site.py"}

CASES = [
    pytest.param(
        "run_task", [], r"ended by: max_steps, steps: 2\nnames that the server received: \['Ann'\]", id="task"
    ),
    pytest.param(
        "custom_policy", [], r"answer: ordered Birch 13, steps: 4\norders .*: \[\('Ann', 'Birch 13'\)\]", id="policy"
    ),
    pytest.param("custom_checker", [], r"outcome: success, reward: 1\.0", id="checker"),
    pytest.param(
        "custom_checker", ["--model", "Cedar 15"], r"outcome: failure, reward: 0\.0", id="checker, wrong model"
    ),
    pytest.param(
        "listeners", [], r'step 1: type "Ann" into textbox "Name" -> ok[^$]*ended: unjudged by stop', id="events"
    ),
    pytest.param("tools", [], r"answer: ordered, steps: 5\norders .*: \[\('Ann', 'Birch 13'\)\]", id="tools"),
    pytest.param("structured_answer", [], r"laptop: model='Birch 13' price_eur=749\.0", id="answer"),
    pytest.param("analyse_run", [], r"stuck_midway, key step 1: [^$]*report: .*report\.html, 1 episode", id="analysis"),
    pytest.param("add_suite", [], r"(laptops/order-laptop/[048]: success, milestones 2 of 2\n){3}", id="suite"),
    pytest.param(
        "fine_tune",
        [],
        r"loss per token: [\d.]+ -> [\d.]+\nsolved [0-4] of 4",
        id="training",
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.browser
@pytest.mark.parametrize(("name", "options", "expected"), CASES)
def test_the_example_runs(name: str, options: list[str], expected: str, tmp_path: Path) -> None:
    done = run_program(EXAMPLES / f"{name}.py", "--out", tmp_path, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(expected, done.stdout), done.stdout


def test_every_example_is_run_and_listed() -> None:
    programs = {path.name for path in EXAMPLES.glob("*.py")} - HELPERS
    assert programs == {f"{case.values[0]}.py" for case in CASES}
    listed = set(re.findall(r"\((\w+\.py)\)", (EXAMPLES / "README.md").read_text(encoding="utf-8")))
    assert listed == programs | HELPERS
