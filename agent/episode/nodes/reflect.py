"""Which milestones are reached, by whose evidence, and whether something went wrong that calls for a new plan."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from langgraph.runtime import Runtime

from agent.episode.episode import Episode, Reflection, call_record
from agent.episode.nodes.plan import may_replan
from agent.episode.state import State, Update
from envs.core.record import storable
from envs.core.trace import Rating
from judges.base import Progress
from judges.ratings import make_rating
from judges.state_autorater import lost_anchors
from models.base import ModelError
from planners.replan_triggers import ReplanTrigger


async def reflect(state: State, runtime: Runtime[Episode]) -> Update:
    """Updates `z`, then looks for a typed cause of re-planning; a milestone once reached is never taken back."""
    episode = runtime.context
    begun = time.perf_counter()
    rating, lost = await (_overlapped if episode.config.overlap_reflect else rate)(state, episode)
    episode.rating = rating
    trouble = _trouble(state, episode, rating, lost)
    episode.spend(reflect=time.perf_counter() - begun)
    update = Update(z=rating.z, next_milestone=rating.next_milestone)
    if trouble is not None:
        update.update(cause=trouble.cause, detail=storable(trouble.detail))
    return update


async def rate(state: State, episode: Episode) -> Reflection:
    """What there is to say of the page as it is now, that of the page before included."""
    rating, lost = await _arrived(state, episode)
    progress = await _progress(replace(state, z=rating.z), episode)
    return (rating, lost) if progress is None else await _rated(progress, episode, _turn(state))


async def _overlapped(state: State, episode: Episode) -> Reflection:
    """What there is to say of the page before; this page is rated while the policy is asked about it."""
    rating, lost = await _arrived(state, episode)
    progress = await _progress(replace(state, z=rating.z), episode)
    if progress is not None:
        episode.reflecting = asyncio.create_task(_rated(progress, episode, _turn(state)))
    return rating, lost


async def _arrived(state: State, episode: Episode) -> Reflection:
    """The rating that was started a step ago; without one nothing changes."""
    pending, episode.reflecting = episode.reflecting, None
    if pending is not None:
        return await pending
    return Rating(z=state.z, next_milestone=state.next_milestone), ()


async def _progress(state: State, episode: Episode) -> Progress | None:
    """What the rater may know; None without subgoals."""
    plan = state.milestones
    if not plan:
        return None
    is_reference = plan == episode.start.milestones
    return Progress(
        instruction=episode.start.instruction,
        milestones=plan,
        z=state.z,
        observation=await episode.look(),
        previous=None if episode.unrated else episode.previous,
        history=episode.history,
        checks=await episode.environment.check_milestones() if is_reference else None,
        step=state.step,
    )


def _turn(state: State) -> int:
    """The step that the rating is for: the next one, or the last where there is none."""
    return state.step if state.ended_by else state.step + 1


async def _rated(progress: Progress, episode: Episode, turn: int) -> Reflection:
    """An answer that is no use is an event: what was reached before stands, and the next page is rated anew."""
    try:
        with episode.paying("rater", episode.team.rater.spec):
            rated = await episode.team.rater.rate(progress)
    except ModelError as error:
        if not error.answered:
            raise
        episode.unrated = True
        why = f"{type(error).__name__}: {error}"
        episode.note(turn, "rater_error", why)
        return make_rating(progress.z, progress.z, reason=storable(f"not rated: {why}"), source="none"), ()
    episode.unrated = False
    episode.account(call_record("rater", reply) for reply in rated.replies)
    texts = {m.id: m.text for m in progress.milestones}
    return rated.rating, tuple(texts[flip.milestone] for flip in lost_anchors(progress))


def _trouble(state: State, episode: Episode, rating: Rating, lost: tuple[str, ...]) -> ReplanTrigger | None:
    """A cause, if one holds and another plan is allowed; the watch judges committed steps with what they led to."""
    if not episode.ticks:
        return None
    episode.see_outcome(rating.z, lost)
    return episode.team.watch.check(episode.ticks, episode.planned_at) if may_replan(state, episode) else None
