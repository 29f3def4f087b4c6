"""Checks that a stage's learning rate can change its model: bounds how far AdamW moves weights in the stage's steps.

A step of Adam changes a weight by at most about the learning rate (Kingma & Ba 2015, §2.1), so a stage changes it by at
most the sum of its steps' rates. The effect depends on the initial weights:

* full fine-tuning: inputs of a layer add up over its width, so a layer's output changes by at most `sum · width` of
  itself, for weights of the usual size of 1/√width;
* LoRA: B begins at 0 and A as U(−1/√width, 1/√width), so the output changes by at most `alpha · sum / √3` of itself,
  which is hundreds of times less for the widths of language models;
* a critic's head begins at 0: its logit changes by at most `sum · width · FEATURE`.

On toy stages of 40 steps (widths 128 and 512, full and LoRA) a bound of 0.1 % moves log-probabilities by 2 % of the
target change, of 0.7 % by 20 %, of 2 % by 60 %, and of 5 % by all of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from envs.core.errors import BadInput
from training.engine.settings import Lora, Optimization
from training.engine.trainer import rate_share

LEAST_CHANGE: Final = 0.02
"""Relative change of a layer's output; a stage below it leaves its model practically unchanged."""
ENOUGH_CHANGE: Final = 0.08
"""A stage between `LEAST_CHANGE` and this gets a warning: rows of a phase agree less than a toy stage's."""
LEAST_LOGIT: Final = 0.1
"""A critic whose logits stay below it predicts 0.475 to 0.525 for every state."""
FEATURE: Final = 0.5
"""Size of a value that the head's last layer reads."""
TRIAL_STEPS: Final = 50
"""Shorter stages are checked as if they had this many steps: they are trials."""


@dataclass(frozen=True, slots=True)
class UpdateBound:
    """Bounds the weight updates of a stage. *name* is its table in the configuration, such as `actor.optimization`."""

    name: str
    optimization: Optimization
    steps: int
    """Of the optimizer, as known or expected."""
    width: int
    """Of the model's hidden states."""
    lora: Lora | None

    @property
    def moved(self) -> float:
        """Upper bound on the change of one weight."""
        return self.optimization.learning_rate * self._rates

    @property
    def change(self) -> float:
        """Upper bound on the relative change of a layer's output."""
        return self.moved * (self.width if self.lora is None else self.lora.alpha / math.sqrt(3))

    def logit(self, head_rate: float) -> float:
        """Upper bound on the change of a critic's logit, for a head that learns at *head_rate*."""
        return head_rate * self._rates * self.width * FEATURE

    @property
    def _rates(self) -> float:
        """Sum of the steps' rates, as multiples of the learning rate."""
        return sum(rate_share(self.optimization, step, self._counted) for step in range(self._counted))

    @property
    def _counted(self) -> int:
        return max(TRIAL_STEPS, self.steps)

    def of(self, rate: float) -> str:
        """Describes the bound of *rate*, for a message."""
        moved = f"in {self._counted} steps by {rate * self._rates:.1g}"
        return f"Adam moves a weight by at most about the rate a step, {moved}"


def check_rate(bound: UpdateBound) -> None:
    """Raises BadInput where the stage would leave its model practically unchanged."""
    if problem := rate_problem(bound):
        raise BadInput(problem)


def rate_problem(bound: UpdateBound) -> str:
    """The reason why the stage would leave its model practically unchanged; empty if it would not."""
    if not bound.optimization.epochs or bound.change >= LEAST_CHANGE:
        return ""
    rate = bound.optimization.learning_rate
    begins, advice = "", "take a higher rate"
    if bound.lora is not None:
        begins = f", LoRA's B begins at 0 (alpha {bound.lora.alpha})"
        advice = "take about 1e-4 (published rates of 1e-6 are for fine-tuning every weight)"
    return (
        f"{bound.name}.learning_rate {rate:g} would teach nothing: {bound.of(rate)}{begins}, "
        f"so a layer's output changes by at most {bound.change:.1g} of itself, less than {LEAST_CHANGE:g}: {advice}"
    )


def rate_warning(bound: UpdateBound) -> str:
    """Why the stage may move its model only in part, in one line; empty if it moves it enough, or practically not
    (:func:`rate_problem`)."""
    if not bound.optimization.epochs or not LEAST_CHANGE <= bound.change < ENOUGH_CHANGE:
        return ""
    rate = bound.optimization.learning_rate
    return (
        f"{bound.name}.learning_rate {rate:g} is low: {bound.of(rate)}, so a layer's output changes by at most "
        f"{bound.change:.1g} of itself; below {ENOUGH_CHANGE:g} a model may learn only a part of what it is asked: "
        "take a higher rate"
    )


def check_head(bound: UpdateBound, key: str, head_rate: float) -> None:
    """Raises BadInput where a critic would predict the same for every state; its head learns at *head_rate* (*key*)."""
    logit = bound.logit(head_rate)
    if not bound.optimization.epochs or logit >= LEAST_LOGIT:
        return
    needed = max(1e-4, 2 * head_rate * LEAST_LOGIT / logit)
    raise BadInput(
        f"{key} {head_rate:g} would teach nothing: the head begins at 0, and {bound.of(head_rate)}, "
        f"so its logit changes by at most {logit:.1g}, less than {LEAST_LOGIT:g}: take {needed:.1g} or more"
    )
