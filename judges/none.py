"""The judge `none`: verifies no milestone and gives no verdict."""

from __future__ import annotations

from judges.base import Progress, Rated
from judges.entry import JudgeEntry
from judges.ratings import make_rating


class NoAutoRater:
    """Leaves `z` as it is."""

    spec = "none"

    async def rate(self, progress: Progress) -> Rated:
        return Rated(make_rating(progress.z, progress.z, source="none"))


ENTRY = JudgeEntry(lambda model, settings: NoAutoRater())
