"""Rates which milestones are achieved, and checks the re-plan triggers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from langgraph.runtime import Runtime

from agent.episode.episode import Episode, Reflection, call_record
from agent.episode.nodes.plan import may_replan
from agent.episode.state import State, Update
from envs.core.actions import Scroll, ScrollAt
from envs.core.record import storable
from envs.core.trace import Rating
from judges.base import Progress
from judges.ratings import make_rating
from judges.state_autorater import lost_anchors
from models.base import ModelError, ModelOutOfTime
from planners.replan_triggers import ReplanTrigger

RATER_REST = 5
"""Steps without a rating after the rater's model did not answer for the whole retry window."""


async def reflect(state: State, runtime: Runtime[Episode]) -> Update:
    """Updates `z`, then checks for a re-plan trigger. An achieved milestone stays achieved."""
    episode = runtime.context
    begun = time.perf_counter()
    rating, lost = await (_overlapped if episode.config.overlap_reflect else rate)(state, episode)
    episode.rating = rating
    trigger = _trigger(state, episode, rating, lost)
    episode.spend(reflect=time.perf_counter() - begun)
    update = Update(z=rating.z, next_milestone=rating.next_milestone)
    if trigger is not None:
        update.update(cause=trigger.cause, detail=storable(trigger.detail))
    return update


async def rate(state: State, episode: Episode) -> Reflection:
    """Rates the current page, after a pending rating of the page before."""
    before, lost = await _pending_rating(state, episode)
    progress = await _progress(replace(state, z=before.z), episode)
    if progress is None:
        return before, lost
    rating, lost = await _rated(progress, episode, _turn(state))
    return rating.model_copy(update={"flips": (*before.flips, *rating.flips)}), lost


async def _overlapped(state: State, episode: Episode) -> Reflection:
    """Returns the rating of the page before, and starts rating this page beside the policy call."""
    rating, lost = await _pending_rating(state, episode)
    progress = await _progress(replace(state, z=rating.z), episode)
    if progress is not None:
        episode.reflecting = asyncio.create_task(_rated(progress, episode, _turn(state)))
    return rating, lost


async def _pending_rating(state: State, episode: Episode) -> Reflection:
    """Returns the rating that the step before started; without one, the known status."""
    pending, episode.reflecting = episode.reflecting, None
    if pending is not None:
        return await pending
    return Rating(z=state.z, next_milestone=state.next_milestone), ()


async def _progress(state: State, episode: Episode) -> Progress | None:
    """Returns the input of the rater; None without milestones."""
    plan = state.milestones
    if not plan:
        return None
    is_reference = plan == episode.start.milestones
    return Progress(
        **(await episode.context(state, "rater", notes=False)).shared(),
        previous=episode.previous,
        checks=await episode.environment.check_milestones() if is_reference else None,
        step=state.step,
        unrated=episode.unrated,
        final=bool(state.ended_by),
    )


def _turn(state: State) -> int:
    """Returns the step that the rating belongs to: the next one, or the last one of an ended episode."""
    return state.step if state.ended_by else state.step + 1


async def _rated(progress: Progress, episode: Episode, turn: int) -> Reflection:
    """Asks the rater. An unusable answer becomes an event: the known status stays, and the next page is rated again.

    So does no answer for the whole retry window; the rater is then left alone for some steps, or every step would wait
    for that window. Raises ModelOutOfTime where the episode's own time is over.
    """
    if not progress.final and len(episode.steps) < episode.rater_back_at:
        return _not_rated(progress, "the rater's model did not answer lately"), ()
    try:
        with episode.paying("rater", episode.components.rater.spec):
            rated = await episode.components.rater.rate(progress)
    except ModelOutOfTime:
        raise
    except ModelError as error:
        episode.unrated = True
        episode.degrade("rater", turn, error)
        if not error.answered:
            episode.rater_back_at = len(episode.steps) + RATER_REST
        return _not_rated(progress, f"{type(error).__name__}: {error}"), ()
    episode.unrated = rated.postponed
    episode.account(call_record("rater", reply) for reply in rated.replies)
    texts = {m.id: m.text for m in progress.milestones}
    return rated.rating, tuple(texts[flip.milestone] for flip in lost_anchors(progress))


def _not_rated(progress: Progress, why: str) -> Rating:
    return make_rating(progress.z, progress.z, reason=storable(f"not rated: {why}"), source="none")


def _trigger(state: State, episode: Episode, rating: Rating, lost: tuple[str, ...]) -> ReplanTrigger | None:
    """Returns the re-plan trigger, if one applies and a re-plan is allowed."""
    if not episode.summaries:
        return None
    episode.add_outcome(rating.z, lost, _shown(episode))
    return (
        episode.components.replan_detector.check(episode.summaries, episode.planned_at)
        if may_replan(state, episode)
        else None
    )


def _shown(episode: Episode) -> str:
    """What the last action showed beside the page's text, see :attr:`planners.replan_triggers.StepSummary.shown`."""
    intent, commit = episode.steps[-1]
    if commit is not None and commit.result.output:
        return commit.result.output
    observation = episode.observation
    scrolled = (
        isinstance(intent.action, Scroll | ScrollAt) and observation is not None and observation.screenshot is not None
    )
    return f"{observation.url} from {observation.scroll[0]} px" if observation is not None and scrolled else ""
