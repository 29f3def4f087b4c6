"""The learning rates of a loop's stages, checked before anything is played and again with the first phase's rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

from training.engine.learning_rate_check import UpdateBound, check_head, check_rate, rate_problem, rate_warning
from training.loop.settings import ActorSettings, CriticSettings, LoopSettings

EPISODE_STEPS: Final = 7
"""Expected steps of an episode, and so its rows, unless `rollouts.limits.max_steps` is less. An upper bound, such as
`max_steps` with all possible replay, would accept rates that are a tenth of what a phase needs."""


def check_rates(settings: LoopSettings, width: int, log: Callable[[str], None] | None = None) -> None:
    """Raises BadInput where a stage's learning rate is too low to change a model of *width* in the steps that the first
    phase is expected to have; *log* gets a warning where it can change it only in part."""
    for stage, bound in rate_bounds(settings, width):
        check_rate(bound)
        if isinstance(stage, CriticSettings):
            key = bound.name.replace("optimization", "head_rate")
            check_head(bound, key, stage.rate_of_head)
        if log is not None and (warning := rate_warning(bound)):
            log(f"warning: {warning}")


def warn_of_rates(settings: LoopSettings, width: int, rows: int, log: Callable[[str], None]) -> None:
    """Logs a warning for each stage whose learning rate is too low with the first phase's *rows*. Nothing is refused:
    the rollouts are played. The actor and the potential critic may learn from a part of the rows."""
    for _, bound in rate_bounds(settings, width, rows):
        if problem := rate_problem(bound) or rate_warning(bound):
            log(f"warning: {problem}")


def rate_bounds(
    settings: LoopSettings, width: int, rows: int | None = None
) -> Iterator[tuple[CriticSettings | ActorSettings, UpdateBound]]:
    """The bound of each stage for a phase with *rows*; None: :func:`expected_rows`. A critic has at most the actor's
    rows, except for demonstrations in the first phase."""
    rows = expected_rows(settings) if rows is None else rows
    lora = settings.compute.needed_lora if settings.compute.shared_base else settings.compute.lora
    stages: dict[str, CriticSettings | ActorSettings] = {"actor": settings.actor}
    stages |= {"potential": settings.potential} if settings.needs_potential else {}
    stages |= {"value": settings.value} if settings.needs_value else {}
    for name, stage in stages.items():
        optimization = stage.optimization
        steps = optimization.epochs * math.ceil(rows / optimization.batch_rows)
        yield stage, UpdateBound(f"{name}.optimization", optimization, steps, width, lora)


def expected_rows(settings: LoopSettings) -> int:
    """Rows that the first phase is expected to have: `EPISODE_STEPS` of each episode. Nothing is replayed in it, and
    groups may play all of their rounds."""
    play = settings.rollouts
    rounds = 1 + settings.groups.redraws if settings.grouped else 1
    return rounds * play.tasks * play.attempts * min(play.limits.max_steps, EPISODE_STEPS)
