"""`--set targets.added.kind=acme`: each action that was not carried out costs something."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from training.mira.added_rewards import StepReward, StepRewardEntry, Trajectory


class AcmeStepReward(StepReward):
    kind: str = "acme"
    cost: float = Field(default=0.1, ge=0, le=1)

    def of_episode(self, episode: Trajectory) -> Sequence[float]:
        return [0.0 if decision.ok else -self.cost for decision in episode.decisions]


ENTRY = StepRewardEntry(AcmeStepReward)
