"""Interrupts the graph until a person has answered."""

from __future__ import annotations

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from agent.episode.approval import NOBODY, ApprovalRequest, needs_approval
from agent.episode.episode import Episode
from agent.episode.nodes.execute import action_text
from agent.episode.policy import target_of
from agent.episode.prompts import one_line
from agent.episode.state import Approval, State, Update
from envs.core.actions import Action
from envs.core.observation import Observation
from envs.core.past_actions import describe
from envs.observer.element_place import action_place


async def approve(state: State, runtime: Runtime[Episode]) -> Update:
    """Asks for approval. LangGraph runs the node twice: up to the interrupt, and again with the person's answer.

    Nothing is written before the interrupt. After a kill the page is observed and the policy asked again, so the person
    approves the action that is executed.
    """
    episode = runtime.context
    assert episode.proposal is not None and episode.proposal.action is not None
    action, observation = episode.proposal.action, await episode.observe()
    request = ApprovalRequest(
        episode_id=episode.identity.episode_id,
        step=state.step + 1,
        action=_named(episode, action, observation),
        checks=tuple(one_line(episode.trace.mask(check)) for check in episode.proposal.checks),
        classes=needs_approval(action, observation, episode.config.approve, episode.past),
        url=observation.url,
        instruction=episode.start.instruction,
    )
    answer: Approval = interrupt(request.model_dump(mode="json"))
    approved = answer == "yes"
    detail = f"{request.action} ({NOBODY})" if answer == "nobody" else request.action
    episode.note(state.step + 1, "approved" if approved else "declined", detail)
    return Update(approval=answer, declines=state.declines + (not approved))


def _named(episode: Episode, action: Action, observation: Observation) -> str:
    """Returns the action in the run's language, after its description in words where it names an element by number."""
    target, mask = target_of(action, observation), episode.trace.mask
    text = action_text(episode, action)
    if target is None:
        return text
    return f"{mask(one_line(describe(action, target, action_place(action, observation, mask))))}: {text}"
