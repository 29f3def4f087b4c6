"""The context of a step, and the record of a role that is made of it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from envs.core.notes import Note
from envs.core.observation import Observation
from envs.core.step_context import StepContext
from envs.core.tasks import Milestone
from tests.past_actions import clicked

PLAN = tuple(Milestone(id=i, text=i) for i in ("name", "password", "submitted"))
PAGE = Observation("http://x/", "x", "text", (), (), "0" * 16, (1280, 800), (0, 0), 0)
CONTEXT = StepContext("Log in", PAGE, (clicked("Ok"),), PLAN, (True, False, True), (Note(number=1, text="a"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleInput(StepContext):
    own: int


def test_anchors_and_open_partition_the_plan_in_order() -> None:
    assert CONTEXT.anchors == (PLAN[0], PLAN[2]) and CONTEXT.open == (PLAN[1],)
    assert [CONTEXT.is_achieved(index) for index in range(4)] == [True, False, True, False]


def test_a_status_of_another_length_than_the_plan_is_an_error() -> None:
    short = StepContext("Log in", PAGE, milestones=PLAN, z=(True,))
    for part in ("anchors", "open"):
        with pytest.raises(ValueError, match="shorter"):
            getattr(short, part)


def test_a_roles_input_takes_every_field_of_the_context_and_no_more() -> None:
    role = RoleInput(**CONTEXT.shared(), own=1)
    assert role.shared() == CONTEXT.shared() and StepContext(**role.shared()) == CONTEXT
