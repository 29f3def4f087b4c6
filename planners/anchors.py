"""Anchors: achieved milestones, which survive a re-plan. They are identified by id."""

from __future__ import annotations

from collections.abc import Sequence

from envs.core.tasks import Milestone


def anchors(plan: Sequence[Milestone], z: Sequence[bool]) -> tuple[Milestone, ...]:
    """Returns the achieved milestones of *plan*, in order."""
    return tuple(milestone for milestone, achieved in zip(plan, z, strict=True) if achieved)


def still_open(plan: Sequence[Milestone], z: Sequence[bool]) -> tuple[Milestone, ...]:
    """Returns the milestones of *plan* that are not achieved yet, in order."""
    return tuple(milestone for milestone, achieved in zip(plan, z, strict=True) if not achieved)


def carry_over(before: Sequence[Milestone], z: Sequence[bool], after: Sequence[Milestone]) -> tuple[bool, ...]:
    """Returns `z` for the plan *after*: True for the milestones that are achieved in the plan *before*."""
    achieved = {milestone.id for milestone in anchors(before, z)}
    return tuple(milestone.id in achieved for milestone in after)
