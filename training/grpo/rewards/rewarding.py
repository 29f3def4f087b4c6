"""One call for every reward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from training.grpo.rewards.adagui import AdaguiReward
from training.grpo.rewards.answers import TokenCount, read_completion
from training.grpo.rewards.guirlvg import GuirlvgReward
from training.grpo.rewards.lpo import LpoReward, Picture
from training.grpo.rewards.score import Score
from training.grpo.rewards.ssl import SslReward
from training.grpo.rewards.targets import Target

RewardSettings = Annotated[SslReward | GuirlvgReward | AdaguiReward | LpoReward, Field(discriminator="kind")]


class Rewarder:
    """Rewards completions. *count*: tokens of a thought, by the policy's own tokenizer."""

    def __init__(self, reward: RewardSettings, count: TokenCount) -> None:
        self.reward = reward
        self._count = count

    @property
    def most(self) -> float:
        """The greatest reward there is."""
        return self.reward.most

    @property
    def looks(self) -> bool:
        """Whether it needs the picture of an example."""
        return isinstance(self.reward, LpoReward) and self.reward.reward == "location" and self.reward.windows

    def of_group(self, target: Target, completions: Sequence[str], picture: Picture | None = None) -> list[Score]:
        """The rewards of *completions*, all of one prompt. Raises BadInput where the reward does not fit the target."""
        group = [read_completion(text) for text in completions]
        match self.reward:
            case AdaguiReward():
                return self.reward.of_group(target, group, self._count)
            case LpoReward():
                return self.reward.of_group(target, group, picture)
            case SslReward() | GuirlvgReward():
                return self.reward.of_group(target, group)
