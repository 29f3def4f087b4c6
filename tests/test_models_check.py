"""`.ci/models`, `make models`: what it counts as played. A stand-in plays; `check` is the real one."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.timing import HANG_S

ROOT = Path(__file__).parents[1]
TASKS = ("click-test-2", "click-link", "click-option", "enter-text", "choose-list")
STAND_IN = """#!/usr/bin/env bash
case "$*" in
*"small_models.py fetch"*) echo model.gguf ;;
*"small_models.py serve"*) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
*"real_models play"*) file="results-$(basename "$4").json"
    if [ -e "$file" ]; then mkdir -p "$4"; cp "$file" "$4/results.json"; fi ;;
*) PYTHONPATH={root} exec {python} "$@" ;;
esac
"""
"""In place of `.venv/bin/python`: plays what is in `results-NAME.json`, or nothing."""


def played(solved: int, **changes: object) -> str:
    """A results file of the five tasks with the first *solved* of them solved."""
    fields = {"seed": 0, "ended_by": "stop", "steps": 1, "calls": {"policy": 1}, "unreadable": {}, **changes}
    numbers = dict.fromkeys(("tokens_in", "tokens_cached", "tokens_out", "model_seconds", "seconds"), 1)
    rows = [{"task": task, "success": place < solved, **fields, **numbers} for place, task in enumerate(TASKS)]
    arms = {"constrained": {"settings": {}, "rows": rows}}
    return json.dumps({"policy": "local:m", "tasks": TASKS, "max_steps": 4, "arms": arms})


@pytest.mark.parametrize(
    ("local", "served", "code", "says"),
    [
        (played(4), played(3), 0, ""),
        (played(4), played(2), 1, "llama_cpp/results.json: constrained solved 2 of 5"),
        (played(0), played(4), 1, "local/results.json: constrained solved 0 of 5"),
        (played(4), played(4, unreadable={"no action": 1}), 1, "constrained has 5 answers that could not be read"),
        (played(4), None, 2, "llama_cpp/results.json: No such file"),
        (None, None, 2, "local/results.json: No such file"),
    ],
    ids=["enough", "served-poor", "local-none", "unreadable", "one-missing", "both-missing"],
)
def test_it_fails_unless_both_runtimes_play(
    tmp_path: Path, local: str | None, served: str | None, code: int, says: str
) -> None:
    """Symptom: it succeeded with no task solved, and without any file of results."""
    for folder in (".ci", "scripts", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "models", tmp_path / ".ci" / "models")
    python = STAND_IN.replace("{root}", shlex.quote(str(ROOT))).replace("{python}", shlex.quote(sys.executable))
    for name, text in (("scripts/setup.sh", "#!/bin/sh\n"), (".venv/bin/python", python)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    for name, text in (("local", local), ("llama_cpp", served)):
        if text is not None:
            (tmp_path / f"results-{name}.json").write_text(text)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MIRA_")}
    ended = subprocess.run(
        [tmp_path / ".ci" / "models", "out"],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        env=environ,
    )
    assert ended.returncode == code, ended.stderr
    assert says in ended.stderr
    if not code:
        assert ended.stdout.splitlines() == [
            f"out/{name}/results.json: constrained: {count} of 5 solved, 5 answers, 5 s"
            for name, count in (("local", 4), ("llama_cpp", 3))
        ]


def test_every_script_of_ci_is_run_by_a_workflow_or_make() -> None:
    """Symptom: no workflow ran the real models, nor the tests of the LiteLLM adapter."""
    texts = {path.name: path.read_text() for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}
    everything = "\n".join(texts.values())
    assert "make models" in everything and ".ci/models" in (ROOT / "Makefile").read_text()
    assert ".ci/litellm" in everything
    workflow = texts["models.yml"]
    assert "workflow_dispatch" in workflow and "schedule" in workflow
    script = (ROOT / ".ci" / "litellm").read_text()
    files = [word for word in shlex.split(script, comments=True) if word.startswith("tests/")]
    assert files and all((ROOT / file).exists() for file in files)
