"""`mira run` as it is called: what it says beside its result, and its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from envs.trace_store import read_trace
from tests.agent.shop import Shop

ROOT = Path(__file__).parents[2]
BUY = 'do(action="Click", element="2")'
STOP = 'exit(message="done")'

pytestmark = pytest.mark.browser


def mira_run(shop: Shop, folder: Path, answers: list[str], *options: str) -> subprocess.CompletedProcess[str]:
    """Plays an open task by these answers."""
    script = folder / "answers.json"
    script.write_text(json.dumps(answers), encoding="utf-8")
    command = [sys.executable, "-m", "agent.cli", "run", "Order", "--url", shop.url, "--policy", f"scripted:{script}"]
    return subprocess.run(
        [*command, "--out", str(folder / "runs"), *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        cwd=ROOT,
    )


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("options", "why"), [(("--json",), "--json was given"), ((), "stdin is no terminal")])
def test_where_nobody_is_asked_it_says_so(shop: Shop, tmp_path: Path, options: tuple[str, ...], why: str) -> None:
    done = mira_run(shop, tmp_path, [BUY] * 9, "--approve", "submit", *options)
    assert shop.orders == []
    assert done.stderr.splitlines()[:1] == [
        f"mira: approve submit: nobody is there to ask ({why}), such actions are declined"
    ]
    (path,) = (tmp_path / "runs").glob("*/episodes/*.jsonl")
    trace = read_trace(path)
    events = [(event.name, event.detail) for event in trace.events if event.name == "declined"]
    assert events == [("declined", f'click button "Buy": {BUY} (nobody is there to approve it)')] * 3
    messages = {step.commit.result.message for step in trace.steps if step.commit is not None}
    assert messages == {"nobody is there to approve it; do not try it again"}


@pytest.mark.timeout(120)
def test_nothing_is_said_of_approval_where_none_is_wanted(shop: Shop, tmp_path: Path) -> None:
    assert mira_run(shop, tmp_path, [STOP], "--json").stderr.count("mira:") == 0


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("answers", "options", "code"),
    [
        pytest.param([STOP], [], 0, id="stopped"),
        pytest.param([BUY] * 9, ["--approve", "submit"], 1, id="declined"),
        pytest.param(["hm"] * 9, [], 1, id="never an action"),
        pytest.param(['do(action="Wait")'] * 9, ["--max-steps", "2"], 1, id="out of steps"),
    ],
)
def test_an_unjudged_open_task_is_done_only_where_the_policy_ended_it(
    shop: Shop, tmp_path: Path, answers: list[str], options: list[str], code: int
) -> None:
    done = mira_run(shop, tmp_path, answers, "--json", *options)
    (episode,) = json.loads(done.stdout)["episodes"]
    assert (episode["outcome"], done.returncode) == ("unjudged", code)
    resumed = [sys.executable, "-m", "agent.cli", "resume", json.loads(done.stdout)["folder"], "--json"]
    again = subprocess.run(resumed, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert again.returncode == code, "as told once more"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("rule", ["subresources:*", "subresources:cdn.example", "cdn.example"])
def test_secrets_beside_a_rule_for_subresources_are_warned_of(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    monkeypatch.setenv("SHOP_PW", "hunter2222")
    said = mira_run(shop, tmp_path, [STOP], "--secret", "PW=env:SHOP_PW", "--allow", rule).stderr
    told = "mira: a page into which a secret is typed can send it to the origins of subresources: rules"
    assert said.splitlines().count(told) == rule.startswith("subresources:")
