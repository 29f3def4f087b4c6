"""Anchors: achieved milestones, which survive a re-plan. They are identified by id."""

from __future__ import annotations

from collections.abc import Sequence

from envs.core.tasks import Milestone


def carry_over(before: Sequence[Milestone], z: Sequence[bool], after: Sequence[Milestone]) -> tuple[bool, ...]:
    """Returns `z` for the plan *after*: True for the milestones that are achieved in the plan *before*."""
    achieved = {milestone.id for milestone, held in zip(before, z, strict=True) if held}
    return tuple(milestone.id in achieved for milestone in after)
