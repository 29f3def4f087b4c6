"""Stops the graph until a person has said yes or no."""

from __future__ import annotations

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from agent.approval import ApprovalRequest, needs_approval
from agent.episode import Episode
from agent.nodes.execute import told
from agent.state import State, Update


async def approve(state: State, runtime: Runtime[Episode]) -> Update:
    """Runs twice: up to the interrupt, and again from the start with the person's answer.

    Nothing is written before the interrupt. After a kill the page is looked at again and the policy asked again,
    so the person is asked about the action that will really be done.
    """
    episode = runtime.context
    assert episode.proposal is not None and episode.proposal.action is not None
    action, look = episode.proposal.action, await episode.look()
    request = ApprovalRequest(
        episode_id=episode.identity.episode_id,
        step=state.step + 1,
        action=told(episode, action),
        classes=needs_approval(action, look, episode.config.approve),
        url=look.url,
        instruction=episode.start.instruction,
    )
    approved = interrupt(request.model_dump(mode="json")) is True
    episode.note(state.step + 1, "approved" if approved else "declined", request.action)
    return Update(approval="yes" if approved else "no", declines=state.declines + (not approved))
