"""The two planners without a model, and what survives a re-plan."""

from __future__ import annotations

import pytest

from envs.core.observation import Observation
from envs.core.tasks import Milestone
from planners.anchors import carry_over
from planners.base import Situation
from planners.registry import make_planner

NAME, PASSWORD, SUBMIT = (Milestone(id=i, text=i) for i in ("name", "password", "submitted"))
REFERENCE = (NAME, PASSWORD, SUBMIT)
PAGE = Observation("http://x/", "x", "text", (), (), "0" * 16, (1280, 800), (0, 0), 0)


def situation(**changes: object) -> Situation:
    base = {"instruction": "log in", "category": "form", "observation": PAGE}
    return Situation(**(base | changes))  # type: ignore[arg-type]


async def test_no_planner_gives_no_milestones_even_where_the_task_ships_some():
    plan = await make_planner("none").plan(situation(reference=REFERENCE))
    assert plan.milestones == () and plan.reply is None


async def test_reference_planner_gives_the_task_its_own_milestones():
    assert (await make_planner("reference").plan(situation(reference=REFERENCE))).milestones == REFERENCE


async def test_reference_planner_without_milestones_plans_nothing():
    assert (await make_planner("reference").plan(situation())).milestones == ()


async def test_reference_order_survives_a_milestone_achieved_out_of_turn():
    plan = await make_planner("reference").plan(
        situation(reference=REFERENCE, milestones=REFERENCE, z=(False, True, False), cause="loop")
    )
    assert plan.milestones == REFERENCE
    assert carry_over(REFERENCE, (False, True, False), plan.milestones) == (False, True, False)


async def test_foreign_anchors_come_first():
    opened = Milestone(id="m1", text="Open the form")
    plan = await make_planner("reference").plan(
        situation(reference=REFERENCE, milestones=(opened, NAME), z=(True, True))
    )
    assert plan.milestones == (opened, *REFERENCE)


def test_carry_over_goes_by_id_not_by_place():
    assert carry_over(REFERENCE, (True, False, False), (SUBMIT, NAME)) == (False, True)


def test_a_model_spec_without_a_model_is_refused_with_one_line():
    with pytest.raises(ValueError, match="planner 'openai:x' needs a model"):
        make_planner("openai:x")
