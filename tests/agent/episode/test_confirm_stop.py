"""`confirm_stop`: a policy that stops while a milestone of its plan is open is asked again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.config import RunConfig, parse_config
from agent.episode.policy import ModelPolicy
from agent.run.components import confirms_stop
from agent.run.runner import run_suite
from envs.core.action_languages import PROGRAM
from envs.core.tasks import TaskSelection
from envs.core.trace_store import Trace, read_trace
from models.base import ChatRequest
from models.providers.scripted_model import ScriptedModel
from tests.agent.roles import Role, Roles, ordered
from tests.agent.shop import Shop, config
from tests.models.providers.servers import misbehaving_server

STOP = "exit()"
USER = "USER"
"""Types the user's name, which is the first milestone of login-user."""
TYPED = 'do(action="Type", argument="USER", element="1")'
ASKED = "not stopped: the milestone"


@dataclass(frozen=True)
class Played:
    trace: Trace
    prompts: tuple[str, ...]

    @property
    def early(self) -> list[str]:
        """Milestones that the policy was asked about."""
        return [event.detail.partition(" | ")[0] for event in self.trace.events if event.name == "early_stop"]

    @property
    def kinds(self) -> list[str]:
        return [step.intent.action.kind for step in self.trace.steps]


async def play(out: Path, script: list[str], **values: object) -> Played:
    async def answer(request: ChatRequest) -> str:
        reply = script[min(len(model.requests), len(script)) - 1]
        user = re.search(r'username "(.*?)"', request.messages[-1].text)
        return reply.replace(USER, user[1]) if user is not None else reply

    model = ScriptedModel(answer)
    chosen: dict[str, Any] = {"planner": "reference", "confirm_stop": "on", **values}
    run = await run_suite(
        config(**chosen),
        TaskSelection("miniwob", ("login-user",), (0,)),
        out,
        policy=ModelPolicy(model, PROGRAM, "full", max_actions=8),
    )
    texts = tuple("\n".join(message.text for message in request.messages) for request in model.requests)
    return Played(read_trace(run.folder / run.episodes[0].trace), texts)


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_a_stop_with_an_open_milestone_is_asked_about_once(tmp_path: Path) -> None:
    played = await play(tmp_path, [STOP])
    (milestone,) = played.early
    assert [ASKED in prompt for prompt in played.prompts] == [False, True]
    assert milestone in played.prompts[1]
    assert played.kinds == ["stop"]
    footer = played.trace.footer
    assert footer is not None and (footer.ended_by, footer.outcome) == ("stop", "failure")
    assert len([call for event in played.trace.events for call in event.calls]) == 1, "the first answer is recorded"


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_every_milestone_is_asked_about_once(tmp_path: Path) -> None:
    played = await play(tmp_path, [STOP, TYPED, STOP, STOP])
    assert len(set(played.early)) == len(played.early) == 2
    assert [ASKED in prompt for prompt in played.prompts] == [False, True, False, True]
    assert played.kinds == ["type", "stop"]


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_an_early_stop_is_a_readable_answer(tmp_path: Path) -> None:
    """It ends the row of unreadable ones, each of which is repaired once."""
    unreadable = ["I do not know."] * 2
    played = await play(tmp_path, [*unreadable, STOP, *unreadable, STOP], limits={"max_parse_errors": 2})
    footer = played.trace.footer
    assert footer is not None and footer.ended_by == "stop"
    assert [event.name for event in played.trace.events] == ["parse_error", "early_stop", "parse_error"]


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
async def test_a_stop_at_the_end_of_a_batch_waits_for_the_rating(tmp_path: Path) -> None:
    played = await play(tmp_path, [f"{TYPED}\n{STOP}", STOP, STOP])
    assert played.kinds == ["type", "stop"]
    assert len(played.prompts) == 3 and len(played.early) == 1


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
@pytest.mark.parametrize("values", [{"confirm_stop": "off"}, {"planner": "none"}, {"judge": "none"}], ids=str)
async def test_a_stop_is_carried_out_at_once(tmp_path: Path, values: dict[str, object]) -> None:
    played = await play(tmp_path, [STOP], **values)
    assert (played.early, len(played.prompts)) == ([], 1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"policy": "openai:gpt-5", "planner": "same", "judge": "same"}, True),
        ({"policy": "openai:qwen2.5-1.5b", "planner": "reference", "judge": "state"}, True),
        ({"policy": "openai:gpt-5", "planner": "same", "judge": "state"}, False),
        ({"policy": "openai:gpt-5", "planner": "same", "judge": "none"}, False),
        ({"policy": "openai:gpt-5", "planner": "same", "judge": "none", "rater": "same"}, True),
        ({"policy": "openai:gpt-5", "planner": "none", "judge": "same"}, False),
        ({"policy": "openai:gpt-5", "planner": "same", "judge": "same", "show_plan": False}, False),
        ({"policy": "embedded", "planner": "same", "judge": "same"}, False),
        ({"policy": "embedded", "planner": "same", "judge": "same", "confirm_stop": "on"}, True),
        ({"policy": "oracle", "planner": "reference", "judge": "state"}, False),
        ({"policy": "scripted", "planner": "reference", "judge": "state"}, False),
    ],
    ids=str,
)
def test_who_is_asked(values: dict[str, Any], expected: bool) -> None:
    checked: RunConfig = parse_config(values)
    assert confirms_stop(checked, "miniwob") is expected


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
@pytest.mark.parametrize("readable", [True, False], ids=["rated", "not rated"])
async def test_models_as_policy_and_rater(shop: Shop, tmp_path: Path, readable: bool) -> None:
    """The rater finds both milestones open; where its answers cannot be read, nothing is known of them."""
    garbled: dict[tuple[Role, int], str] = {} if readable else {("rater", n): "?" for n in range(1, 20)}
    async with misbehaving_server(Roles(garbled=garbled)) as server:
        result = await ordered(server, shop, tmp_path, confirm_stop="auto")
    events = [event.name for event in read_trace(result.trace_path).events]
    assert result.outcome == "success" and events.count("early_stop") == readable
