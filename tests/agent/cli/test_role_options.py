"""`--model-deadline`, `--thinking` and `--reasoning`: for all roles or for one, stored, kept by a resume."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.cli.options import build_config
from agent.cli.role_options import role_values
from agent.config import ROLES, RunConfig, parse_config
from agent.run.run_store import RunFolder
from envs.core.actions import says_impossible
from envs.core.errors import BadInput
from tests.agent.mira_process import run_mira
from tests.agent.roles import Roles, role_of
from tests.agent.shop import Shop
from tests.models.providers.servers import misbehaving_server


def resolved(
    deadline: list[str] | None = None,
    thinking: list[str] | None = None,
    reasoning: list[str] | None = None,
    file: Path | None = None,
) -> RunConfig:
    return build_config(file, role_values(deadline, thinking, reasoning, None))


def by_role(of: Callable[[Any], Any]) -> list[Any]:
    return [of(role) for role in ROLES]


def test_one_value_for_every_role_and_others_for_single_ones() -> None:
    config = resolved(["60", "planner=300", "judge=90"], ["1024", "policy=0", "rater=auto"])
    assert ROLES == ("policy", "planner", "rater", "judge", "grounder")
    assert by_role(config.deadline_s_of) == [60.0, 300.0, 90.0, 90.0, 60.0]
    assert by_role(config.thinking_of) == [0, 1024, "auto", 1024, None]
    assert by_role(RunConfig().thinking_of) == [None, "auto", "auto", "auto", None]
    assert by_role(RunConfig().deadline_s_of) == [120.0] * 5
    pointing = resolved(["grounder=30"], ["grounder=256"])
    assert (pointing.deadline_s_of("grounder"), pointing.thinking_of("grounder")) == (30.0, 256)
    assert (pointing.model_deadline_s, pointing.thinking) == (120.0, "auto")


def test_reasoning_sets_the_same_roles() -> None:
    config = resolved(thinking=["policy=256"], reasoning=["low", "judge=xhigh", "judge=max"])
    assert by_role(config.thinking_of) == [256, "low", "max", "max", None], "the last of equal options counts"
    assert parse_config(config.resolved()) == config


def test_options_win_over_the_file_also_where_the_file_is_more_specific(tmp_path: Path) -> None:
    file = tmp_path / "mira.toml"
    thinking = 'thinking = 256\nplanner_thinking = "high"\npolicy_thinking = 4096\n'
    file.write_text(f"{thinking}model_deadline_s = 50\njudge_deadline_s = 70\n")
    assert by_role(resolved(file=file).thinking_of) == [4096, "high", 256, 256, None]
    assert by_role(resolved(file=file).deadline_s_of) == [50.0, 50.0, 70.0, 70.0, 50.0]
    assert by_role(resolved(thinking=["0"], file=file).thinking_of) == [4096, 0, 0, 0, None]
    assert by_role(resolved(["9", "rater=8"], reasoning=["planner=low"], file=file).deadline_s_of) == [
        9.0,
        9.0,
        8.0,
        9.0,
        9.0,
    ]
    assert by_role(resolved(reasoning=["planner=low"], file=file).thinking_of) == [4096, "low", 256, 256, None]


def test_policy_thinking_is_the_older_form_for_the_policy() -> None:
    assert role_values(None, None, None, "1024") == {"policy_thinking": 1024}
    assert role_values(None, ["0"], None, "1024") == {"thinking": 0, "policy_thinking": 1024}
    with pytest.raises(BadInput, match="--thinking policy=… and --policy-thinking are both given: leave one out"):
        role_values(None, ["policy=0"], None, "1024")
    with pytest.raises(BadInput, match="both given for policy"):
        role_values(None, None, ["policy=low"], "1024")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((["planer=3"], None, None), "'planer' is not a role: use policy, planner, rater, judge or grounder"),
        ((["0"], None, None), "'0' is not a number of seconds above 0"),
        ((["judge=soon"], None, None), "'soon' is not a number of seconds above 0"),
        ((None, ["300"], None), "'300' is not one of: auto, 0, 256"),
        ((None, ["planner=high"], None), "'high' is an effort, not a number of tokens: write --reasoning high"),
        ((None, None, ["1024"]), "give tokens with --thinking"),
        ((None, None, ["most"]), "'most' is not one of: none, minimal"),
        ((None, ["judge=0"], ["judge=low"]), "both given for judge: leave one out"),
        ((None, ["0"], ["low"]), "both given for planner, rater and judge"),
    ],
)
def test_a_wrong_value_is_one_line(values: tuple[Any, Any, Any], says: str) -> None:
    with pytest.raises(BadInput) as caught:
        role_values(*values, None)
    assert says in str(caught.value) and "\n" not in str(caught.value)


OPEN = ("run", "x", "--url", "http://127.0.0.1:9/", "--base-url", "http://127.0.0.1:9/v1", "--policy", "openai:gpt-4o")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--thinking", "1024"], "no model of planner, rater, judge uses a thinking budget, here 1024"),
        (
            ["--thinking", "policy=1024"],
            "policy openai:gpt-4o does not use a thinking budget, here 1024: leave it out, or",
        ),
        (["--reasoning", "planner=low", "--planner", "none"], "planner without a model does not use a thinking effort"),
        (
            ["--reasoning", "policy=low", "--policy", "embedded", "--judge", "openai:gpt-4o"],
            "policy embedded does not use a thinking effort, here low",
        ),
        (
            ["--reasoning", "judge=low", "--judge", "local:nowhere"],
            "judge local:nowhere does not use a thinking effort",
        ),
    ],
)
def test_a_model_that_cannot_think_is_refused(options: list[str], says: str, tmp_path: Path) -> None:
    done = run_mira(*OPEN, *options, "--out", tmp_path / "runs")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert says in done.stderr and not (tmp_path / "runs").exists()


@pytest.mark.browser
async def test_roles_get_their_values_and_a_resumed_run_keeps_them(shop: Shop, tmp_path: Path) -> None:
    roles = Roles("policy", 2)
    async with misbehaving_server(roles) as server:
        options = ("--reasoning", "planner=high", "--reasoning", "policy=low", "--thinking", "judge=0")
        words = ("run", "Order for bob", "--url", shop.url, "--policy", "openai:m", "--base-url", server.openai_url)
        more = ("--retry-window", "0", "--model-deadline", "90", "--model-deadline", "judge=200", "--milestones", "2")
        more = (*more, "--confirm-stop", "off")
        out = ("--out", str(tmp_path), "--json")
        broken = await asyncio.to_thread(run_mira, *words, *options, *more, *out)
        await server.gone.wait()
        await server.come_back()
        run = tmp_path / json.loads(broken.stdout)["run_id"]
        done = await asyncio.to_thread(run_mira, "resume", run, "--json")
    assert (broken.returncode, done.returncode) == (1, 0), (broken.stderr, done.stderr)
    config = RunFolder(run).read_manifest().config
    assert config.confirm_stop == "off"
    assert by_role(config.thinking_of) == ["low", "high", 0, 0, None]
    assert by_role(config.deadline_s_of) == [90.0, 90.0, 200.0, 200.0, 90.0]
    sent = {(role_of(received), received.body.get("reasoning_effort")) for received in server.requests}
    assert sent == {("policy", "low"), ("planner", "high"), ("rater", None), ("judge", None)}


@pytest.mark.browser
@pytest.mark.parametrize(
    ("answer", "judged", "code"),
    [
        ("N/A: the shop sells no bread", None, 3),
        ("N/A", {"reason": "It is not done.", "unmet": ["bread"], "success": False}, 3),
        ("there is no bread", None, 0),
    ],
)
def test_na_has_an_exit_code(shop: Shop, tmp_path: Path, answer: str, judged: Any, code: int) -> None:
    (tmp_path / "policy.json").write_text(json.dumps([f'exit(message="{answer}")']))
    (tmp_path / "judge.json").write_text(json.dumps([judged]))
    judge = "none" if judged is None else f"scripted:{tmp_path}/judge.json"
    words = ("run", "Buy bread", "--url", shop.url, "--policy", f"scripted:{tmp_path}/policy.json", "--planner", "none")
    done = run_mira(*words, "--judge", judge, "--out", tmp_path / "runs", "--json")
    (episode,) = json.loads(done.stdout)["episodes"]
    assert (done.returncode, episode["impossible"], episode["answer"]) == (code, code == 3, answer), done.stderr


@pytest.mark.parametrize(
    "answer", ["N/A", "n/a.", "N/A: no such shop", ' "N/A"', "N/A - sold out", "N/A (no button)", "`N/A`"]
)
def test_answers_that_say_impossible(answer: str) -> None:
    assert says_impossible(answer)


@pytest.mark.parametrize(
    "answer", [None, "", "no", "3 cells hold N/A", "N/A values were removed", '["N/A"]', "N/Ample"]
)
def test_answers_that_do_not(answer: str | None) -> None:
    assert not says_impossible(answer)
