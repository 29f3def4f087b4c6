"""The measure of `benchmarks/claimed_milestones.py`, on reasons of recorded episodes and a prompt as it is rendered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.episode.profile_prompts import render_prompt
from agent.episode.prompts import PolicyView
from agent.profiles.profile import named
from benchmarks.claimed_milestones import claims, shown_milestone
from envs.core.action_languages import PROGRAM
from envs.core.observation import Observation
from envs.core.tasks import Milestone

SENT = "The reply to Audrey is sent"


@pytest.mark.parametrize(
    ("reason", "milestone", "claimed"),
    [
        ("Done: The reply to Audrey is sent. To do: nothing.", SENT, True),
        ("Done: the reply is sent to Audrey. To do: exit.", SENT, True),
        ("Done: Audrey's email is found. To do: The reply to Audrey is sent.", SENT, False),
        ("Still to do: The reply to Audrey is sent.", SENT, False),
        ("Done: nothing. To do: send the reply to Audrey.", SENT, False),
        ("", SENT, False),
        ("Done: nothing.", "…", False),
    ],
)
def test_a_reason_claims_the_milestone_whose_words_it_calls_done(reason: str, milestone: str, claimed: bool) -> None:
    assert claims(reason, milestone) == claimed


def test_the_milestone_is_read_from_the_prompt_of_the_policy() -> None:
    look = Observation("http://shop.test/", "Shop", "[1] button", (), (), "0" * 16, (1280, 800), (0, 0), 1)
    view = PolicyView(instruction="Reply", observation=look, language=PROGRAM)
    plan = replace(view, milestones=(Milestone(id="m1", text=SENT),), z=(False,), next_milestone=0)
    small = named("small")
    assert shown_milestone(render_prompt(small, plan)[-1].text) == SENT
    assert shown_milestone(render_prompt(small, view)[-1].text) is None
