"""Rewards that differ within every group, for models with random weights, which are never right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from training.grpo import trainer
from training.grpo.rewards import UNSCALED, Rewarder, Scale, Score, Target
from training.grpo.settings import GrpoSettings
from training.grpo.trainer import token_count


class PlaceRewarder(Rewarder):
    """Rewards a completion by its place in the group."""

    def of_group(
        self, target: Target, completions: Sequence[str], picture: bytes | None = None, scale: Scale = UNSCALED
    ) -> list[Score]:
        return [Score(float(place), {}) for place in range(len(completions))]


def reward_by_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings use :class:`PlaceRewarder` from here on."""

    def build(config: GrpoSettings, processor: Any) -> Rewarder:
        return PlaceRewarder(config.reward, token_count(processor))

    monkeypatch.setattr(trainer, "build_rewarder", build)
