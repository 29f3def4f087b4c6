"""Counts the steps that an expert took in place of the policy (`--expert`): a success with its help is not the policy's
alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from envs.core.record import Record
from envs.core.trace import Footer, Header


class Assisted(NamedTuple):
    """An episode that was played with an expert."""

    steps: int
    by_expert: int | None
    """Steps with the expert's action in place of the policy's; None where the trace does not count them: it is older,
    or has no end."""


class ExpertSteps(Record):
    """The steps of all episodes that were played with an expert."""

    episodes: int
    steps: int
    """Of the episodes that count the expert's."""
    by_expert: int
    uncounted: int
    """Episodes that do not count the expert's steps."""

    @classmethod
    def of(cls, episodes: Iterable[Assisted | None]) -> ExpertSteps | None:
        """The sum; None where no episode was played with an expert."""
        assisted = [episode for episode in episodes if episode is not None]
        counted = [(episode.steps, episode.by_expert) for episode in assisted if episode.by_expert is not None]
        if not assisted:
            return None
        return cls(
            episodes=len(assisted),
            steps=sum(steps for steps, _ in counted),
            by_expert=sum(own for _, own in counted),
            uncounted=len(assisted) - len(counted),
        )

    @property
    def text(self) -> str:
        """`12 of 34 steps were the expert's`, and how many episodes do not count them."""
        counted = f"{self.by_expert} of {self.steps} steps were the expert's"
        if not self.uncounted:
            return counted
        older = f"the expert's steps of {self.uncounted} of {self.episodes} episodes are not counted"
        return older if self.uncounted == self.episodes else f"{counted}, {older}"


def assisted(header: Header, footer: Footer | None) -> Assisted | None:
    """What a trace's *header* and *footer* say of an expert; None where none was asked."""
    config = header.config if footer is None or footer.config is None else footer.config
    if footer is not None and footer.expert_steps is not None:
        return Assisted(footer.totals.steps, footer.expert_steps)
    if not config.get("expert"):
        return None
    return Assisted(0 if footer is None else footer.totals.steps, None)
