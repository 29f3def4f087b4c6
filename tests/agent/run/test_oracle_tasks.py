"""An oracle runs only tasks with a solver. Others are refused or left out with a message, never failed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agent.cli.options import select, solved_tasks
from agent.config import parse_config
from agent.run.runner import run_open, run_suite
from envs.core.errors import BadInput
from envs.core.tasks import TaskSelection
from envs.suites.miniwob.solvers import SOLVERS
from envs.suites.webarena.suite import task_info
from envs.suites.webarena.task import Task, UrlMatch
from tests.agent.shop import config
from tests.mira_command import mira

OPEN = ["run", "Find it", "--url", "http://127.0.0.1:9/"]


REFUSED = [
    pytest.param(["run", "--suite", "miniwob", "--tasks", "draw-circle", "--policy", "oracle"], id="no solver"),
    pytest.param(["run", "--suite", "miniwob", "--tasks", "click-test,draw-circle", "--policy", "oracle"], id="one of"),
    pytest.param(["run", "--suite", "miniwob", "--tasks", "click-test", "--policy", "oracle:detours"], id="detours"),
    pytest.param(["run", "--suite", "miniwob", "--tasks", "draw-circle", "--policy", "scripted"], id="its older name"),
    pytest.param([*OPEN, "--policy", "oracle"], id="open task"),
    pytest.param(["eval", "--play", "--suite", "miniwob", "--tasks", "draw-circle", "--policy", "oracle"], id="eval"),
]


@pytest.mark.parametrize("words", REFUSED)
def test_an_oracle_is_refused_where_there_is_no_solver(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert mira(monkeypatch, *words) == 2
    output = capsys.readouterr()
    assert "solver" in output.err and output.err.count("\n") == 1 and output.out == ""
    assert list(tmp_path.iterdir()) == [], "nothing was played"


@pytest.mark.parametrize("policy", ["oracle", "oracle:detours"])
async def test_python_is_refused_alike(policy: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="solver"):
        await run_suite(config(policy=policy), TaskSelection("miniwob", ("draw-circle",), (0,)), tmp_path)
    with pytest.raises(BadInput, match="an open task has no solver"):
        await run_open(config(policy=policy), "x", "http://127.0.0.1:9/", tmp_path)
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - iterdir is not for async functions


def test_tasks_of_a_suite_without_a_solver_are_left_out_with_a_message(
    capsys: pytest.CaptureFixture[str],
) -> None:
    every = select("miniwob", (), (0, 1))
    played = solved_tasks(every, parse_config({"policy": "oracle"}), named=False)
    assert set(played.names) == set(every.names) & set(SOLVERS) and played.seeds == (0, 1)
    output = capsys.readouterr().err
    assert f"left out: {len(every.names) - len(played.names)} of {len(every.names)} tasks" in output
    assert "ascending-numbers" in output and "more" in output


@pytest.mark.parametrize(
    ("suite", "policy"), [("miniwob", "embedded"), ("miniwob", "openai:m"), ("sites", "oracle"), ("sites", "embedded")]
)
def test_no_task_is_left_out_if_all_have_a_solver(suite: str, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    every = select(suite, (), (0,))
    assert solved_tasks(every, parse_config({"policy": policy}), named=False) == every
    assert capsys.readouterr().err == ""


def tasks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], suite: str
) -> dict[str, dict[str, object]]:
    assert mira(monkeypatch, "tasks", "--suite", suite, "--json") == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


def test_the_list_of_tasks_shows_solvers_and_requirements(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    miniwob = tasks(monkeypatch, capsys, "miniwob")
    assert {name for name, row in miniwob.items() if row["oracle"]} == set(SOLVERS) & set(miniwob)
    assert (miniwob["login-user"]["milestones"], miniwob["login-user"]["needs"]) == (3, "")
    assert not miniwob["draw-circle"]["oracle"]
    sites = tasks(monkeypatch, capsys, "sites")
    assert {(row["oracle"], row["milestones"], row["needs"]) for row in sites.values()} == {(True, 4, "extra sites")}


def test_properties_that_all_tasks_share_are_printed_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mira(monkeypatch, "tasks", "--suite", "sites") == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.endswith("checker yes, milestones 4, oracle yes, needs extra sites")
    assert mira(monkeypatch, "tasks") == 0
    out = capsys.readouterr().out
    assert "oracle" in out.splitlines()[1] and "milestones" in out.splitlines()[1]


def test_a_webarena_task_names_the_variables_of_its_sites() -> None:
    task = Task(
        id=7,
        sites=("shopping", "map", "shopping"),
        start_urls=("__SHOPPING__",),
        intent="Find it",
        template_id=1,
        checks=(UrlMatch(urls=("__MAP__",)),),
    )
    info = task_info(task)
    assert (info.needs, info.oracle, info.milestones) == ("WA_SHOPPING, WA_MAP", False, 0)
