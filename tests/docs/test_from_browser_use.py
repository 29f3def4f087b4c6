"""The program of docs/howto/from-browser-use.md runs, on a local page and with answers from a file."""

from __future__ import annotations

import json
import os
import re
from inspect import signature
from pathlib import Path

import pytest

from agent import EpisodeResult, Limits, RunConfig, run_task
from envs.core.settings import SessionSettings
from tests.agent.mira_process import run_program
from tests.conftest import Site
from tests.docs.documented import ROOT, python_blocks

PAGE = ROOT / "docs/howto/from-browser-use.md"
LOGIN = """<!doctype html><title>Shop</title>
<form onsubmit="document.body.textContent = 'Order 17 of ann'; return false">
<label>Password <input type="password" name="password"></label><button>Log in</button></form>"""


@pytest.mark.browser
def test_the_program_of_the_page_runs(tmp_path: Path, site: Site) -> None:
    site.pages["/"] = LOGIN
    answers = [
        'do(action="Type", argument="<secret>PASSWORD</secret>", element="1")',
        'do(action="Click", element="2")',
        'exit(message="{\\"number\\": 17}")',
    ]
    (tmp_path / "answers.json").write_text(json.dumps(answers), encoding="utf-8")
    (program,) = python_blocks(PAGE)
    for documented, local in (("https://shop.example", site.url("/")), ("openai:gpt-4o", "scripted:answers.json")):
        assert program.count(f'"{documented}"') == 1
        program = program.replace(documented, local)
    program = program.replace("policy=", 'planner="none", judge="none", policy=')
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = run_program(tmp_path / "program.py", cwd=tmp_path, env={**os.environ, "SHOP_PW": "correct horse"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "number=17"
    assert done.stdout.startswith("1 type ") and "correct horse" not in done.stdout


def test_the_names_of_the_table_exist() -> None:
    table = PAGE.read_text(encoding="utf-8").split("|---|---|\n")[1].split("\n\n")[0]
    ours = "\n".join(line.split("|")[2] for line in table.splitlines())
    known = {*signature(run_task).parameters, *RunConfig.model_fields, *Limits.model_fields}
    known |= {*SessionSettings.model_fields, "episode"}
    assert set(re.findall(r"`(\w+)=", ours)) <= known
    assert set(re.findall(r'"(\w+)":', ours)) <= known
    assert set(re.findall(r"`episode\.(\w+)`", ours)) <= set(EpisodeResult.model_fields)
    assert {"policy", "session", "secrets", "answer_schema", "screenshots", "limits", "listeners"} <= set(
        re.findall(r"(\w+)=", ours)
    )
