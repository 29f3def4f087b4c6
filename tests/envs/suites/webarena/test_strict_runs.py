"""The option `--strict-original` in a run, in its trace, and when a trace is scored again."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from envs.core.trace_store import read_trace
from envs.suites.wheel_data import WEBARENA_LITE, fetch
from tests.agent.mira_process import run_mira
from tests.envs.suites.webarena.places import Places
from tests.envs.suites.webarena.published import published

ROOT = Path(__file__).parents[4]
SHOP_TASK = "74"
"""A task of WebArena-Lite (which number to call); its answer is `N/A`, which the original compares exactly."""


def mira(*arguments: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return run_mira(*arguments, env={**os.environ, **(environ or {})})


@pytest.fixture
def lite(places: Places, tmp_path: Path) -> dict[str, str]:
    """The environment variables of a machine with the local sites and WebArena-Lite's tasks."""
    fetch(WEBARENA_LITE, tmp_path / "cache" / "mira" / "data", source=published("webarena-lite"))
    states = places.store_logins(tmp_path / "auth")
    return {**places.environ, "WA_AUTH": str(states), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.mark.browser
@pytest.mark.slow
def test_a_run_keeps_its_rules_and_a_replay_can_take_others(lite: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "answers.json"
    script.write_text(json.dumps(['# Note: the shop names no number\nexit(message="N/A.")']), encoding="utf-8")
    command = ["run", "--suite", "webarena-lite", "--tasks", SHOP_TASK, "--policy", f"scripted:{script}", "--json"]
    outcomes: dict[str, Any] = {}
    for rules in ("--strict-original", "--own-rules"):
        done = mira(*command, rules, "--out", str(tmp_path / rules), environ=lite)
        assert done.returncode == 0, done.stderr
        [outcomes[rules]] = [episode["outcome"] for episode in json.loads(done.stdout)["episodes"]]
    assert outcomes == {"--strict-original": "failure", "--own-rules": "success"}

    [path] = (tmp_path / "--strict-original").glob("*/episodes/*.jsonl")
    trace = read_trace(path)
    assert trace.header.config["strict_original"] is True
    assert trace.footer is not None and trace.footer.score is not None
    assert trace.footer.score.evidence.startswith("by the original's rules: ")

    again = [
        json.loads(mira("replay", str(path), "--yes", "--json", *rules, environ=lite).stdout)
        for rules in ([], ["--own-rules"])
    ]
    assert [replay["outcome"] for replay in again] == ["failure", "success"]


@pytest.mark.parametrize(
    ("arguments", "other"),
    [
        (["--suite", "miniwob", "--tasks", "click-button"], "the suite miniwob"),
        (["Do it", "--url", "http://127.0.0.1:9"], "an open task"),
    ],
)
def test_other_suites_have_no_original(arguments: list[str], other: str, tmp_path: Path) -> None:
    done = mira("run", *arguments, "--strict-original", "--out", str(tmp_path / "runs"))
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "mira: --strict-original is for webarena-lite, webarena, webarena-verified, webarena-verified-hard, "
        f"not for {other}"
    )
    assert not (tmp_path / "runs").exists()
