"""Observes the page, unless a limit ends the episode or the run is stopped."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agent.episode.episode import Episode, Interrupted
from agent.episode.state import State, Update
from agent.run.limits import limit_reached
from envs.core.errors import PageCrashed, PageHung


async def observe(state: State, runtime: Runtime[Episode]) -> Update:
    """Observes the page. A page that hung or crashed was replaced by a blank one; the next prompt says so.

    Raises Interrupted at this step boundary when the run is stopped.
    """
    episode = runtime.context
    if episode.stopping.is_set():
        raise Interrupted
    if limit := limit_reached(episode.config.limits, episode.totals(state.step)):
        return Update(ended_by=limit)
    try:
        await episode.observe()
    except (PageHung, PageCrashed) as error:
        detail = f"{type(error).__name__}: {error}"
        episode.note(state.step + 1, "crash", detail)
        await episode.observe()
        return Update(problems=[*state.problems, f"the page was lost, a blank one is shown now: {detail}"])
    return Update()
