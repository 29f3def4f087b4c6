"""Records demonstrations: a solver's actions, each with the prompt that a model would have received."""

from __future__ import annotations

from dataclasses import replace

from agent.episode.policy import ActionProposal, ModelCall, Policy, Turn
from agent.episode.profile_prompts import answer_text, names_control, render_prompt
from agent.profiles.profile import Profile
from models.base import ChatReply, Usage

NOT_SENT = 0
"""Value of `attempts` for a call that was rendered but never sent. It costs nothing and is not counted as a call."""


class DemonstrationPolicy:
    """Wraps a policy without a model and adds the prompt for each action, by the profile of the model to train."""

    def __init__(self, policy: Policy, profile: Profile) -> None:
        self.spec = policy.spec
        self._policy = policy
        self._profile = profile

    async def propose(self, turn: Turn) -> ActionProposal:
        proposal = await self._policy.propose(turn)
        if proposal.calls or proposal.action is None:
            return proposal
        view = turn.view
        named = names_control(self._profile, view.language, max_actions=1)
        raw = answer_text(view.language, proposal.action, view.observation, named=named)
        reply = ChatReply(raw, Usage(), self.spec, seconds=0.0, attempts=NOT_SENT)
        prompt = render_prompt(self._profile, replace(view, names_control=named))
        return replace(proposal, raw=raw, calls=(ModelCall(prompt, reply),))
