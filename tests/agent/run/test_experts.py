"""Labels of an expert for the states that a policy visits, from the browser to what fine-tuning learns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.config import RunConfig, parse_config
from agent.episode.policy import ScriptedPolicy, Turn
from agent.profiles.profile import named
from agent.results import RunResult
from agent.run.components import open_components
from agent.run.demonstrations import DemonstrationPolicy
from agent.run.experts import MAX_MISTAKES, LabelledPolicy
from agent.run.runner import run_suite
from envs.core.action_languages import PROGRAM
from envs.core.actions import Action, Back, Click, Scroll, Stop
from envs.core.errors import BadInput
from envs.core.tasks import TaskSelection
from envs.core.trace_store import Trace, read_trace
from envs.suites.sites.detours import is_harmless_link
from envs.suites.sites.golden import missing_packages
from tests.agent.episodes import Play, write_run
from tests.mira_command import mira
from training.loop.data import read_runs

SCROLL = PROGRAM.show(Scroll(direction="down"))
browser = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]


def config(**changes: Any) -> RunConfig:
    return parse_config({"expert": "oracle", "planner": "none", "judge": "state", "fsync": False, **changes}, "test")


def trace_of(run: RunResult) -> Trace:
    (episode,) = run.episodes
    return read_trace(episode.trace_path)


def test_older_traces_do_not_count_the_experts_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    older = write_run(tmp_path / "older", [Play(config={"expert": "oracle"})]).path
    alone = write_run(tmp_path / "alone", [Play()]).path
    assert mira(monkeypatch, "compare", str(older), str(alone)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "the expert's steps of 1 of 1 episodes are not counted in A: its success is not the policy's alone" in shown
    assert "are not counted in B" not in shown


class TestMiniwob:
    pytestmark = browser

    async def play(self, folder: Path, answer: str, **changes: Any) -> RunResult:
        (folder / "model.json").write_text(json.dumps([{"when": "", "answer": answer}]), encoding="utf-8")
        own = config(policy=f"scripted:{folder / 'model.json'}", limits={"max_steps": 3}, **changes)
        return await run_suite(own, TaskSelection("miniwob", ("enter-text",), (0,)), folder / "runs")

    async def test_the_policy_acts_and_the_label_is_learned(self, tmp_path: Path) -> None:
        """The policy scrolls three times. The solver would type into the field each time."""
        run = await self.play(tmp_path, SCROLL)
        steps = trace_of(run).steps
        assert [step.intent.action.kind for step in steps] == ["scroll"] * 3
        labels = [PROGRAM.parse(step.intent.label).action.kind for step in steps]
        assert labels == ["type"] * 3
        counted = run.expert_steps
        assert counted is not None and (counted.by_expert, counted.steps) == (0, 3)
        assert not any(step.intent.by_expert for step in steps)
        (trajectory,) = read_runs([run.folder], texts=True).kept
        assert trajectory.labelled and not trajectory.success
        for decision, step in zip(trajectory.decisions, steps, strict=True):
            assert decision.completion == step.intent.label and decision.tokens is None
            assert decision.action is not None and decision.action.kind == "type"
            assert decision.messages[0][0] == "system", "the prompt of the policy"

    async def test_an_unreadable_answer_and_an_early_end_are_replaced(self, tmp_path: Path) -> None:
        for number, answer in enumerate(("no action at all", 'exit("done")')):
            (tmp_path / str(number)).mkdir()
            run = await self.play(tmp_path / str(number), answer)
            assert run.episodes[0].outcome == "success", "the solver's actions were done"
            steps = trace_of(run).steps
            assert [step.intent.label for step in steps] == [PROGRAM.show(step.intent.action) for step in steps]
            assert all(step.intent.by_expert for step in steps)
            counted = run.expert_steps
            assert counted is not None and counted.by_expert == counted.steps == len(steps)
            assert run.episodes[0].expert_steps == len(steps)
            (trajectory,) = read_runs([run.folder], texts=True).kept
            asked = [messages for decision in trajectory.decisions for _, messages in decision.messages]
            assert not any("That answer holds no action" in text for text in asked), "the prompt before the repair"

    def test_every_result_says_how_many_steps_were_the_experts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The policy writes no action, and its run succeeds. Nothing used to say that the solver played."""
        monkeypatch.setenv("COLUMNS", "200")
        (tmp_path / "model.json").write_text('[{"when": "", "answer": "no action at all"}]', encoding="utf-8")
        words = ["run", "--suite", "miniwob", "--tasks", "enter-text", "--planner", "none", "--out", str(tmp_path)]

        def says(*words: str) -> str:
            assert mira(monkeypatch, *words) == 0
            return capsys.readouterr().out

        shown = says(*words, "--policy", f"scripted:{tmp_path / 'model.json'}", "--expert", "oracle")
        (run,) = (str(path.parent) for path in tmp_path.glob("*/run.json"))
        count = "2 of 2 steps were the expert's"
        assert f"{count}: the success is not the policy's alone" in shown
        for name in ("A", "B"):
            assert f"{count} in {name}: its success is not the policy's alone" in says("compare", run, run)
        assert json.loads(says("compare", run, run, "--json"))["a"]["expert"]["by_expert"] == 2
        assert f"{count}: the success is not the policy's alone" in says("eval", run)
        arms = says("eval", "--arm", f"one={run}", "--arm", f"two={run}")
        assert f"one: {count}: its success" in arms and f"two: {count}: its success" in arms
        page = Path(says("report", run).splitlines()[0])
        assert "steps were the expert&#39;s" in page.read_text(encoding="utf-8")

        assert "expert" not in says(*words[:-1], str(tmp_path / "alone"), "--policy", "oracle")

    async def test_labels_have_the_form_that_the_prompt_asks_for(self, tmp_path: Path) -> None:
        """The profile of small models asks for the control before the action, and here not for a reason."""
        run = await self.play(tmp_path, SCROLL, profile="small")
        (trajectory,) = read_runs([run.folder], texts=True).kept
        element, action = trajectory.decisions[0].completion.split("\n")
        assert element.startswith('# Element: textbox "') and PROGRAM.parse(action).action.kind == "type"
        system = trajectory.decisions[0].messages[0][1]
        assert "`# Element:`" in system and "`# Thought:`" not in system

    async def test_a_share_of_the_steps_is_the_experts(self, tmp_path: Path) -> None:
        run = await self.play(tmp_path, SCROLL, expert_share=1.0)
        assert run.episodes[0].outcome == "success"


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(bool(missing_packages("forum")), reason="the extra `sites` is not installed")
@pytest.mark.parametrize("task", ["forum-reply", "forum-topic-author"])
async def test_labels_lead_back_from_wrong_pages_of_a_site(tmp_path: Path, task: str) -> None:
    """The policy opens the first topic of every page that lists topics."""

    def wander(turn: Turn) -> Action:
        links = [element for element in turn.view.observation.elements if is_harmless_link(element)]
        topics = [link for link in links if len(link.key.name) > 15]
        return Click(ref=topics[0].ref) if topics else Stop()

    policy = DemonstrationPolicy(ScriptedPolicy(wander, PROGRAM), named("compact"))
    own = config(policy="scripted", limits={"max_steps": 40})
    run = await run_suite(own, TaskSelection("sites", (task,), (0,)), tmp_path, policy=policy)
    (episode,) = run.episodes
    assert episode.outcome == "success", episode.error
    steps = trace_of(run).steps
    labels = [PROGRAM.parse(step.intent.label).action for step in steps]
    wrong = [step for step, label in zip(steps, labels, strict=True) if step.intent.action != label]
    assert 1 <= len(wrong) <= MAX_MISTAKES and Back() in labels
    assert isinstance(labels[-1], Stop)


async def test_a_policy_of_a_vendors_tools_keeps_its_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-a-test")
    async with open_components(config(policy="anthropic-computer:claude-sonnet-5-5"), "miniwob") as components:
        assert isinstance(components.policy, LabelledPolicy) and components.needs_pictures


@pytest.mark.parametrize(
    ("suite", "policy", "problem"),
    [
        ("miniwob", "oracle", "this policy is the expert"),
        ("webarena", "embedded", "the suite webarena ships no solver"),
    ],
)
async def test_an_expert_that_cannot_label_is_one_line(suite: str, policy: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        async with open_components(config(policy=policy), suite):
            pass


async def test_labels_have_no_reasons() -> None:
    with pytest.raises(BadInput, match="leave out --rationale"):
        async with open_components(config(policy="embedded", rationale=80), "miniwob"):
            pass
