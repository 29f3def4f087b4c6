"""The analyses that a report shows: those of :mod:`judges.analysis`, without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.inspection.analyze import Analyses, survey
from judges.analysis import Analysis, Analyzer


def explained(runs: Sequence[Path], references: Sequence[Path] = ()) -> Mapping[tuple[str, str], Analysis]:
    """Each failure of *runs*, and each episode that was cut off and not judged, by its run and episode id.

    They are compared with successes from there and from *references*.
    What cannot be read has no analysis. Raises BadInput for places without traces; not to be called in an event loop.
    """
    return asyncio.run(_all(runs, references))


async def _all(runs: Sequence[Path], references: Sequence[Path]) -> Mapping[tuple[str, str], Analysis]:
    found = Analyses(survey(runs, references), Analyzer())
    return {(one.run_id, one.episode_id): one async for one in found if isinstance(one, Analysis)}
