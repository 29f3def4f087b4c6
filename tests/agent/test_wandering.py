"""The policy that only looks around."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.policy import PastAction, Turn
from agent.prompts import PolicyView
from agent.wandering import Wandering
from envs.actions import Action, Back, Click, Wait
from envs.languages import PROGRAM
from envs.observation import Element, ElementKey, Observation
from envs.tasks import TaskRef

ONWARD = (("link", "News", ()), ("link", "Events", ()), ("button", "Catalog", ("collapsed",)), ("tab", "Promote", ()))
NEVER = (
    ("link", "Log out", ()),
    ("link", "Delete this page", ()),
    ("link", "", ()),
    ("link", "Old", ("disabled",)),
    ("button", "Save", ()),
    ("button", "Export", ("collapsed",)),
    ("tab", "Content", ("selected",)),
    ("textbox", "Title", ()),
)
Control = tuple[str, str, tuple[str, ...]]


def turn(controls: tuple[Control, ...], *, step: int = 1, past: tuple[PastAction, ...] = ()) -> Turn:
    elements = tuple(
        Element(ref, ElementKey("", role, name, 0, "0" * 8), "a", states, None, (), None, True)
        for ref, (role, name, states) in enumerate(controls, 1)
    )
    page = Observation("http://a/", "", "", elements, (), "0" * 16, (160, 210), (0, 0), len(elements))
    view = PolicyView(instruction="Look around", observation=page, language=PROGRAM)
    return Turn(TaskRef(suite="sites", name="shop-order", seed=0), 1, step, view, past)


async def chosen(asked: Turn) -> Action:
    action = (await Wandering(PROGRAM).propose(asked)).action
    assert action is not None
    return action


async def test_it_follows_what_leads_on_and_nothing_that_does_something() -> None:
    seen = {await chosen(turn((*NEVER, *ONWARD), step=step)) for step in range(1, 80)}
    assert seen == {Click(ref=ref) for ref in range(len(NEVER) + 1, len(NEVER) + len(ONWARD) + 1)}


async def test_what_was_followed_is_left_while_there_is_something_new() -> None:
    first = turn(ONWARD)
    past = [PastAction(Click(ref=one.ref), one.key) for one in first.view.observation.elements]
    assert await chosen(turn(ONWARD, step=4, past=tuple(past[1:]))) == Click(ref=1)
    assert await chosen(turn(ONWARD, step=5, past=tuple(past))) == Back()
    again = await chosen(turn(ONWARD, step=6, past=(*past, PastAction(Back(), None))))
    assert isinstance(again, Click), "once more through what is known, after going back changed nothing"


@pytest.mark.parametrize(("past", "expected"), [((), Wait()), ((PastAction(Wait(), None),), Back())])
async def test_a_page_that_leads_nowhere(past: tuple[PastAction, ...], expected: Action) -> None:
    assert await chosen(turn(NEVER, past=past)) == expected


async def test_what_is_not_shown_is_not_clicked() -> None:
    asked = turn(ONWARD[:1])
    hidden = replace(asked.view.observation.elements[0], shown=False)
    view = replace(asked.view, observation=replace(asked.view.observation, elements=(hidden,)))
    assert await chosen(replace(asked, view=view)) == Wait()


async def test_an_episode_goes_the_same_way_again_and_another_one_another() -> None:
    def episodes(attempt: int) -> list[Turn]:
        return [replace(turn(ONWARD, step=step), attempt=attempt) for step in range(1, 20)]

    first = [await chosen(one) for one in episodes(1)]
    assert first == [await chosen(one) for one in episodes(1)]
    assert first != [await chosen(one) for one in episodes(2)]
