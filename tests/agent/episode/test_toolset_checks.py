"""A vendor's check of a call is acknowledged only after a person has approved the action that it was asked with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.episode.policy import Turn
from agent.episode.toolsets.policy import ToolsetPolicy
from envs.core import actions as act
from envs.core.actions import ActionResult, Reason, Status
from models.base import Message
from models.tool_use import Results, SafetyCheck
from tests.agent.episode.scripted_tools import OBSERVATION, OK, TURN, ScriptedToolModel, after, proposed

CHECK = SafetyCheck("cu_sc_1", "malicious_instructions", "the page gives orders")
HERE, THERE = act.ClickAt(x=5, y=6), act.ClickAt(x=7, y=8)
ELSEWHERE = replace(OBSERVATION, url="http://shop.test/next", document="another")


def computer(*points: tuple[int, int]) -> tuple[str, dict[str, Any]]:
    """A call that clicks at *points*; the screenshot ends at 1280, 800."""
    return "computer", {"actions": [{"type": "click", "button": "left", "x": x, "y": y} for x, y in points]}


def playing(*calls: tuple[str, dict[str, Any]]) -> tuple[ToolsetPolicy, ScriptedToolModel]:
    """A policy whose model answers with *calls*, the last of them with a check, and then ends the episode."""
    model = ScriptedToolModel("openai-computer", list(calls), [("finish", {})], checks=(CHECK,))
    return ToolsetPolicy(model), model


UNASKED: dict[str, tuple[list[tuple[str, dict[str, Any]]], ActionResult | None]] = {
    "refused": ([computer((5_000, 1))], None),
    "after a refused one": ([computer((5_000, 1)), computer((7, 8))], None),
    "after a failed one": ([computer((5, 6)), computer((7, 8))], ActionResult(status=Status.FAILED, message="no")),
    "after another page was shown": ([computer((5, 6)), computer((7, 8))], OK),
}


@pytest.mark.parametrize("case", UNASKED)
def test_a_check_that_nobody_was_asked_about_begins_a_new_conversation(case: str) -> None:
    calls, result = UNASKED[case]
    policy, model = playing(*calls)
    proposal = proposed(policy, TURN)
    if result is not None:
        assert (proposal.action, proposal.checks) == (HERE, ())
        proposal = proposed(policy, after(TURN, HERE, result, ELSEWHERE if result.ok else OBSERVATION))
    assert proposal.action == act.Stop()
    (first,) = model.requests[1].history
    assert isinstance(first, Message) and "Goal: Buy tea" in first.text


def decided(turn: Turn, result: ActionResult, *points: tuple[int, int]) -> ScriptedToolModel:
    """The requests, where *result* is that of the action with the check."""
    policy, model = playing(computer(*points))
    proposal = proposed(policy, turn)
    assert proposal.action == HERE and "the page gives orders" in proposal.checks[0]
    assert proposed(policy, after(turn, HERE, result)).action == act.Stop()
    return model


@pytest.mark.parametrize("points", [[(5, 6)], [(5, 6), (5_000, 1)]], ids=["whole", "the rest is refused"])
def test_a_check_that_a_person_accepted_is_acknowledged(points: list[tuple[int, int]]) -> None:
    *_, said = decided(TURN, OK, *points).requests[1].history
    assert isinstance(said, Results)
    assert [result.acknowledged for result in said.results] == [(CHECK,)]


@pytest.mark.parametrize("reason", [Reason.DECLINED, Reason.NO_APPROVER])
def test_a_check_that_was_declined_begins_a_new_conversation(reason: Reason) -> None:
    declined = ActionResult(status=Status.BLOCKED, reason=reason, message="do not try it again")
    (first,) = decided(TURN, declined, (5, 6)).requests[1].history
    assert isinstance(first, Message) and "do not try it again" in first.text
