"""The MiRA paper's own loop: a model plans, rates and labels the outcomes, over the OpenAI protocol."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.run.components import open_components
from agent.run.discover_traces import discover_traces
from envs.core.errors import BadInput
from judges.orm import OrmJudge
from models.base import ModelUnavailable
from models.embedded import embedded_dir
from tests.agent.roles import role_of
from tests.models.providers.servers import Received, Reply, misbehaving_server
from training.configs import config_file
from training.data.cache import read_trajectories
from training.loop.loop import Loop
from training.loop.rollouts import evaluation_config, models_named, rollout_config
from training.loop.settings import EvaluationSettings, LoopSettings, RolloutSettings, load_settings, parse_settings

TEACHER = {"planner": "openai:teacher", "judge": "same", "k": 2}


class Teacher:
    """A scripted teacher: two milestones, of which the first is achieved as soon as the log names a click; every second
    episode is a failure, whatever the checker says."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.prompts: list[str] = []

    def __call__(self, received: Received) -> Reply:
        role = role_of(received)
        self.asked[role] += 1
        prompt = received.body["messages"][-1]["content"]
        text = prompt if isinstance(prompt, str) else prompt[0]["text"]
        self.prompts.append(text)
        match role:
            case "planner":
                return Reply(json.dumps({"m1": "Something is clicked", "m2": "The task is done"}))
            case "rater":
                return Reply(json.dumps(_rating(received, text)))
            case "judge":
                unmet = ["the task"] if self.asked["judge"] % 2 else []
                return Reply(json.dumps({"reason": "As seen.", "unmet": unmet, "success": not unmet}))
            case "policy":
                raise AssertionError("the policy is a local checkpoint")


def _rating(received: Received, text: str) -> dict[str, Any]:
    schema = received.body["response_format"]["json_schema"]["schema"]
    inner = schema["properties"]["milestones"]
    keys = schema["$defs"][inner["$ref"].rsplit("/", 1)[1]]["properties"] if "$ref" in inner else inner["properties"]
    click = re.search(r"\bclick .*$", text, re.MULTILINE)
    answers = {key: {"quotes": [], "answer": "no"} for key in keys}
    if click is not None and "m1" in answers:
        answers["m1"] = {"quotes": [click[0]], "answer": "yes"}
    return {"milestones": answers, "current_complete": False, "next_milestone": "m2", "reason": "As seen."}


def settings(url: str) -> LoopSettings:
    values = {
        "phases": 1,
        "pool": {"names": ["click-button", "click-link"], "size": 20},
        "rollouts": {"tasks": 6, "workers": 2, "base_url": url, **TEACHER},
        "evaluation": {"names": ["click-button"], "seeds": [0], "planner": "openai:teacher"},
        "compute": {"threads": 1},
    }
    return parse_settings(values, "test")


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_one_phase_is_planned_rated_and_labelled_by_a_model(tmp_path: Path) -> None:
    teacher = Teacher()
    out = tmp_path / "run"
    async with misbehaving_server(teacher) as server:
        progress = await Loop.open(out, settings(server.openai_url), log=lambda line: None).run()
    (_, phase) = progress.phases
    traces = [file.read() for file in discover_traces([out / "phase-1" / "rollouts" / "run"])]
    assert len(traces) == 6 and {trace.footer.judged_by for trace in traces if trace.footer} == {"judge"}
    verdicts = {trace.header.episode_id: trace.footer.outcome == "success" for trace in traces if trace.footer}
    assert sum(verdicts.values()) == 3, "every second one"
    checked = {trace.footer.score.status for trace in traces if trace.footer and trace.footer.score}
    assert "success" in checked and any(
        trace.footer.score.status != trace.footer.outcome for trace in traces if trace.footer and trace.footer.score
    ), "checker and judge differ, and both are recorded"
    assert {trace.plans[0].planner for trace in traces} == {"openai:teacher"}
    episodes = read_trajectories(out / "phase-1" / "data" / "new.parquet")
    assert {one.episode_id: one.success for one in episodes} == verdicts, "the labels are the judge's"
    assert all(one.reward == float(one.success) for one in episodes)
    assert {one.milestones for one in episodes} == {2} and any(one.done[-1] == 1 for one in episodes)
    assert phase.rollouts is not None and phase.rollouts.successes == 3 and phase.rollouts.degraded == 0
    assert phase.actor_rows > 0 and (out / "phase-1" / "actor" / "model").is_dir()
    assert (out / "phase-1" / "potential" / "model").is_dir(), "it learned from the model's milestones"
    (evaluated,) = (file.read() for file in discover_traces([out / "phase-1" / "evaluation" / "run"]))
    assert evaluated.footer is not None and evaluated.footer.judged_by == "checker"
    assert evaluated.header.config["rater"] == "same"
    assert teacher.asked["planner"] == 8 and teacher.asked["judge"] == 6
    assert not any(text.startswith("Check: ") for text in teacher.prompts), "a large model gets full prompts"


