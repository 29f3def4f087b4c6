"""Which models plan and rate with compact, short and full prompts, and a run in which one model has all three roles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.config import parse_config
from agent.run.components import open_components
from agent.run.runner import run_task
from envs.core.action_languages import PROGRAM
from envs.core.actions import Action, Click, Stop, Type
from envs.core.observation import Observation
from envs.core.tasks import Milestone
from envs.core.trace_store import read_trace
from judges.base import Progress
from planners.base import Situation
from planners.compact_planner import CompactPlanner
from tests.agent.shop import Shop

OBSERVATION = Observation("http://shop.test/", "Shop", "Tea", (), (), "0" * 16, (1280, 800), (0, 0), 0)
SITUATION = Situation("Buy tea", OBSERVATION, category="shop")
PROGRESS = Progress("Buy tea", OBSERVATION, milestones=(Milestone(id="m1", text="See tea"),), z=(False,))
OPINION = {"m1": {"quote": "", "answer": "no"}}
ALL_STYLES = [
    {"when": "Plan 1: Buy tea", "answer": "compact"},
    {"when": "You plan for an agent that clicks and types", "answer": {"milestones": ["short"]}},
    {"when": "You plan for an agent", "answer": {"m1": "full"}},
    {"when": "Check: See tea", "answer": "no"},
    {"when": "You check whether an agent", "answer": {"seen": "nothing", "reached": False, "line": 0}},
    {
        "when": "You check the progress",
        "answer": {"milestones": OPINION, "current_complete": False, "next_milestone": "m1", "reason": "full"},
    },
]

TEAMS = {
    "one_small_model": (("scripted:A", "same", "same", "compact"), ("compact", "m1: no", False)),
    "one_small_general_model": (("scripted:C-0.5b", "same", "same", "auto"), ("short", "m1: no", True)),
    "a_large_planner_beside_a_small_general_policy": (
        ("scripted:C-0.5b", "scripted:B", "scripted:C-0.5b", "auto"),
        ("full", "m1: no", True),
    ),
    "one_large_model": (("scripted:A", "same", "same", "auto"), ("full", "full", True)),
    "a_large_planner_beside_a_small_policy": (("scripted:A", "scripted:B", "same", "compact"), ("full", "full", True)),
    "a_large_planner_alone": (("scripted:A", "scripted:B", "scripted:A", "compact"), ("full", "m1: no", False)),
    "a_large_planner_for_an_oracle": (("oracle", "scripted:A", "same", "auto"), ("full", "full", True)),
}


@pytest.fixture
def three_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`scripted:A`, `scripted:B` and `scripted:C-0.5b`, which answer in the style of the prompt."""
    monkeypatch.chdir(tmp_path)
    for name in ("A", "B", "C-0.5b"):
        Path(name).write_text(json.dumps(ALL_STYLES), encoding="utf-8")


@pytest.mark.usefixtures("three_models")
@pytest.mark.parametrize(("specs", "expected"), TEAMS.values(), ids=TEAMS.keys())
async def test_who_is_asked_as_a_small_model(specs: tuple[str, str, str, str], expected: tuple[str, str, bool]) -> None:
    keys = ("policy", "planner", "judge", "profile")
    config = parse_config({**dict(zip(keys, specs, strict=True)), "k": 1})
    async with open_components(config, "miniwob") as components:
        (planned,) = (await components.planner.plan(SITUATION)).milestones
        reason = (await components.rater.rate(PROGRESS)).rating.reason
        assert (planned.text, reason, components.judge is not None) == expected
        assert (components.compares is None) == (components.judge is None)


@pytest.mark.slow  # imports torch
async def test_the_embedded_model_is_always_asked_as_a_small_one() -> None:
    config = parse_config({"policy": "oracle", "planner": "embedded", "judge": "same"})
    async with open_components(config, "miniwob") as components:
        assert isinstance(components.planner, CompactPlanner)
        assert (components.judge, components.compares) == (None, None)


def _small_model(path: Path) -> str:
    """A model that plans, rates and acts in the shop, in the manner of a small one."""
    typed = 'Done: type "bob" into textbox "Name"'
    answers = {
        "Plan 2: Order for bob\nAt: /\nPage:\n": "Have bob in the field Name\nSee the thanks",
        "Check: Have bob in the field Name\nGoal: Order for bob\nAt: /\n": "no",
        f"Check: Have bob in the field Name\nGoal: Order for bob\n{typed}\n": 'yes: textbox "Name" = "bob"',
        f"Check: See the thanks\nGoal: Order for bob\n{typed}\nAt: /\n": "no",
        "Check: See the thanks\nGoal: Order for bob\n": "yes: Thank you",
    }
    actions: list[Action] = [Type(ref=1, text="bob"), Click(ref=2), Stop(answer="ordered")]
    script = [{"when": when, "answer": answer} for when, answer in answers.items()]
    path.write_text(json.dumps([*script, *map(PROGRAM.show, actions)]), encoding="utf-8")
    return f"scripted:{path}"


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_one_small_model_plans_acts_and_rates_without_a_key(shop: Shop, tmp_path: Path) -> None:
    result = await run_task(
        "Order for bob",
        shop.url,
        policy=_small_model(tmp_path / "small.json"),
        planner="same",
        judge="same",
        profile="compact",
        k=2,
        out=tmp_path / "runs",
    )
    assert shop.orders == ["who=bob"]
    trace = read_trace(tmp_path / "runs" / result.run_id / result.trace)
    assert [m.text for m in trace.plans[0].milestones] == ["Have bob in the field Name", "See the thanks"]
    assert [step.intent.rating.z for step in trace.steps] == [(False, False), (True, False), (True, True)]
    flips = [flip.evidence for step in trace.steps for flip in step.intent.rating.flips]
    assert flips == ['textbox "Name" = "bob"', "Thank you"]
    roles = [[call.role for call in step.intent.calls] for step in trace.steps]
    assert roles == [["policy"], ["rater", "rater", "policy"], ["rater", "policy"]]
    assert trace.footer is not None
    assert (result.outcome, trace.footer.judged_by, result.z) == ("unjudged", "none", (True, True))
