"""The example of `scripted:FILE` in docs/howto/models.md plays as the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.agent.mira_process import run_mira
from tests.docs.documented import ROOT, block_commands

PAGE = ROOT / "docs" / "howto" / "models.md"


@pytest.mark.browser
def test_the_documented_answers_solve_the_documented_tasks(tmp_path: Path) -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Answers from a file")[2]
    example = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    assert example is not None
    (tmp_path / "answers.jsonl").write_text(example[1], encoding="utf-8")
    (words,) = (command.words for command in block_commands("mira") if "scripted:answers.jsonl" in command.words)
    done = run_mira(*words[1:], "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [episode["outcome"] for episode in json.loads(done.stdout)["episodes"]] == ["success"] * 2
