"""The learning rates of a loop's stages, checked before anything is played."""

from __future__ import annotations

import math
from collections.abc import Iterator

from training.engine.learning_rate_check import UpdateBound, check_head, check_rate
from training.loop.settings import ActorSettings, CriticSettings, LoopSettings


def check_rates(settings: LoopSettings, width: int) -> None:
    """Raises BadInput where a stage's learning rate is too low to change a model of *width*, with the maximum number of
    rows of a phase."""
    for stage, bound in rate_bounds(settings, width):
        check_rate(bound)
        if isinstance(stage, CriticSettings):
            key = bound.name.replace("optimization", "head_rate")
            check_head(bound, key, stage.rate_of_head)


def rate_bounds(settings: LoopSettings, width: int) -> Iterator[tuple[CriticSettings | ActorSettings, UpdateBound]]:
    """The bound of each stage. A critic has at most the actor's rows, except for demonstrations in the first phase."""
    play = settings.rollouts
    rounds = 1 + settings.groups.redraws if settings.grouped else 1
    rows = math.ceil(rounds * play.tasks * play.attempts * play.limits.max_steps * (1 + settings.replay.per_new))
    lora = settings.compute.needed_lora if settings.compute.shared_base else settings.compute.lora
    stages: dict[str, CriticSettings | ActorSettings] = {"actor": settings.actor}
    stages |= {"potential": settings.potential} if settings.needs_potential else {}
    stages |= {"value": settings.value} if settings.needs_value else {}
    for name, stage in stages.items():
        optimization = stage.optimization
        steps = optimization.epochs * math.ceil(rows / optimization.batch_rows)
        yield stage, UpdateBound(f"{name}.optimization", optimization, steps, width, lora)
