"""The AutoRater over state checkers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.core.observation import Observation
from envs.core.tasks import Milestone, MilestoneCheck
from judges.base import Progress
from judges.state_autorater import StateAutoRater, lost_anchors

PAGE = Observation("http://x/", "x", "text", (), (), "0" * 16, (1280, 800), (0, 0), 0)
PLAN = tuple(Milestone(id=i, text=i) for i in ("name", "password", "submitted"))


def progress(z: tuple[bool, ...], checks: tuple[bool, ...] | None) -> Progress:
    answers = None if checks is None else tuple(MilestoneCheck(achieved=c, evidence=f"is {c}") for c in checks)
    return Progress("log in", PAGE, milestones=PLAN[: len(z)], z=z, checks=answers)


async def test_every_flip_carries_the_checkers_evidence():
    rating = (await StateAutoRater().rate(progress((False, False, False), (True, False, False)))).rating
    assert rating.z == (True, False, False)
    assert [(f.milestone, f.achieved, f.evidence) for f in rating.flips] == [("name", True, "is True")]
    assert rating.current_complete and rating.next_milestone == 1 and rating.source == "state"


async def test_an_anchor_stays_when_its_check_turns_false_and_is_reported_as_lost():
    now = progress((True, False, False), (False, True, False))
    rating = (await StateAutoRater().rate(now)).rating
    assert rating.z == (True, True, False)
    assert [f.milestone for f in lost_anchors(now)] == ["name"]


async def test_all_done_has_no_next_milestone():
    assert (
        await StateAutoRater().rate(progress((True, True, False), (True, True, True)))
    ).rating.next_milestone is None


async def test_without_checks_nothing_changes():
    rating = (await StateAutoRater().rate(progress((True, False, False), None))).rating
    assert (rating.z, rating.source, rating.flips) == ((True, False, False), "none", ())


async def test_without_a_plan_there_is_nothing_to_rate():
    rating = (await StateAutoRater().rate(progress((), (True,)))).rating
    assert rating.z == () and rating.next_milestone is None and not rating.current_complete


async def test_checks_that_do_not_fit_the_plan_are_an_error():
    with pytest.raises(ValueError, match="1 checks for 3 milestones"):
        await StateAutoRater().rate(progress((False,) * 3, (True,)))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=3))
async def test_z_never_loses_a_milestone_and_flips_are_exactly_its_gains(pairs: list[tuple[bool, bool]]):
    held, checks = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    rating = (await StateAutoRater().rate(progress(held, checks))).rating
    assert all(new >= old for old, new in zip(held, rating.z, strict=True))
    gained = [PLAN[i].id for i in range(len(held)) if rating.z[i] and not held[i]]
    assert [f.milestone for f in rating.flips] == gained
