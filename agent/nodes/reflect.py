"""Which milestones are reached, by whose evidence, and whether something went wrong that calls for a new plan."""

from __future__ import annotations

import time

from langgraph.runtime import Runtime

from agent.episode import Episode, call_record
from agent.nodes.plan import milestones
from agent.state import State, Update
from envs.record import storable
from envs.trace import Rating
from judges.base import Progress
from judges.state_rater import lost_anchors
from planners.causes import Trouble


async def reflect(state: State, runtime: Runtime[Episode]) -> Update:
    """Updates `z`, then looks for a typed cause of re-planning; a milestone once reached is never taken back."""
    episode = runtime.context
    begun = time.perf_counter()
    rating, lost = await rate(state, episode)
    episode.rating = rating
    trouble = _trouble(state, episode, rating, lost)
    episode.spend(reflect=time.perf_counter() - begun)
    update = Update(z=list(rating.z), next_milestone=rating.next_milestone)
    if trouble is not None:
        update.update(cause=trouble.cause, detail=storable(trouble.detail))
    return update


async def rate(state: State, episode: Episode) -> tuple[Rating, tuple[str, ...]]:
    """The rating of the page as it is now, and the texts of reached milestones that no longer hold."""
    plan = milestones(state)
    if not plan:
        return Rating(z=tuple(state.z), next_milestone=state.next_milestone), ()
    is_reference = plan == episode.start.milestones
    progress = Progress(
        instruction=episode.start.instruction,
        milestones=plan,
        z=tuple(state.z),
        observation=await episode.look(),
        previous=episode.previous,
        history=tuple(state.history),
        checks=await episode.environment.check_milestones() if is_reference else None,
        step=state.step,
    )
    rated = await episode.team.rater.rate(progress)
    episode.account(call_record("rater", reply) for reply in rated.replies)
    texts = {m.id: m.text for m in plan}
    return rated.rating, tuple(texts[flip.milestone] for flip in lost_anchors(progress))


def _trouble(state: State, episode: Episode, rating: Rating, lost: tuple[str, ...]) -> Trouble | None:
    """A cause, if one holds and another plan is allowed; the watch judges committed steps with what they led to."""
    if not episode.ticks:
        return None
    episode.see_outcome(rating.z, lost)
    if episode.config.planner == "none" or state.replans >= episode.config.limits.max_replans:
        return None
    return episode.team.watch.check(episode.ticks, episode.planned_at)
