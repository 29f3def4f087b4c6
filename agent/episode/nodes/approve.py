"""Stops the graph until a person has said yes or no."""

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
        action=_named(episode, action, look),
        classes=needs_approval(action, look, episode.config.approve, episode.past),
        url=look.url,
        instruction=episode.start.instruction,
    )
    said: Approval = interrupt(request.model_dump(mode="json"))
    approved = said == "yes"
    told_of = f"{request.action} ({NOBODY})" if said == "nobody" else request.action
    episode.note(state.step + 1, "approved" if approved else "declined", told_of)
    return Update(approval=said, declines=state.declines + (not approved))


def _named(episode: Episode, action: Action, look: Observation) -> str:
    """The action in the run's language, after what it is in words where it names an element by its number."""
    target = target_of(action, look)
    text = action_text(episode, action)
    return text if target is None else f"{episode.trace.mask(one_line(describe(action, target)))}: {text}"
