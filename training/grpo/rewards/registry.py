"""Registry of the rewards that a GRPO run can name. Installed packages add rewards through the entry-point group
`mira.rewards`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from envs.core.errors import BadInput
from envs.core.plain_values import first_problem
from envs.core.record import Record
from models.registry import REWARDS as GROUP
from models.registry import Registry
from models.vision.answers import ParsedCompletion, TokenCount
from training.grpo.rewards.score import Score
from training.grpo.rewards.targets import Target


class AddedReward(Record):
    """Base class of a package's reward: its settings as fields, and the function that rewards a group.

    A subclass sets the default of `kind` to the name of its entry.
    """

    kind: str = "NAME"

    @property
    @abstractmethod
    def max_reward(self) -> float:
        """The maximum reward. The minimum is 0."""

    @abstractmethod
    def of_group(
        self, target: Target, group: Sequence[ParsedCompletion], count: TokenCount, picture: bytes | None
    ) -> list[Score]:
        """Scores each completion; finite for every text. *count* counts a text's tokens with the policy's tokenizer.
        *picture* is the example's image, if `needs_picture`. Raises BadInput if the reward does not fit the target."""

    @property
    def needs_picture(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class RewardEntry:
    """A reward that a run names: `--set recipe=NAME`, or `--set reward.kind=NAME` with another recipe."""

    settings: type[Record]
    """A subclass of :class:`AddedReward`, or a built-in reward."""
    recipe: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """GRPO settings that belong to the reward, such as `group` and `kl`, by configuration key."""


REWARDS: Final = Registry(
    GROUP,
    RewardEntry,
    {name: f"training.grpo.rewards.{name}:ENTRY" for name in ("ssl", "guirlvg", "adagui", "lpo")},
    error=BadInput,
)


def added_reward(value: object) -> AddedReward:
    """Builds a package's reward from its settings; `kind` names the entry point. Raises ValueError for anything
    else."""
    if isinstance(value, AddedReward):
        return value
    name = str(value.get("kind")) if isinstance(value, Mapping) else ""
    try:
        settings = REWARDS.load(name).settings
    except BadInput as error:
        raise ValueError(str(error)) from error
    if not issubclass(settings, AddedReward):
        raise ValueError(f"{GROUP} entry {name!r}: {settings.__name__} is not a subclass of AddedReward")
    try:
        return settings.model_validate(value)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from error


def recipe_of(name: str) -> dict[str, Any]:
    """Returns the GRPO settings for the reward *name*, including its kind. Raises BadInput."""
    return {"reward": {"kind": name}, **REWARDS.load(name).recipe}
