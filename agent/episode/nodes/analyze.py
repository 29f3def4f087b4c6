"""Analyzes why an episode failed; other outcomes are not analyzed."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agent.episode.episode import Episode
from agent.episode.state import State, Update, ended_by
from judges.analysis import Case, Pages, explain


async def analyze(state: State, runtime: Runtime[Episode]) -> Update:
    """Determines category and key step for the footer, by rules alone: references may be recorded later."""
    episode = runtime.context
    assessment = episode.assessment
    if assessment.outcome == "failure":
        checks = assessment.checks
        case = Case(
            steps=episode.steps,
            ended_by=ended_by(state),
            outcome="failure",
            instruction=episode.start.instruction,
            final=episode.rating.z if checks is None else [check.achieved for check in checks],
            error=state.error or None,
            pages=Pages(episode.blobs),
        )
        assessment.failure = explain(case)
    return Update()
