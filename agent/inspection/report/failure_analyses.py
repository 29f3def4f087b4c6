"""Analyzes failures for a report with :mod:`judges.analysis`, without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.inspection.analyze import Analyses, survey
from judges.analysis import Analysis, Analyzer


def explain_failures(runs: Sequence[Path], references: Sequence[Path] = ()) -> Mapping[tuple[str, str], Analysis]:
    """Analyzes each failure and each cut-off, unjudged episode of *runs*; keys are run and episode ids.

    Episodes are compared with successes of *runs* and *references*. Unreadable traces have no analysis. Raises BadInput
    for paths without traces. Must not be called inside an event loop.
    """
    return asyncio.run(_all(runs, references))


async def _all(runs: Sequence[Path], references: Sequence[Path]) -> Mapping[tuple[str, str], Analysis]:
    analyses = Analyses(survey(runs, references), Analyzer())
    return {
        (analysis.run_id, analysis.episode_id): analysis
        async for analysis in analyses
        if isinstance(analysis, Analysis)
    }
