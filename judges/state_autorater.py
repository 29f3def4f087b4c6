"""The AutoRater for tasks with reference milestones: the state checkers decide, without a model."""

from __future__ import annotations

from envs.core.trace import Flip
from judges.base import Progress, Rated
from judges.entry import JudgeEntry
from judges.ratings import make_rating


class StateAutoRater:
    """Takes `z_t` from the environment's state checkers, with the checker's evidence for every flip.

    An achieved milestone stays achieved (it is an anchor), even if its check is false later: see :func:`lost_anchors`.
    Without checks nothing changes and the source is `none`.
    """

    spec = "state"

    async def rate(self, progress: Progress) -> Rated:
        """Raises ValueError if checks and milestones differ in number."""
        checks = progress.checks
        if checks is None or not progress.milestones:
            return Rated(make_rating(progress.z, progress.z, source="none"))
        if not len(checks) == len(progress.milestones) == len(progress.z):
            raise ValueError(
                f"{len(checks)} checks for {len(progress.milestones)} milestones and z of length {len(progress.z)}"
            )
        flips = tuple(
            Flip(milestone=milestone.id, achieved=True, evidence=check.evidence)
            for milestone, held, check in zip(progress.milestones, progress.z, checks, strict=True)
            if check.achieved and not held
        )
        return Rated(make_rating(progress.z, tuple(c.achieved for c in checks), flips, source="state"))


def lost_anchors(progress: Progress) -> tuple[Flip, ...]:
    """Achieved milestones whose state checker is now false, with its evidence.

    `z` keeps them (MiRA paper, §5.2); the agent may re-plan with the trigger `milestone_lost`. Empty without checks.
    """
    if progress.checks is None or not len(progress.checks) == len(progress.milestones) == len(progress.z):
        return ()
    return tuple(
        Flip(milestone=milestone.id, achieved=False, evidence=check.evidence)
        for milestone, held, check in zip(progress.milestones, progress.z, progress.checks, strict=True)
        if held and not check.achieved
    )


ENTRY = JudgeEntry(lambda model, settings: StateAutoRater())
