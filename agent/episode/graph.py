"""The loop as a LangGraph graph.

    plan → observe → reflect → (replan) → act → (approve) → execute → observe …  → judge → (analyze) → END
             └─ advance → execute → observe …     for the further actions of one answer

Nodes are in :mod:`agent.episode.nodes`, one file each; this module defines the edges. A node that ends the episode sets
`ended_by`, and every edge from there leads to `judge`.
"""

from __future__ import annotations

from typing import Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.episode.episode import Episode
from agent.episode.nodes.act import act
from agent.episode.nodes.advance import advance
from agent.episode.nodes.analyze import analyze
from agent.episode.nodes.approve import approve
from agent.episode.nodes.execute import execute
from agent.episode.nodes.judge import judge
from agent.episode.nodes.observe import observe
from agent.episode.nodes.plan import plan, replan
from agent.episode.nodes.reflect import reflect
from agent.episode.state import State

Graph = CompiledStateGraph[State, Episode, State, State]

NODES_PER_STEP = 8
"""Upper bound on nodes per step, for LangGraph's recursion limit, which must exceed the run's limits."""


def build_graph() -> Graph:
    """Compiled once per run; every episode is a thread of it.

    The checkpoints stay in memory. LangGraph needs them for the interrupt of `approve`, for entering the graph behind a
    node, and for reading the state that a failed node started from. A new process rebuilds the state from the trace.
    """
    graph = StateGraph(State, context_schema=Episode)
    for node in (plan, observe, advance, reflect, replan, act, approve, execute, judge, analyze):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "observe")
    graph.add_conditional_edges("observe", after_observe)
    graph.add_conditional_edges("advance", after_advance)
    graph.add_conditional_edges("reflect", after_reflect)
    graph.add_edge("replan", "act")
    graph.add_conditional_edges("act", after_act)
    graph.add_edge("approve", "execute")
    graph.add_conditional_edges("execute", after_execute)
    graph.add_edge("judge", "analyze")
    graph.add_edge("analyze", END)
    return graph.compile(checkpointer=InMemorySaver())


def drop_checkpoints(graph: Graph, thread_id: str) -> None:
    """Frees the memory that the checkpoints of one thread take."""
    if isinstance(graph.checkpointer, BaseCheckpointSaver):
        graph.checkpointer.delete_thread(thread_id)


# The edge functions are coroutines: LangGraph runs plain functions in a thread, which is slower.


async def after_observe(state: State) -> Literal["judge", "advance", "reflect"]:
    if state.ended_by:
        return "judge"
    return "advance" if state.queued else "reflect"


async def after_advance(state: State) -> Literal["execute", "reflect"]:
    return "execute" if state.queued else "reflect"


async def after_reflect(state: State) -> Literal["replan", "act"]:
    return "replan" if state.cause else "act"


async def after_act(state: State) -> Literal["judge", "replan", "act", "approve", "execute"]:
    """Asks the policy again after an answer without an action, with a new plan where a trigger is pending, and after an
    early stop."""
    if state.ended_by:
        return "judge"
    if state.asks_again or state.parse_errors:
        return "replan" if state.cause else "act"
    return "approve" if state.approval == "ask" else "execute"


async def after_execute(state: State) -> Literal["judge", "observe"]:
    return "judge" if state.ended_by else "observe"
