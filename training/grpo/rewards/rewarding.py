"""Scores completions with any reward: built-in, or added by a package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, cast

from pydantic import BeforeValidator, Discriminator, PlainSerializer, Tag

from envs.core.errors import BadInput
from models.vision.answers import UNSCALED, Scale, TokenCount, read_completion
from training.grpo.rewards.adagui import AdaguiReward
from training.grpo.rewards.guirlvg import GuirlvgReward
from training.grpo.rewards.lpo import LpoReward, Picture
from training.grpo.rewards.registry import REWARDS, AddedReward, added_reward
from training.grpo.rewards.score import Score
from training.grpo.rewards.ssl import SslReward
from training.grpo.rewards.targets import Target


def _kind(value: object) -> object:
    return value.get("kind") if isinstance(value, Mapping) else getattr(value, "kind", None)


def _tag(value: object) -> str:
    """Which member of the union reads *value*: the built-in reward of its `kind`, or `added` for all others."""
    return str(_kind(value)) if _kind(value) in REWARDS.builtin else "added"


def _with_added(value: object) -> object:
    """Replaces the settings of a package's reward by the reward."""
    return value if _kind(value) in REWARDS.builtin else added_reward(value)


RewardSettings = Annotated[
    Annotated[SslReward, Tag("ssl")]
    | Annotated[GuirlvgReward, Tag("guirlvg")]
    | Annotated[AdaguiReward, Tag("adagui")]
    | Annotated[LpoReward, Tag("lpo")]
    | Annotated[AddedReward, PlainSerializer(AddedReward.model_dump), Tag("added")],
    Discriminator(_tag),
    BeforeValidator(_with_added),
]
"""A built-in reward, or one of an installed package, by `kind`."""


class Rewarder:
    """Scores completions with a reward. *count* counts a thought's tokens with the policy's tokenizer."""

    def __init__(self, reward: RewardSettings, count: TokenCount) -> None:
        self.reward = reward
        self._count = count

    @property
    def max_reward(self) -> float:
        """The maximum reward."""
        return self.reward.max_reward

    @property
    def needs_picture(self) -> bool:
        """Whether the reward needs the image of an example."""
        if isinstance(self.reward, AddedReward):
            return self.reward.needs_picture
        return isinstance(self.reward, LpoReward) and self.reward.reward == "location" and self.reward.windows

    def of_group(
        self, target: Target, completions: Sequence[str], picture: Picture | None = None, scale: Scale = UNSCALED
    ) -> list[Score]:
        """Scores *completions* of one prompt. *scale*: pixels per unit of their coordinates. Raises BadInput if the
        reward does not fit the target."""
        group = [read_completion(text, scale) for text in completions]
        match self.reward:
            case AdaguiReward():
                return self.reward.of_group(target, group, self._count)
            case AddedReward():
                return _one_each(self.reward.kind, self.reward.of_group(target, group, self._count, picture), group)
            case LpoReward():
                return self.reward.of_group(target, group, picture)
            case SslReward() | GuirlvgReward():
                return self.reward.of_group(target, group)


def _one_each(kind: str, scores: object, group: Sequence[object]) -> list[Score]:
    """The *scores* of a package's reward. Raises BadInput unless there is one for each completion of *group*."""
    listed = cast("Sequence[object]", scores) if isinstance(scores, Sequence) else ()
    known = [score for score in listed if isinstance(score, Score)]
    if len(known) == len(listed) == len(group):
        return known
    raise BadInput(
        f"reward {kind!r}: of_group must return a list with one Score for each of the {len(group)} completions, got"
        f" {scores!r:.80}"
    )
