"""`mira run` as a process: its notices and exit codes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from envs.core.trace_store import read_trace
from tests.agent.mira_process import run_mira
from tests.agent.shop import TICKING, Shop

ROOT = Path(__file__).parents[3]
BUY = 'do(action="Click", element="2")'
STOP = 'exit(message="done")'

pytestmark = pytest.mark.browser


def mira_run(shop: Shop, folder: Path, answers: list[str], *options: str) -> subprocess.CompletedProcess[str]:
    """Runs an open task with scripted answers."""
    script = folder / "answers.json"
    script.write_text(json.dumps(answers), encoding="utf-8")
    policy = f"scripted:{script}"
    return run_mira("run", "Order", "--url", shop.url, "--policy", policy, "--out", folder / "runs", *options)


@pytest.mark.parametrize(("options", "why"), [(("--json",), "--json was given"), ((), "stdin is not a terminal")])
def test_a_run_without_an_approver_says_so(shop: Shop, tmp_path: Path, options: tuple[str, ...], why: str) -> None:
    done = mira_run(shop, tmp_path, [BUY] * 9, "--approve", "submit", *options)
    assert shop.orders == []
    notices = [] if "--json" in options else ["starting Chromium"]
    declined = f"mira: approve submit: no one can be asked ({why}), so these actions are declined"
    assert done.stderr.splitlines()[: len(notices) + 1] == [*notices, declined]
    (path,) = (tmp_path / "runs").glob("*/episodes/*.jsonl")
    trace = read_trace(path)
    events = [(event.name, event.detail) for event in trace.events if event.name == "declined"]
    assert events == [("declined", f'click button "Buy": {BUY} (nobody is there to approve it)')] * 3
    messages = {step.commit.result.message for step in trace.steps if step.commit is not None}
    assert messages == {"nobody is there to approve it; do not try it again"}


def test_no_notice_of_approval_without_approve(shop: Shop, tmp_path: Path) -> None:
    assert mira_run(shop, tmp_path, [STOP], "--json").stderr.count("mira:") == 0


@pytest.mark.parametrize(
    ("answers", "options", "code"),
    [
        pytest.param([STOP], [], 0, id="stopped"),
        pytest.param([BUY] * 9, ["--approve", "submit"], 1, id="declined"),
        pytest.param([BUY, STOP], ["--approve", "submit"], 1, id="declined, then stopped", marks=pytest.mark.heavy),
        pytest.param([STOP], ["--approve", "submit"], 0, id="nothing to approve", marks=pytest.mark.heavy),
        pytest.param(["hm"] * 9, [], 1, id="never an action"),
        pytest.param(['do(action="Wait")'] * 9, ["--max-steps", "2"], 1, id="out of steps"),
    ],
)
def test_an_unjudged_open_task_is_done_only_if_the_policy_stopped(
    shop: Shop, tmp_path: Path, answers: list[str], options: list[str], code: int
) -> None:
    if "--max-steps" in options:
        shop.front = TICKING
    done = mira_run(shop, tmp_path, answers, "--json", *options)
    (episode,) = json.loads(done.stdout)["episodes"]
    assert (episode["outcome"], done.returncode) == ("unjudged", code)
    again = run_mira("resume", json.loads(done.stdout)["folder"], "--json")
    assert again.returncode == code, "resume returns the same code"


@pytest.mark.parametrize(
    ("answer", "code"), [pytest.param("done", 0, id="stopped"), pytest.param("N/A: sold out", 3, id="impossible")]
)
def test_a_branch_of_an_open_task_ends_like_a_run(shop: Shop, tmp_path: Path, answer: str, code: int) -> None:
    """Symptom: exit code 1 and no answer, although the policy had stopped."""
    mira_run(shop, tmp_path, [STOP])
    (path,) = (tmp_path / "runs").glob("*/episodes/*.jsonl")
    script = tmp_path / "branch.json"
    script.write_text(json.dumps([f'exit(message="{answer}")']), encoding="utf-8")
    branch = ("--branch", f"scripted:{script}", "--at", "1", "--out", tmp_path / "branches")
    done = run_mira("replay", path, *branch, "--yes")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, f"answer  {answer}"), done.stderr


def test_every_attempt_of_an_open_task_counts(shop: Shop, tmp_path: Path) -> None:
    """Symptom: exit code 0 if the first attempt had succeeded, and only its answer was shown."""
    answers = [STOP, 'exit(message="N/A")']
    done = mira_run(shop, tmp_path, answers, "--attempts", "2")
    assert done.stdout.splitlines()[-2:] == ["answer of attempt 1  done", "answer of attempt 2  N/A"], done.stderr
    assert done.returncode == 3


def test_a_downloaded_file_is_named(shop: Shop, tmp_path: Path) -> None:
    """Symptom: neither the result nor `mira show` or the report said that there is a file, or where."""
    shop.front = "<title>Prices</title><a href=/file>Prices</a>"
    download = 'do(action="Click", element="1")'
    done = mira_run(shop, tmp_path, [download, STOP])
    (file,) = (tmp_path / "runs").glob("*/downloads/prices.csv")
    assert f"file    {file}" in done.stdout.splitlines(), done.stderr
    run = file.parent.parent
    named = f'downloaded "prices.csv" ({file.stat().st_size} bytes)'
    (path,) = (run / "episodes").iterdir()
    assert named in " ".join(run_mira("show", path, "--wide").stdout.split())
    assert named.replace('"', "&#34;") in (run / "report.html").read_text(encoding="utf-8")
    assert json.loads(run_mira("resume", run, "--json").stdout)["downloads"] == [str(file)]


def test_steps_and_replays_name_the_element(shop: Shop, tmp_path: Path) -> None:
    """Symptom: steps named their element by number only."""
    done = mira_run(shop, tmp_path, [BUY, STOP])
    assert f'  step 1: click button "Buy"  {BUY}  (ok)' in done.stdout.splitlines()
    (path,) = (tmp_path / "runs").glob("*/episodes/*.jsonl")
    again = run_mira("replay", path, "--yes")
    assert again.stderr.startswith('starting Chromium\nstep 1: click button "Buy"  ')
    assert 'click button "Buy"' in again.stdout and BUY in again.stdout


def test_the_progress_line_names_the_declined_action(shop: Shop, tmp_path: Path) -> None:
    """Symptom: the line read `do(action="Click", element="2")  (blocked)`."""
    done = mira_run(shop, tmp_path, [BUY, STOP], "--approve", "submit")
    printed = [line.strip() for line in done.stdout.splitlines() if line.strip().startswith("step")]
    assert printed == [
        'step 1 declined: click button "Buy" (nobody is there to approve it)',
        f'step 2: stop with the answer "done"  {STOP}  (stopped)',
    ]


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        pytest.param([BUY, STOP], 0, id="the policy stopped after a declined action"),
        pytest.param([BUY] * 4, 1, id="declined actions ended it"),
    ],
)
def test_a_judge_decides_only_if_the_policy_stopped(shop: Shop, tmp_path: Path, answers: list[str], code: int) -> None:
    judge = tmp_path / "judge.json"
    judge.write_text(json.dumps([{"reason": "It is done.", "unmet": [], "success": True}] * 3), encoding="utf-8")
    options = [
        "--approve",
        "submit",
        "--planner",
        "none",
        "--judge",
        f"scripted:{judge}",
        "--config",
        str(tmp_path / "c"),
    ]
    (tmp_path / "c").write_text("retry_temperature = 0\nlimits = {max_replans = 0}\n", encoding="utf-8")
    done = mira_run(shop, tmp_path, answers, "--json", *options)
    (episode,) = json.loads(done.stdout)["episodes"]
    assert (episode["outcome"], done.returncode) == ("success", code)


@pytest.mark.parametrize("rule", ["subresources:*", "subresources:cdn.example", "cdn.example"])
def test_secrets_with_a_subresource_rule_give_a_warning(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    monkeypatch.setenv("SHOP_PW", "hunter2222")
    printed = mira_run(shop, tmp_path, [STOP], "--secret", "PW=env:SHOP_PW", "--allow", rule).stderr
    warning = "mira: a page into which a secret is typed can send it to the origins of subresources: rules"
    assert printed.splitlines().count(warning) == rule.startswith("subresources:")
