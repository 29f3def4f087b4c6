"""Muon in float32: momentum whose matrix is made orthogonal before it is applied [Jordan et al. 2024].

`torch.optim.Muon` runs its Newton-Schulz iteration in bfloat16, which on a CPU without bfloat16 arithmetic takes longer
than the step itself. Matrices of one shape are iterated as one batch here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Quintic whose iteration sends every singular value into about [0.7, 1.2] (Jordan et al.)."""


def orthogonal(batch: Tensor, steps: int = 5) -> Tensor:
    """[B, m, n] with m <= n → the nearest semi-orthogonal matrices, roughly."""
    a, b, c = COEFFICIENTS
    x = batch / (batch.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


class Muon(torch.optim.Optimizer):
    """For 2-D hidden weights only. The update's root mean square is about 0.2 of the rate, as AdamW's is."""

    def __init__(
        self, params: Iterable[Tensor], lr: float, *, momentum: float = 0.95, weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """One update; *closure* is not supported."""
        if closure is not None:
            raise ValueError("Muon takes no closure")
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[parameter.shape].append(parameter)
            for parameters in by_shape.values():
                self._update(parameters, group)

    def _update(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        directions = [self._direction(parameter, group["momentum"]) for parameter in parameters]
        stacked = torch.stack(directions)
        flip = stacked.shape[1] > stacked.shape[2]
        update = orthogonal(stacked.mT if flip else stacked)
        update = update.mT if flip else update
        scale = 0.2 * max(stacked.shape[1:]) ** 0.5
        for parameter, change in zip(parameters, update, strict=True):
            parameter.mul_(1 - group["lr"] * group["weight_decay"]).add_(change, alpha=-group["lr"] * scale)

    def _direction(self, parameter: Tensor, momentum: float) -> Tensor:
        """Nesterov momentum of the gradient."""
        gradient = parameter.grad
        assert gradient is not None
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(gradient)
        state["momentum"].lerp_(gradient, 1 - momentum)
        return gradient.lerp(state["momentum"], momentum)
