"""Runs one episode through the graph and writes its footer. Errors become outcomes here and nowhere else."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from agent.config import RunConfig
from agent.episode.approval import ApprovalRequest, Approver
from agent.episode.episode import Assessment, EnvironmentLost, Episode, Interrupted
from agent.episode.graph import NODES_PER_STEP, Graph, drop_checkpoints
from agent.episode.state import State, ended_by
from envs.core.disk_errors import disk_refusal
from envs.core.errors import BrowserNotStarted, EnvError, NotWritten, TraceError
from envs.core.record import storable
from envs.core.trace import EndedBy, Footer, Totals
from envs.core.trace_store import now
from judges.analysis import Case, explain
from models.base import ModelError, ModelOutOfTime, ModelRejected

log = logging.getLogger(__name__)

INTERRUPT = "__interrupt__"


@dataclass(frozen=True, slots=True)
class Entry:
    """Where the graph starts: at its beginning, or after *node* with *state*."""

    state: State
    node: Literal["__start__", "plan", "observe", "execute"] = "__start__"


FROM_START = Entry(State())


async def run_episode(graph: Graph, episode: Episode, approver: Approver, entry: Entry = FROM_START) -> Footer:
    """Runs the episode as :func:`_to_footer` does. Model calls that no line of the trace holds yet are kept in an event
    if it ends without a footer, so that their usage counts when it continues."""
    try:
        return await _to_footer(graph, episode, approver, entry)
    except BaseException:
        if episode.calls:
            with suppress(EnvError):  # the disk is full: the error that is raised says so
                episode.note(len(episode.steps) + 1, "cut_off", "calls of a step that was not taken")
        raise


async def _to_footer(graph: Graph, episode: Episode, approver: Approver, entry: Entry) -> Footer:
    """Runs the episode to its end and writes the footer.

    A model call that is pending when `max_seconds` have passed ends the episode by that limit. Any other failure of the
    policy's model or the environment ends it as `broken`, with the error's type, and never as a failure of the policy;
    after a model failure the footer is `resumable`. Without an answer of planner or rater the episode continues.

    Raises EnvError without a footer where the environment may be replaced once (`may_retry`). Interrupted,
    BrowserNotStarted, CancelledError and NotWritten (a full disk) are also raised
    without a footer: the episode can be resumed.
    """
    config = thread(episode.identity.run_id, episode.identity.episode_id, episode.config)
    episode.approver = approver
    try:
        try:
            state = await _run(graph, config, episode, approver, entry)
        except ModelOutOfTime as error:
            state = await _run(graph, config, episode, approver, await _out_of_time(graph, config, episode, error))
    except (Interrupted, TraceError, NotWritten, BrowserNotStarted):
        raise
    except ModelError as error:
        return await _broken(graph, config, episode, error)
    except EnvError as error:
        if refused := disk_refusal(error, episode.trace.path):
            raise refused from error
        if episode.may_retry:
            raise
        return await _broken(graph, config, episode, error)
    except Exception as error:
        if refused := disk_refusal(error, episode.trace.path):
            raise refused from error
        # Any other exception is logged, retried once in a new environment (a crashing browser raises many errors), then
        # recorded with its type; the run continues.
        # Only the type is logged: message and traceback may hold a secret, and only the trace masks them.
        identity = episode.identity
        log.error("episode %s of run %s broke: %s", identity.episode_id, identity.run_id, type(error).__name__)
        if episode.may_retry:
            raise EnvironmentLost(error_line(error)) from error
        return await _broken(graph, config, episode, error)
    finally:
        episode.drop_reflection()
        drop_checkpoints(graph, thread_id(episode.identity.run_id, episode.identity.episode_id))
    return _finish(episode, state, ended_by(state), state.error or None)


def thread_id(run_id: str, episode_id: str) -> str:
    """Returns LangGraph's thread id of an episode; unique over runs."""
    return f"{run_id}/{episode_id}"


