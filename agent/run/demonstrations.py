"""Records demonstrations: a solver's actions, each with the prompt that a model would have received."""

from __future__ import annotations

from dataclasses import replace

from agent.episode.policy import ActionProposal, ModelCall, Policy, Turn
from agent.episode.prompts import Style, render_policy_prompt
from models.base import ChatReply, Usage

NOT_SENT = 0
"""Value of `attempts` for a call that was rendered but never sent. It costs nothing and is not counted as a call."""


class DemonstrationPolicy:
    """Wraps a policy without a model and adds the prompt for each action, in the prompt style of the model to train."""

    def __init__(self, policy: Policy, style: Style) -> None:
        self.spec = policy.spec
        self._policy = policy
        self._style: Style = style

    async def propose(self, turn: Turn) -> ActionProposal:
        proposal = await self._policy.propose(turn)
        if proposal.calls or proposal.action is None:
            return proposal
        reply = ChatReply(proposal.raw, Usage(), self.spec, seconds=0.0, attempts=NOT_SENT)
        return replace(proposal, calls=(ModelCall(render_policy_prompt(self._style, turn.view), reply),))
