"""Why a failed episode failed; nothing is analyzed where nothing failed."""

from __future__ import annotations

from typing import cast

from langgraph.runtime import Runtime

from agent.episode import Episode
from agent.state import State, Update
from envs.trace import EndedBy
from judges import failure


async def analyze(state: State, runtime: Runtime[Episode]) -> Update:
    """The category and the key step, for the footer."""
    episode = runtime.context
    if episode.ending.outcome == "failure":
        ended_by = cast(EndedBy, state.ended_by)
        episode.ending.failure = failure.analyze(episode.steps, ended_by=ended_by, outcome="failure")
    return Update()
