"""`show_plan = false`: milestones are checked, and nothing of the plan reaches the policy."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.episode.policy import ModelPolicy
from agent.profiles.names import OF_STYLE
from agent.run.runner import run_suite
from envs.core.action_languages import PROGRAM
from envs.core.tasks import TaskSelection
from envs.core.trace import Cause
from envs.core.trace_store import Trace, read_trace
from models.base import ChatRequest
from models.local.declarations import PromptStyle
from models.providers.scripted_model import ScriptedModel
from tests.agent.shop import config

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("shared_chromium")]

CLICK = 'do(action="Click", element="2")'
WAIT = 'do(action="Wait")'
RIGHT = "RIGHT"
"""Types the user's name, which is the first milestone."""
WRONG = 'do(action="Type", argument="wrong", element="1")'
UNREADABLE = "I do not know."

TROUBLES: dict[Cause, list[str]] = {
    "loop": [RIGHT, *[CLICK] * 8],
    "stall": [
        RIGHT,
        *(f'do(action="Hover", element="{ref}")' for ref in (1, 2, 3)),
        WAIT,
        'do(action="Scroll Down")',
        WAIT,
    ],
    "milestone_lost": [RIGHT, WRONG, *[WAIT] * 8],
    "parse_error": [RIGHT, *[UNREADABLE] * 8],
}
"""Answers on login-user that call for a new plan, by its cause."""


@dataclass(frozen=True)
class Played:
    trace: Trace
    prompts: tuple[str, ...]
    """Every prompt of the policy, repairs included."""

    @property
    def causes(self) -> set[Cause]:
        return {plan.cause for plan in self.trace.plans}


async def play(out: Path, script: list[str], style: PromptStyle, **values: object) -> Played:
    async def answer(request: ChatRequest) -> str:
        reply = script[min(len(model.requests), len(script)) - 1]
        user = re.search(r'username "(.*?)"', request.messages[-1].text)
        return reply if reply != RIGHT or user is None else f'do(action="Type", argument="{user[1]}", element="1")'

    model = ScriptedModel(answer)
    run = await run_suite(
        config(limits={"max_steps": 9, "max_parse_errors": 5}, profile=OF_STYLE[style], **values),
        TaskSelection("miniwob", ("login-user",), (0,)),
        out,
        policy=ModelPolicy(model, PROGRAM, style),
    )
    texts = ("\n".join(message.text for message in request.messages) for request in model.requests)
    prompts = tuple(re.sub(r"127\.0\.0\.1:\d+", "HOST", text) for text in texts)
    return Played(read_trace(run.folder / run.episodes[0].trace), prompts)


@pytest.mark.parametrize(
    ("cause", "style"),
    [
        *(pytest.param(cause, "compact", marks=pytest.mark.heavy if cause == "stall" else ()) for cause in TROUBLES),
        ("loop", "full"),
        pytest.param("milestone_lost", "full", marks=pytest.mark.heavy),
    ],
)
async def test_a_hidden_plan_leaves_the_prompts_of_no_plan(tmp_path: Path, cause: Cause, style: PromptStyle) -> None:
    script = TROUBLES[cause]
    shown, hidden, without = await asyncio.gather(
        play(tmp_path / "shown", script, style, planner="reference"),
        play(tmp_path / "hidden", script, style, planner="reference", show_plan=False),
        play(tmp_path / "without", script, style, planner="none"),
    )
    assert cause in shown.causes, "the script does what calls for a new plan"
    assert hidden.prompts == without.prompts
    assert hidden.causes == {"initial"}
    milestones = [milestone.text for plan in hidden.trace.plans for milestone in plan.milestones]
    assert len(milestones) == 3
    assert not [text for text in milestones for prompt in hidden.prompts if text in prompt]
    ending = hidden.trace.footer
    assert ending is not None and ending.rating is not None and ending.rating.z[0], "still checked"
