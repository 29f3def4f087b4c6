"""Milestones from the instruction and the first look; again when something typed went wrong."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agent.episode.episode import Episode, call_record
from agent.episode.state import State, Update, rows_of
from agent.progress import PlanMade
from envs.core.trace import Cause, PlanRecord
from models.base import ModelError
from planners.anchors import anchors, carry_over, still_open
from planners.base import Plan, Situation


async def plan(state: State, runtime: Runtime[Episode]) -> Update:
    """The first plan, made once before the first step."""
    return await _plan(state, runtime.context, "initial", "")


async def replan(state: State, runtime: Runtime[Episode]) -> Update:
    """A new plan for the cause that `reflect` or `act` found; achieved milestones stay as anchors."""
    assert state.cause is not None
    update = await _plan(state, runtime.context, state.cause, state.detail)
    problem = f"{state.cause.replace('_', ' ')}: {state.detail}. Do something else."
    update.update(replans=state.replans + 1, cause=None, detail="", problems=[*state.problems, problem])
    return update


async def _plan(state: State, episode: Episode, cause: Cause, detail: str) -> Update:
    before = state.milestones
    episode.drop_reflection()
    situation = Situation(
        instruction=episode.start.instruction,
        category=episode.start.category,
        observation=await episode.look(),
        reference=episode.start.milestones,
        history=episode.history,
        anchors=anchors(before, state.z),
        open=still_open(before, state.z),
        cause=cause,
        detail=detail,
    )
    made = await _made(state, episode, situation)
    if made is None:
        episode.planned_at = state.step
        return Update()
    _record(state, episode, cause, made)
    z = carry_over(before, state.z, made.milestones)
    return Update(
        plan=rows_of(made.milestones),
        z=z,
        next_milestone=next((i for i, achieved in enumerate(z) if not achieved), None),
    )


async def _made(state: State, episode: Episode, situation: Situation) -> Plan | None:
    """The plan. An answer that is no use is an event: the episode begins without milestones, or (None) keeps the plan
    that it has; the next cause of re-planning asks again."""
    try:
        with episode.paying("planner", episode.team.planner.spec):
            return await episode.team.planner.plan(situation)
    except ModelError as error:
        if not error.answered:
            raise
        episode.note(state.step + 1, "planner_error", f"{type(error).__name__}: {error}")
        return Plan(milestones=()) if situation.cause == "initial" else None


def _record(state: State, episode: Episode, cause: Cause, made: Plan) -> None:
    step = state.step + 1
    call = None if made.reply is None else call_record("planner", made.reply)
    if call is not None:
        episode.ledger.add([call])
    episode.planned_at = state.step
    episode.trace.append(
        PlanRecord(step=step, cause=cause, milestones=made.milestones, planner=episode.team.planner.spec, call=call)
    )
    texts = tuple(m.text for m in made.milestones)
    episode.tell(PlanMade(episode.identity.episode_id, step, cause, texts))


def may_replan(state: State, episode: Episode) -> bool:
    """Whether there is a planner, the policy sees its plan, and the limit of re-plans is not reached.

    A hidden plan is never replaced: the policy cannot follow it, and the cause of a re-plan is a line of the next
    prompt, which may quote a milestone.
    """
    config = episode.config
    return config.planner != "none" and config.show_plan and state.replans < config.limits.max_replans
