"""Plans milestones from the instruction and the first observation, and again on a re-plan trigger."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agent.episode.episode import Episode, call_record
from agent.episode.state import State, Update, rows_of
from agent.progress import PlanMade
from envs.core.trace import Cause, PlanRecord
from models.base import ModelError, ModelOutOfTime
from planners.anchors import carry_over
from planners.base import Plan, Situation


async def plan(state: State, runtime: Runtime[Episode]) -> Update:
    """Makes the first plan, once before the first step."""
    return await _plan(state, runtime.context, "initial", "")


async def replan(state: State, runtime: Runtime[Episode]) -> Update:
    """Makes a new plan for the trigger of `reflect` or `act`; achieved milestones stay as anchors."""
    assert state.cause is not None
    update = await _plan(state, runtime.context, state.cause, state.detail)
    problem = f"{state.cause.replace('_', ' ')}: {state.detail}. Do something else."
    update.update(replans=state.replans + 1, cause=None, detail="", problems=[*state.problems, problem])
    return update


async def _plan(state: State, episode: Episode, cause: Cause, detail: str) -> Update:
    episode.drop_reflection()
    situation = await _situation(state, episode, cause, detail)
    new = await _ask_planner(state, episode, situation)
    if new is None:
        episode.planned_at = state.step
        return Update()
    _record(state, episode, cause, new)
    z = carry_over(situation.milestones, situation.z, new.milestones)
    return Update(
        plan=rows_of(new.milestones),
        z=z,
        next_milestone=next((i for i, achieved in enumerate(z) if not achieved), None),
    )


async def _situation(state: State, episode: Episode, cause: Cause, detail: str) -> Situation:
    return Situation(
        **(await episode.context(state, "planner")).shared(),
        category=episode.start.category,
        reference=episode.start.milestones,
        cause=cause,
        detail=detail,
    )


async def _ask_planner(state: State, episode: Episode, situation: Situation) -> Plan | None:
    """Asks the planner. An unusable answer, or none for the whole retry window, becomes an event: the episode starts
    without milestones, or keeps its plan (None), until the next trigger.

    A first plan that had no answer leaves no plan in the trace, so that a resume before the first step asks for it
    again. Raises ModelOutOfTime where the episode's own time is over.
    """
    try:
        with episode.paying("planner", episode.components.planner.spec):
            return await episode.components.planner.plan(situation)
    except ModelOutOfTime:
        raise
    except ModelError as error:
        episode.degrade("planner", state.step + 1, error)
        return Plan(milestones=()) if situation.cause == "initial" and error.answered else None


def _record(state: State, episode: Episode, cause: Cause, new: Plan) -> None:
    step = state.step + 1
    call = None if new.reply is None else call_record("planner", new.reply)
    if call is not None:
        episode.usage_tracker.add([call])
    episode.planned_at = state.step
    episode.trace.append(
        PlanRecord(
            step=step, cause=cause, milestones=new.milestones, planner=episode.components.planner.spec, call=call
        )
    )
    texts = tuple(m.text for m in new.milestones)
    episode.notify(PlanMade(episode.identity.episode_id, step, cause, texts))


def may_replan(state: State, episode: Episode) -> bool:
    """Whether a re-plan is allowed: there is a planner, the policy sees the plan, and the limit is not exhausted.

    A hidden plan is never replaced: the policy cannot follow it, and the trigger is a line of the next prompt, which
    may quote a milestone.
    """
    config = episode.config
    return config.planner != "none" and config.show_plan and state.replans < config.limits.max_replans
