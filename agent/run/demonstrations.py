"""Demonstrations that a model can learn from: what it would have been shown, beside what the solver did."""

from __future__ import annotations

from dataclasses import replace

from agent.episode.policy import ActionProposal, ModelCall, Policy, Turn
from agent.episode.prompts import Style, render_policy_prompt
from models.base import ChatReply, Usage

NOBODY_ASKED = 0
"""`attempts` of a call that was rendered and never sent: it costs nothing and counts as no model call."""


class Demonstrating:
    """A policy that asks no model, whose trace holds the prompt of each of its actions in the style of a learner."""

    def __init__(self, policy: Policy, style: Style) -> None:
        self.spec = policy.spec
        self._policy = policy
        self._style: Style = style

    async def propose(self, turn: Turn) -> ActionProposal:
        proposal = await self._policy.propose(turn)
        if proposal.calls or proposal.action is None:
            return proposal
        reply = ChatReply(proposal.raw, Usage(), self.spec, seconds=0.0, attempts=NOBODY_ASKED)
        return replace(proposal, calls=(ModelCall(render_policy_prompt(self._style, turn.view), reply),))