@pytest.mark.parametrize(
    ("changes", "planner", "rater", "judge", "outcome"),
    [
        ({}, "reference", "state", "state", "checker"),
        ({"planner": "openai:t"}, "openai:t", "same", "state", "checker"),
        ({"planner": "openai:t", "rater": "openai:r"}, "openai:t", "openai:r", "state", "checker"),
        ({"judge": "openai:j"}, "reference", "state", "openai:j", "judge"),
        (TEACHER, "openai:teacher", "same", "same", "judge"),
    ],
)
def test_roles_of_rollouts(changes: dict[str, Any], planner: str, rater: str, judge: str, outcome: str) -> None:
    config = rollout_config(embedded_dir(), RolloutSettings.model_validate(changes), 0)
    assert (config.planner, config.rater, config.judge, config.outcome) == (planner, rater, judge, outcome)


@pytest.mark.parametrize(
    ("planner", "rollouts", "rater"),
    [
        ("none", TEACHER, "state"),
        ("reference", TEACHER, "state"),
        ("openai:teacher", TEACHER, "same"),
        ("openai:teacher", {**TEACHER, "rater": "openai:r"}, "openai:r"),
        ("openai:other", {**TEACHER, "rater": "openai:r"}, "same"),
        ("same", {}, "same"),
    ],
)
def test_the_evaluations_rater_follows_its_planner_and_its_outcome_is_the_checkers(
    planner: str, rollouts: dict[str, Any], rater: str
) -> None:
    play = RolloutSettings.model_validate(rollouts)
    config = evaluation_config(embedded_dir(), EvaluationSettings(planner=planner), play, 0)
    assert (config.rater, config.judge, config.outcome) == (rater, "state", "checker")


async def test_rater_and_judge_are_the_named_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    play = RolloutSettings(planner="openai:p", rater="openai:r", judge="openai:j")
    async with open_components(rollout_config(embedded_dir(), play, 0), "miniwob") as parts:
        assert (parts.planner.spec, parts.rater.spec) == ("openai:p", "openai:r")
        assert parts.judge is not None and parts.judge.spec == "openai:j"


@pytest.mark.parametrize("judge", ["same", "embedded", "state"])
def test_a_judge_that_cannot_label_outcomes_is_refused_before_anything_is_played(judge: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="outcome 'judge' needs a large model as judge"):
        Loop.open(tmp_path / "run", parse_settings({"rollouts": {"judge": judge}}, "test"))


async def test_a_missing_key_is_found_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    loop = Loop.open(tmp_path / "run", parse_settings({"rollouts": TEACHER}, "test"))
    with pytest.raises(ModelUnavailable):
        await loop.run()
    assert not (tmp_path / "run").exists()


def test_the_example_names_one_model_for_all_roles() -> None:
    example = load_settings(config_file("paper-loop"))
    assert models_named(example.rollouts, example.evaluation) == ("gemini:gemini-2.5-pro",)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_an_outcome_reward_model_labels_the_rollouts(tmp_path: Path) -> None:
    """It answers one word, which is the label whatever the checker says."""
    asked: list[str] = []

    def orm(received: Received) -> Reply:
        asked.append(received.body["messages"][-1]["content"])
        word = "YES" if len(asked) % 2 else "NO"
        token = {"token": word, "logprob": -0.5, "bytes": None, "top_logprobs": []}
        return Reply(word, extra={"logprobs": {"content": [token]}})

    async with misbehaving_server(orm) as server:
        values = settings(server.openai_url).model_dump(mode="json")
        values["rollouts"] |= {"planner": "reference", "judge": "orm:openai:m"}
        values["evaluation"]["planner"] = "none"
        values["targets"]["alpha"] = 0.0  # these tasks have no milestones
        out = tmp_path / "run"
        (_, phase) = (await Loop.open(out, parse_settings(values, "test"), log=lambda line: None).run()).phases
    assert len(asked) == 6 and all(text.startswith("The User Intent:\n") for text in asked)
    footers = [file.read().footer for file in discover_traces([out / "phase-1" / "rollouts" / "run"])]
    assert sorted((one.outcome, one.judged_by, round(one.verdict_score or 0, 3)) for one in footers if one) == [
        *[("failure", "judge", 0.393)] * 3,
        *[("success", "judge", 0.607)] * 3,
    ]
    assert phase.rollouts is not None and phase.rollouts.successes == 3 and phase.rollouts.degraded == 0
    episodes = read_trajectories(out / "phase-1" / "data" / "new.parquet")
    assert sum(one.success for one in episodes) == 3


async def test_an_outcome_reward_model_is_a_judge_of_rollouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    play = RolloutSettings(judge="orm:openai:m")
    assert models_named(play, EvaluationSettings()) == ("openai:m",)
    async with open_components(rollout_config(embedded_dir(), play, 0), "miniwob") as parts:
        assert isinstance(parts.judge, OrmJudge) and parts.rater.spec == "state"