def thread(run_id: str, episode_id: str, config: RunConfig) -> RunnableConfig:
    """Returns the episode's thread and a recursion limit above the run's own limits."""
    limits = config.limits
    nodes = limits.max_steps * (NODES_PER_STEP + 2 * limits.max_parse_errors) + 50
    return {"configurable": {"thread_id": thread_id(run_id, episode_id)}, "recursion_limit": nodes}


async def _run(graph: Graph, config: RunnableConfig, episode: Episode, approver: Approver, entry: Entry) -> State:
    graph_input: Any = entry.state.as_update()
    if entry.node != "__start__":
        await graph.aupdate_state(config, graph_input, as_node=entry.node)
        graph_input = None
    while True:
        out = cast("dict[str, Any]", await graph.ainvoke(graph_input, config, context=episode, durability="exit"))
        pending = out.pop(INTERRUPT, ())
        if not pending:
            return State(**out)
        approved = await approver(ApprovalRequest.model_validate(pending[0].value))
        graph_input = Command(resume="yes" if approved is True else "nobody" if approved is None else "no")


async def _out_of_time(graph: Graph, config: RunnableConfig, episode: Episode, error: ModelOutOfTime) -> Entry:
    """Ends the episode by the limit `max_seconds` after a model call ran out of time."""
    state = await _last_state(graph, config)
    episode.drop_reflection()
    episode.note(state.step + 1, "out_of_time", error_line(error))
    return Entry(replace(state, ended_by="max_seconds"), "observe")


async def _last_state(graph: Graph, config: RunnableConfig) -> State:
    """Returns the state before the node that raised."""
    values = (await graph.aget_state(config)).values
    return State(**{key: value for key, value in values.items() if key in State.__dataclass_fields__})


async def _broken(graph: Graph, config: RunnableConfig, episode: Episode, error: Exception) -> Footer:
    state = await _last_state(graph, config)
    case = Case(episode.steps, ended_by="error", outcome="broken", error=error_line(error))
    resumable = isinstance(error, ModelError) and not error.lasting
    refused = episode.failed_role if isinstance(error, ModelRejected) else None
    episode.assessment = Assessment(outcome="broken", failure=explain(case), resumable=resumable, refused=refused)
    return _finish(episode, state, "error", error_line(error))


def _finish(episode: Episode, state: State, ended_by: EndedBy, error: str | None) -> Footer:
    assessment = episode.assessment
    footer = Footer(
        outcome=assessment.outcome,
        ended_by=ended_by,
        judged_by=assessment.judged_by,
        score=assessment.score,
        verdict=assessment.verdict,
        verdict_score=assessment.verdict_score,
        answer=state.answer,
        rating=episode.rating,
        milestone_checks=assessment.checks,
        failure=assessment.failure,
        blocked_requests=episode.blocked,
        declined=state.declines,
        totals=episode.totals(len(episode.steps)),
        expert_steps=_expert_steps(episode),
        degraded=episode.degraded,
        error="; ".join(filter(None, (error, assessment.unjudged))) or None,
        resumable=assessment.resumable,
        refused=assessment.refused,
        config=episode.config.resolved() if episode.reconfigured else None,
        calls=episode.take_calls(),
        at=now(),
    )
    episode.trace.append(footer)
    return footer


def _expert_steps(episode: Episode) -> int | None:
    """Number of steps with the expert's action in place of the policy's, those before a resume included; None without
    an expert."""
    return None if episode.config.expert is None else sum(intent.by_expert for intent, _ in episode.steps)


def broken_start(error: Exception, spent: Totals | None = None) -> Footer:
    """Returns the footer of an episode whose environment could not be reset or restored; *spent* is its usage."""
    return Footer(
        outcome="broken",
        ended_by="error",
        judged_by="none",
        totals=spent or Totals(),
        error=error_line(error),
        at=now(),
    )


def error_line(error: Exception) -> str:
    """Returns an error's type and message on one line, for the trace."""
    return storable(f"{type(error).__name__}: {' '.join(str(error).split())}")[:1000]
