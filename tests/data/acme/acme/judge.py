"""`--judge acme`: a milestone is achieved once an action was taken, and every episode succeeded."""

from __future__ import annotations

from envs.core.trace import Flip
from judges import Ending, Progress, Rated, Verdict
from judges.entry import JudgeEntry
from judges.ratings import make_rating
from models import ChatReply, Usage


class AcmeRater:
    spec = "acme"

    async def rate(self, progress: Progress) -> Rated:
        if not progress.history:
            return Rated(make_rating(progress.z, progress.z, source="cheap"))
        flips = [
            Flip(milestone=milestone.id, achieved=True, evidence=progress.history[-1].log_line())
            for milestone, held in zip(progress.milestones, progress.z, strict=True)
            if not held
        ]
        return Rated(make_rating(progress.z, [True] * len(progress.z), flips, source="cheap"))


class AcmeJudge:
    spec = "acme"

    async def judge(self, ending: Ending) -> Verdict:
        reason = f"acme saw {len(ending.history)} actions"
        return Verdict(True, reason, ChatReply(reason, Usage(cost_usd=0.0), self.spec, seconds=0.0))


ENTRY = JudgeEntry(lambda model, settings: AcmeRater(), lambda model, settings: AcmeJudge())
