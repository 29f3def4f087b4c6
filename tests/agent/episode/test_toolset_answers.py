"""How answers without calls, rejected answers and written tasks are taken by the policy of a tool set."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.episode.toolsets.policy import ToolsetPolicy
from envs.core import actions as act
from models.base import Message
from models.tool_use import Results, Toolset
from tests.agent.episode.scripted_tools import TURN, VIEW, ScriptedToolModel, proposed

REJECTED = replace(TURN, view=replace(VIEW, problems=("your answer was no action: not JSON",)))


@pytest.mark.parametrize("toolset", ["anthropic-browser", "openai-computer"])
def test_a_model_whose_prose_was_rejected_is_asked_again(toolset: Toolset) -> None:
    """Symptom: after two answers in words that do not fit `--schema`, the episode ended as an error, unasked."""
    model = ScriptedToolModel(toolset, "I looked.", "It costs 3 euros.", "Well, 3.", [("finish", {"answer": "[3]"})])
    policy = ToolsetPolicy(model)
    assert proposed(policy, TURN).action == act.Stop(answer="It costs 3 euros.")
    assert proposed(policy, REJECTED).action == act.Stop(answer="[3]")
    told = model.requests[2].history[-1]
    assert isinstance(told, Results) and told.news is not None and "not JSON" in told.news.text
    asked = model.requests[3].history[-1]
    assert isinstance(asked, Message) and "no tool call" in asked.text
