"""How answers without calls, rejected answers and written tasks are taken by the policy of a tool set."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.episode.toolsets.policy import ToolsetPolicy
from envs.core import actions as act
from models.base import Message
from models.tool_use import Results, Toolset
from tests.agent.episode.scripted_tools import OK, TURN, VIEW, ScriptedToolModel, after, proposed

REJECTED = replace(TURN, view=replace(VIEW, problems=("your answer was no action: not JSON",)))


@pytest.mark.parametrize("toolset", ["anthropic-browser", "openai-computer"])
def test_a_model_whose_prose_was_rejected_is_asked_again(toolset: Toolset) -> None:
    """Symptom: after two answers in words that do not fit `--schema`, the episode ended as an error, unasked."""
    model = ScriptedToolModel(toolset, "I looked.", "It costs 3 euros.", "Well, 3.", [("finish", {"answer": "[3]"})])
    policy = ToolsetPolicy(model)
    assert proposed(policy, TURN).action == act.Stop(answer="It costs 3 euros.")
    assert proposed(policy, REJECTED).action == act.Stop(answer="[3]")
    results = model.requests[2].history[-1]
    assert isinstance(results, Results) and results.news is not None and "not JSON" in results.news.text
    asked = model.requests[3].history[-1]
    assert isinstance(asked, Message) and "no tool call" in asked.text


def test_two_written_tasks_of_one_instance_have_conversations_of_their_own() -> None:
    """Symptom: played at the same time, they ended each other's conversation at every step."""
    click, point = [("left_click", {"coordinate": [5, 6]})], act.ClickAt(x=5, y=6)
    model = ScriptedToolModel("anthropic-computer", click, click, [("finish", {})], [("finish", {})])
    policy = ToolsetPolicy(model)
    turns = [replace(TURN, task=TURN.task.model_copy(update={"written": words})) for words in ("Buy tea", "Buy milk")]
    assert [proposed(policy, turn).action for turn in turns] == [point, point]
    assert [proposed(policy, after(turn, point, OK)).action for turn in turns] == [act.Stop(), act.Stop()]
    assert [len(request.history) for request in model.requests] == [1, 1, 3, 3]
