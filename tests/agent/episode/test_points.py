"""Actions at points are offered only with the view and the boxes of the page."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agent.episode.points import BOXES, NOT_OFFERED, PointScale
from agent.episode.policy import ActionProposal, ModelPolicy, Turn
from agent.episode.prompts import PolicyView, compact_text, render_policy_prompt
from envs.core.action_languages import IDS, PROGRAM
from envs.core.actions import ActionResult, Click, ClickAt, DragAt, Status
from envs.core.observation import Box, Element, ElementKey, Surface
from envs.core.past_actions import PastAction
from envs.core.tasks import TaskRef
from models.prompting.fence import CLOSE, OPEN
from models.providers.scripted_model import ScriptedModel
from models.vision.coordinates import ImageFrame, Point, Size
from models.vision.pictures import picture_size
from models.vision.profiles import profile_named
from tests.agent.episode.test_prompts import OBSERVATION, VIEW
from tests.agent.episodes import png

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
DRAWN = replace(VIEW, observation=replace(OBSERVATION, viewport=(1280, 800), surfaces=(BOARD,), elements=SEEN))
PLAIN = replace(VIEW, observation=replace(OBSERVATION, surfaces=(), elements=(element(1, None),)))


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


def sees(profile: str, width: int = 1280, height: int = 800) -> PolicyView:
    """A page with a picture of a 1280 x 800 view, as a model of *profile* is shown it."""
    frame = ImageFrame(Size(1280, 800), Size(width, height), Size(width, height))
    return replace(DRAWN, points=PointScale(profile_named(profile).space, frame))


@pytest.mark.parametrize(
    ("view", "axes", "boxes"),
    [
        (sees("general", 2560, 1600), "the picture, which is 2560 wide and 1600 high", "0, 0, 100, 40"),
        (sees("qwen2.5-vl", 640, 400), "the picture, which is 640 wide and 400 high", "0, 0, 25, 10"),
        (sees("qwen3-vl"), "numbers from 0 to 1000, across from the left", "0, 0, 39, 25"),
        (sees("smolvlm"), "numbers from 0 to 1, across from the left", "0.0000, 0.0000, 0.0391, 0.0250"),
    ],
    ids=["general", "qwen2.5-vl", "qwen3-vl", "smolvlm"],
)
def test_the_prompt_of_a_model_that_sees_has_its_coordinates(view: PolicyView, axes: str, boxes: str) -> None:
    past = PastAction(ClickAt(x=640, y=200), None, ActionResult(status=Status.OK))
    _, user = render_policy_prompt("full", replace(view, history=(past,)))
    assert axes in user.text and f"[1]: {boxes}\n" in user.text
    assert view.points is not None
    x, y = view.points.frame.to_model(view.points.space, Point(640, 200))
    assert f"1. click at {x:g},{y:g}\n" in user.text


@pytest.mark.parametrize("language", [PROGRAM, IDS], ids=["program", "id"])
@pytest.mark.parametrize("most", [1, 2])
def test_answers_are_recorded_in_pixels_of_the_view(language: Language, most: int) -> None:
    """The answer in the trace is the model's; the action is converted, as are those that follow it."""
    observation = replace(DRAWN.observation, screenshot=png(1280, 800))
    turn = Turn(
        TaskRef(suite="open", name="x", seed=0), 1, 1, replace(DRAWN, language=language, observation=observation)
    )
    answer = "\n".join([language.show(DragAt(x=500, y=250, to_x=1000, to_y=0))] * most)
    model = ScriptedModel([answer])
    policy = ModelPolicy(model, language, "full", vision=profile_named("qwen3-vl"), max_actions=most)
    proposal = asyncio.run(policy.propose(turn))
    actions = (proposal.action, *(parsed.action for parsed in proposal.then))
    assert actions == (DragAt(x=640, y=200, to_x=1279.5, to_y=0),) * most
    assert proposal.raw == answer


def test_a_picture_is_sent_in_the_size_that_the_model_sees() -> None:
    observation = replace(DRAWN.observation, screenshot=png(1280, 800), marked=png(1280, 800))
    turn = Turn(TaskRef(suite="open", name="x", seed=0), 1, 1, replace(DRAWN, observation=observation))
    policy = ModelPolicy(ScriptedModel([AT]), PROGRAM, "full", vision=profile_named("qwen2.5-vl"))
    proposal = asyncio.run(policy.propose(turn))
    images = proposal.calls[0].messages[-1].images
    assert [picture_size(image.data) for image in images] == [(1288, 812)] * 2
    assert proposal.action == ClickAt(x=100 * 1280 / 1288, y=80 * 800 / 812)


def test_points_are_offered_wherever_a_picture_is_shown() -> None:
    """Also on a page without controls, which has no boxes."""
    empty = replace(PLAIN, observation=replace(PLAIN.observation, elements=(), screenshot=png(1280, 800)))
    turn = Turn(TaskRef(suite="open", name="x", seed=0), 1, 1, empty)
    policy = ModelPolicy(ScriptedModel([AT]), PROGRAM, "full", vision=profile_named("general"))
    proposal = asyncio.run(policy.propose(turn))
    text = proposal.calls[0].messages[-1].text
    assert proposal.action == ClickAt(x=100, y=80)
    assert PROGRAM.pixels in text and "Boxes:" not in text


def test_a_model_without_a_picture_answers_in_pixels_of_the_view() -> None:
    turn = Turn(TaskRef(suite="open", name="x", seed=0), 1, 1, DRAWN)
    policy = ModelPolicy(ScriptedModel([AT]), PROGRAM, "full", vision=profile_named("qwen3-vl"))
    assert asyncio.run(policy.propose(turn)).action == ClickAt(x=100, y=80)
