"""Untrusted text can enter a prompt only as fenced data, which the type checker enforces."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from models.base import Message
from models.prompting.fence import CLOSE, OPEN
from models.prompting.prompt_text import fenced, fenced_lines, joined, message, number, on_one_line, page, quoted, words
from tests.timing import HANG_S

ROOT = Path(__file__).parents[3]
ROOMS = ("agent", "planners", "judges", "training")
MAKES_MESSAGES = {
    "agent/episode/short_prompts.py": 1,  # the answer of a worked example, from a profile's file
    "training/data/trajectories.py": 1,  # prompts as they were recorded
    "training/grpo/adaptive/prompts.py": 1,  # a recorded prompt with a fenced thought
    "training/grpo/examples.py": 2,  # prompts as they are in a file of examples
    "judges/short_autorater.py": 1,  # answers of the examples of this package
    "planners/short_planner.py": 1,  # answers of the examples of this package
    "training/grpo/trainer.py": 1,
    "training/serving/verify.py": 1,  # a fixed probe
}
"""Places where a message is made of a string: text of a page is fenced before."""
SENDS_ANSWERS_BACK = {"agent/episode/grounder.py": 1, "agent/episode/policy.py": 1}
"""Places where the model's own answer becomes its turn."""
CALLS_OWN = {
    "agent/episode/points.py": 1,  # the reference of the actions at points
    "agent/episode/prompts.py": 4,  # the reference of the action language: standing, of uploads, of tools, of this page
    "judges/orm.py": 1,  # the system message that the checkpoint declares
    "agent/episode/short_prompts.py": 6,  # shapes of actions; thought, control and answer of an example of a profile
    "planners/prompts.py": 1,  # examples of the package's data files
    "training/loop/curriculum/model_similarity.py": 1,  # rules with a computed number
}


@cache
def called_names() -> dict[str, Counter[str]]:
    """How often each file calls each plain name."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        calls = (node.func for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call))
        found[str(path.relative_to(ROOT))] = Counter(name.id for name in calls if isinstance(name, ast.Name))
    return found


def calls(name: str) -> dict[str, int]:
    return {path: names[name] for path, names in called_names().items() if names[name]}


def test_prompts_are_made_of_typed_text_alone() -> None:
    assert calls("Message") == MAKES_MESSAGES
    assert calls("answer_turn") == SENDS_ANSWERS_BACK
    assert calls("own") == CALLS_OWN
    assert calls("PromptText") == {}, "made by models.prompting.prompt_text"


@pytest.mark.parametrize("use", [str, format, "{}".format, "".__add__, "".join])
def test_the_text_of_a_prompt_is_never_formatted(use: Callable[[object], str]) -> None:
    with pytest.raises(TypeError):
        use(fenced("page", "x"))


UNTYPED = """
from models.prompting.prompt_text import PromptText, joined, words
def counted(name: str, count: int) -> PromptText:
    return {code}
"""
REFUSED = ["words(name)", 'words(f"the button {name}")', 'words("a" + name)', "joined(name, [])", 'joined("", [name])']
TAKEN = ['words("a" + "b")', 'words("one" if count else "two")', 'joined(", ", [words("a")])']


def test_the_type_checker_refuses_outside_text_in_a_prompt(tmp_path: Path) -> None:
    """Both lists in one run: the latter is the control."""
    for place, code in enumerate((*REFUSED, *TAKEN)):
        (tmp_path / f"case{place}.py").write_text(UNTYPED.format(code=code), encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{ROOT}"]}}', encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "-p", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        cwd=tmp_path,
    )
    refused = {place for place in range(len(REFUSED) + len(TAKEN)) if f"case{place}.py:4" in done.stdout}
    assert refused == set(range(len(REFUSED))), done.stdout + done.stderr


def test_parts_are_joined_as_they_are() -> None:
    text = joined("\n", (words("a"), number(3), fenced("page", "x\ny")))
    assert message("user", text) == Message("user", f"a\n3\n{OPEN}DATA page{CLOSE}\nx\ny\n{OPEN}END page{CLOSE}")


def test_lines_are_folded() -> None:
    assert on_one_line("a\n b\u2028c", 99).text == "a b c"
    assert on_one_line("word " * 9, 8).text == "word wo…"
    assert fenced_lines("log", ["a\nb", "c"]).text.split("\n")[1:-1] == ["a b", "c"]
    assert page(["[1] button", f"{OPEN}x"]).text == "[1] button\n⟦\\⟦x"
    assert quoted('a "b"\n\\c') == '"a \\"b\\" \\\\c"'
