"""A batch continues after filling in what was there already, and stops after a click that changed nothing."""

from __future__ import annotations

import pytest

from agent.episode.batch import BatchStop, advanced, batch_of
from envs.core.action_languages import Parsed
from envs.core.actions import Action, ActionResult, Click, Reason, Select, Status, Type
from envs.core.observation import Element, ElementKey, Observation

ROLES = ("textbox", "combobox", "button", "checkbox")
TEXT = "\n".join(f'[{ref}] {role} "{role}"' for ref, role in enumerate(ROLES, 1))
OBSERVATION = Observation(
    url="http://a.example/",
    title="",
    text=TEXT,
    elements=tuple(
        Element(ref, ElementKey("", role, role, 0, "0" * 8), "", (), None, (), None, True)
        for ref, role in enumerate(ROLES, 1)
    ),
    tabs=(),
    digest="0" * 16,
    viewport=(1, 1),
    scroll=(0, 0),
    controls_total=4,
)
NOTHING = ActionResult(status=Status.OK, reason=Reason.NO_EFFECT)


@pytest.mark.parametrize(
    ("action", "stops"),
    [
        (Type(ref=1, text="a"), False),
        (Select(ref=2, option="a"), False),
        (Click(ref=1), False),
        (Click(ref=3), True),
        (Click(ref=4), True),
    ],
)
def test_only_a_click_that_should_have_acted_stops_the_batch(action: Action, stops: bool) -> None:
    batch = batch_of(action, [Parsed(Type(ref=1, text="b"))], OBSERVATION, 8)
    assert batch is not None
    step = advanced(batch, NOTHING, OBSERVATION, refused_news=False)
    assert (step is BatchStop.NO_EFFECT) is stops
    assert stops or not isinstance(step, BatchStop)


def test_a_refused_origin_that_the_policy_does_not_know_stops_the_batch() -> None:
    batch = batch_of(Type(ref=1, text="a"), [Parsed(Click(ref=3))], OBSERVATION, 8)
    assert batch is not None
    done = ActionResult(status=Status.OK)
    assert advanced(batch, done, OBSERVATION, refused_news=True) is BatchStop.REQUEST
    assert not isinstance(advanced(batch, done, OBSERVATION, refused_news=False), BatchStop)
