"""Settings of `mira train adagui-data`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from envs.core.errors import BadInput
from envs.core.plain_values import Layer, checked, merged
from envs.core.record import Record
from models.vision.coordinates import CoordinateSpace
from training.grpo.recipes import data_settings, recipe_named
from training.loop.settings import SET, values_of


class AdaptiveSettings(Record):
    """How thoughts are made. The constants are those of AdaGUI-R1 where it states them."""

    samples: int = Field(default=10, ge=1)
    """N: answers sampled for a step's difficulty (§3.2)."""
    temperature: float = Field(default=1.0, gt=0, le=2)
    """τ of the samples; not stated."""
    levels: int = Field(default=5, ge=2, le=20)
    hard_above: float = Field(default=0.6, gt=0, lt=1)
    """A level is hard if it is above this share of all levels. The paper's threshold is level 3 of 5."""
    thoughts: Literal["hard", "all"] = "hard"
    """Steps with a thought: hard ones, or all (Table 2, w/o difficulty-aware CoT)."""
    revise: bool = True
    """Revise a thought whose predicted action is judged to be another (Alg. 1, line 7); false keeps the first one
    (Table 2, w/o self-supervised CoT)."""
    decide: bool = False
    """Write the paper's instruction (App. A.4) into the prompts: first decide whether the step needs a thought. Off,
    prompts stay those that the agent sends, so that the trained policy plays with them."""
    coordinates: CoordinateSpace | Literal["auto"] = "auto"
    """Units of the coordinates that both models answer in; `auto`: those of each model's family."""
    answer_tokens: int = Field(default=512, ge=1)
    """Limit of a sampled or predicted answer."""
    thought_tokens: int = Field(default=512, ge=1)
    """Limit of a thought."""
    workers: int = Field(default=4, ge=1)
    """Examples in progress at once."""
    deadline_s: float = Field(default=120.0, gt=0)
    """Seconds of one call."""
    seed: int = 0

    @classmethod
    def load(cls, path: Path | None, changes: Sequence[str], recipe: str | None = None) -> AdaptiveSettings:
        """Reads a TOML file, if any, over the *recipe* and under *changes*. Raises BadInput."""
        over = Layer(SET, values_of(None, changes))
        row = {} if recipe is None else data_settings(recipe_named(recipe))
        if recipe is not None and not row:
            raise BadInput(
                f"recipe {recipe!r} has no first stage: take adagui/full, no-revision, all-thoughts or decide"
            )
        values = merged(merged(cls().model_dump(mode="json"), row), values_of(path, changes))
        return checked(cls, values, str(path or SET), over)
