"""Settings of `mira train sft` on examples: a TOML file over the supervised row of a paper, every key checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from envs.core.errors import BadInput
from envs.core.plain_values import Layer, checked, merged
from envs.core.record import Record
from models.vision.coordinates import CoordinateSpace
from training.engine.settings import Compute, Optimization, none_if_named
from training.grpo.prompts import PromptSettings
from training.grpo.recipes import Stage, layered, recipe_named
from training.loop.settings import SET, values_of


class ImitationSettings(Record):
    """Settings of `mira train sft` on examples."""

    prompt: Annotated[PromptSettings | None, BeforeValidator(none_if_named)] = None
    """The form in which questions are asked again; None (in a file `"none"`): as the examples ask them."""
    coordinates: CoordinateSpace = CoordinateSpace.PIXELS
    """Units of the coordinates in answers, see :attr:`training.grpo.settings.GrpoSettings.coordinates`."""
    min_pixels: int | None = Field(default=None, ge=1)
    max_pixels: int | None = Field(default=None, ge=1)
    share: float = Field(default=1.0, gt=0, le=1)
    steps: Annotated[int | None, BeforeValidator(none_if_named)] = Field(default=None, ge=1)
    """Optimizer steps; None: as many as the epochs take."""
    freeze_vision: bool = False
    """As in :attr:`training.grpo.settings.GrpoSettings.freeze_vision`."""
    optimization: Optimization = Optimization(learning_rate=1e-5, schedule="cosine", warmup=0.1, batch_rows=32)
    compute: Compute = Compute()
    seed: int = 0
    report_to: tuple[str, ...] = ()
    """Experiment trackers of transformers, such as `tensorboard`."""

    @model_validator(mode="after")
    def _has_one_model(self) -> Self:
        self.optimization.check_trains(self.steps)
        self.compute.check_one_model()
        return self

    def count_updates(self, examples: int) -> int:
        """Number of optimizer steps on *examples* examples."""
        return self.steps or self.optimization.epochs * math.ceil(examples / self.optimization.batch_rows)

    @classmethod
    def load(cls, path: Path | None, changes: Sequence[str], recipe: str | None = None) -> ImitationSettings:
        """Reads a TOML file, if any, over the *recipe* and under *changes*. Raises BadInput."""
        row = None if recipe is None else recipe_named(recipe)
        if row is not None and row.stage is not Stage.SFT:
            raise BadInput(f"recipe {recipe!r} is not supervised: mira train grpo EXAMPLES --recipe {recipe}")
        over = Layer(SET, values_of(None, changes))
        below = merged(cls().model_dump(mode="json"), {} if row is None else layered(row))
        return checked(cls, merged(below, values_of(path, changes)), str(path or SET), over)
