"""Default planner and judge of an open task, for the command, for Python and for every policy spec."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.config import load_config, parse_config
from agent.run.limits import ending_named
from agent.run.open_defaults import roles_line, with_open_defaults
from agent.run.run_store import RunFolder
from agent.run.runner import resume, run_open, run_task
from models.local.declarations import declare_style
from tests.agent.mira_process import run_mira
from tests.agent.roles import Roles
from tests.agent.shop import TICKING, Shop, config, scripted
from tests.models.providers.servers import misbehaving_server

ROOT = Path(__file__).parents[3]
SMALL, LARGE = ("reference", "state"), ("same", "same")

SPECS = [
    ("openai:gpt-4o", LARGE),
    ("gemini:gemini-2.5-pro", LARGE),
    ("vllm:http://127.0.0.1:8000/v1#Qwen/Qwen3-8B", LARGE),
    ("vllm:http://127.0.0.1:8000/v1#Qwen/Qwen3-4B", SMALL),
    ("openai:qwen2.5-coder-0.5b", SMALL),
    ("local:LARGE", LARGE),
    ("local:SMALL", SMALL),
    ("local:LARGE+SMALL", SMALL),
    ("embedded", SMALL),
    ("scripted:answers.json", SMALL),
    ("oracle", SMALL),
    ("oracle:detours", SMALL),
    ("scripted", SMALL),
    ("no such spec", SMALL),
]


@pytest.mark.parametrize(("spec", "roles"), SPECS, ids=[case[0] for case in SPECS])
def test_a_large_model_plans_and_judges_an_open_task(spec: str, roles: tuple[str, str], tmp_path: Path) -> None:
    for name, style in (("LARGE", "full"), ("SMALL", "compact")):
        (tmp_path / name).mkdir()
        declare_style(tmp_path / name, style)  # pyright: ignore[reportArgumentType]
        spec = spec.replace(name, str(tmp_path / name))
    config = with_open_defaults(parse_config({"policy": spec}))
    assert (config.planner, config.judge) == roles


EMBEDDED = ": this is a small model that knows short forms; a website needs a large one, e.g. --policy openai:gpt-4o"
ROLES_SET: list[tuple[dict[str, str], tuple[str, str], str]] = [
    ({}, ("same", "same"), "--planner none --judge none switches it off"),
    ({"planner": "none"}, ("none", "same"), "--judge none switches it off"),
    ({"judge": "none"}, ("same", "none"), "--planner none switches it off"),
    ({"planner": "none", "judge": "none"}, ("none", "none"), "policy openai:m, planner none, judge none"),
    ({"planner": "reference", "judge": "state"}, ("reference", "state"), "planner reference, judge state"),
    ({"profile": "compact"}, ("reference", "state"), "name a model with --planner and --judge"),
    ({"profile": "small"}, ("reference", "state"), "name a model with --planner and --judge"),
    ({"policy": "embedded"}, ("reference", "state"), f"planner reference, judge state{EMBEDDED}"),
    ({"policy": "embedded", "judge": "none"}, ("reference", "none"), f"planner reference, judge none{EMBEDDED}"),
    ({"profile": "large"}, ("same", "same"), "--planner none --judge none switches it off"),
]


@pytest.mark.parametrize(("roles_set", "roles", "line"), ROLES_SET, ids=[str(case[0]) for case in ROLES_SET])
def test_explicit_roles_stay_and_the_line_names_the_defaults(
    roles_set: dict[str, str], roles: tuple[str, str], line: str
) -> None:
    requested = parse_config({"policy": "openai:m", **roles_set})
    config = with_open_defaults(requested)
    assert (config.planner, config.judge) == roles
    assert line in roles_line(requested, config)
    assert with_open_defaults(config) == config


def test_what_a_file_sets_stays(tmp_path: Path) -> None:
    (tmp_path / "mira.toml").write_text('planner = "none"\n')
    config = with_open_defaults(load_config(tmp_path / "mira.toml", {"policy": "openai:m"}))
    assert (config.planner, config.judge) == ("none", "same")


def test_a_stored_configuration_does_not_change() -> None:
    stored = parse_config(parse_config({"policy": "openai:m"}).resolved())
    assert (with_open_defaults(stored).planner, with_open_defaults(stored).judge) == ("reference", "state")


@pytest.mark.parametrize(
    ("ended_by", "named"),
    [
        ("max_steps", "max_steps (30; --max-steps raises it)"),
        ("max_seconds", "max_seconds (1.5; --max-seconds raises it)"),
        ("max_tokens", "max_tokens (9; --max-tokens raises it)"),
        ("max_cost", "max_cost (0.25; --max-cost raises it)"),
        ("stop", "stop"),
        ("error", "error"),
    ],
)
def test_a_limit_is_named_with_its_value_and_its_option(ended_by: Any, named: str) -> None:
    limits = parse_config({"limits": {"max_seconds": 1.5, "max_tokens": 9, "max_cost_usd": 0.25}}).limits
    assert ending_named(ended_by, limits) == named


def mira(*words: str) -> subprocess.CompletedProcess[str]:
    return run_mira(*words)


def roles_of(run: Path) -> tuple[str, str]:
    config = RunFolder(run).read_manifest().config
    return config.planner, config.judge


@pytest.mark.browser
def test_the_first_line_warns_of_an_open_task_without_plan_and_verdict(shop: Shop, tmp_path: Path) -> None:
    shop.front = TICKING
    (tmp_path / "answers.json").write_text(json.dumps(['do(action="Wait")'] * 3))
    policy = f"scripted:{tmp_path / 'answers.json'}"
    words = ("run", "Wait", "--url", shop.url, "--policy", policy, "--max-steps", "2")
    done = mira(*words, "--out", str(tmp_path / "runs"))
    first, *rest = done.stdout.splitlines()
    assert first.startswith(f"policy {policy}, planner reference, judge state: an open task has no plan and no verdict")
    assert any("ended by max_steps (2; --max-steps raises it)" in line for line in rest)
    (trace,) = (tmp_path / "runs").glob("*/episodes/*.jsonl")
    assert "ended by max_steps (2; --max-steps raises it)" in mira("show", str(trace)).stdout


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_the_command_and_python_choose_alike_and_say_so(shop: Shop, tmp_path: Path) -> None:
    async with misbehaving_server(Roles()) as server:
        words = ("run", "Order for bob", "--url", shop.url, "--policy", "openai:m", "--base-url", server.openai_url)
        done = await asyncio.to_thread(mira, *words, "--milestones", "2", "--out", str(tmp_path / "command"))
        result = await run_task(
            "Order for bob", shop.url, policy="openai:m", base_url=server.openai_url, k=2, out=tmp_path / "python"
        )
    assert done.stdout.splitlines()[0] == (
        "policy openai:m, planner same, judge same (the default of an open task with this policy; "
        "--planner none --judge none switches it off)"
    )
    assert (done.returncode, result.outcome) == (0, "success")
    (run,) = (tmp_path / "command").iterdir()
    assert roles_of(run) == roles_of(tmp_path / "python" / result.run_id) == ("same", "same")


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_a_resumed_run_keeps_who_it_began_with(shop: Shop, tmp_path: Path) -> None:
    roles = Roles("policy", 1)
    async with misbehaving_server(roles) as server:
        alone: dict[str, Any] = {"planner": "none", "judge": "none", "base_url": server.openai_url, "retry_window_s": 0}
        broken = await run_task("Order for bob", shop.url, policy="openai:m", out=tmp_path, **alone)
        await server.gone.wait()
        await server.come_back()
        (result,) = (await resume(tmp_path / broken.run_id)).episodes
    assert (result.outcome, result.answer, roles_of(tmp_path / broken.run_id)) == ("unjudged", "ordered", ("none",) * 2)
    assert set(roles.asked) == {"policy"}


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_a_policy_from_python_is_no_model(shop: Shop, tmp_path: Path) -> None:
    run = await run_open(config(limits={"max_steps": 1}), "x", shop.url, tmp_path, policy=scripted([]))
    assert roles_of(run.folder) == SMALL
