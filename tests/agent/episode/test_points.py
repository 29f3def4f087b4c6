"""Actions at points are offered only with the view and the boxes of the page."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agent.episode.points import BOXES, NOT_OFFERED
from agent.episode.policy import ActionProposal, ModelPolicy, Turn
from agent.episode.prompts import PolicyView, compact_text, render_policy_prompt
from envs.core.action_languages import IDS, PROGRAM
from envs.core.actions import Click, ClickAt
from envs.core.observation import Box, Element, ElementKey, Surface
from envs.core.tasks import TaskRef
from models.prompting.fence import CLOSE, OPEN
from models.providers.scripted_model import ScriptedModel
from tests.agent.episode.test_prompts import LOOK, VIEW

if TYPE_CHECKING:
    from envs.core.action_languages import Language

BOARD = Surface("canvas", "Board", Box(10, 20.4, 300, 200))


def element(ref: int, box: Box | None, *, shown: bool = True) -> Element:
    return Element(ref, ElementKey("", "button", f"B{ref}", 0, "0"), "button", (), None, (), box, shown)


SEEN = (
    element(1, Box(0, 0, 50, 20)),
    element(2, Box(0, 5000, 50, 20)),
    element(3, None),
    element(4, Box(60, 0, 50, 20), shown=False),
)
DRAWN = replace(VIEW, observation=replace(LOOK, viewport=(1280, 800), surfaces=(BOARD,), elements=SEEN))
PLAIN = replace(VIEW, observation=replace(LOOK, surfaces=(), elements=(element(1, None),)))


@pytest.mark.parametrize("language", [PROGRAM, IDS], ids=["program", "id"])
def test_points_are_offered_with_view_and_boxes(language: Language) -> None:
    system, user = render_policy_prompt("full", replace(DRAWN, language=language))
    assert language.pixels in user.text and language.pixels not in system.text
    assert "the view, which is 1280 wide and 800 high" in user.text
    boxes = user.text.partition(f"{OPEN}DATA boxes{CLOSE}\n")[2].partition(f"\n{OPEN}END boxes{CLOSE}")[0]
    assert boxes.splitlines() == ['canvas "Board": 10, 20, 300, 200', "[1]: 0, 0, 50, 20"]


@pytest.mark.parametrize("language", [PROGRAM, IDS], ids=["program", "id"])
def test_points_are_not_offered_without_boxes(language: Language) -> None:
    drawn, plain = (render_policy_prompt("full", replace(view, language=language)) for view in (DRAWN, PLAIN))
    assert language.pixels not in plain[0].text + plain[1].text
    assert drawn[0] == plain[0], "the static part stays the same for a server's prefix cache"


def test_boxes_of_a_set_of_marks_are_enough() -> None:
    marked = replace(PLAIN, observation=replace(PLAIN.observation, elements=SEEN))
    assert PROGRAM.pixels in render_policy_prompt("full", marked)[1].text


def test_more_boxes_than_the_bound_are_counted() -> None:
    many = tuple(element(ref, Box(0, 0, 9, 9)) for ref in range(1, BOXES + 8))
    _, user = render_policy_prompt("full", replace(DRAWN, observation=replace(DRAWN.observation, elements=many)))
    assert "and 7 more controls in the view" in user.text


def test_a_small_model_sees_no_boxes() -> None:
    assert compact_text(DRAWN) == compact_text(PLAIN)


def played(view: PolicyView, *answers: str) -> ActionProposal:
    """The proposal of a scripted model that gives *answers* in turn."""
    turn = Turn(TaskRef(suite="open", name="x", seed=0), 1, 1, view)
    return asyncio.run(ModelPolicy(ScriptedModel([*answers]), PROGRAM, "full").propose(turn))


AT = PROGRAM.show(ClickAt(x=100, y=80))


def test_a_point_is_accepted_where_it_is_offered() -> None:
    assert played(DRAWN, AT).action == ClickAt(x=100, y=80)


def test_a_point_on_a_page_without_boxes_is_sent_back_once() -> None:
    proposal = played(PLAIN, AT, PROGRAM.show(Click(ref=1)))
    assert proposal.action == Click(ref=1)
    assert [call.error for call in proposal.calls] == [NOT_OFFERED, None]
    assert NOT_OFFERED in proposal.calls[1].messages[-1].text
