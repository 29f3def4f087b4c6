"""The order of the prompts in each epoch, equal in a run and in its continuation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import Sampler


class EpochOrders:
    """Mixin for TRL's GRPOTrainer that gives each epoch its :class:`EpochOrder`."""

    state: Any

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        trainer: Any = super()
        return EpochOrder(trainer._get_train_sampler(dataset), lambda: int(self.state.epoch or 0))


class EpochOrder(Sampler[int]):
    """Yields the indices of TRL's *repeated* sampler in an order that depends on the seed and the epoch only.

    TRL's sampler draws the order of each epoch from one generator. In a resumed run, that generator begins with the
    first epoch, because transformers skips only the finished batches of the epoch that it resumes.
    """

    def __init__(self, repeated: Any, finished: Callable[[], int]) -> None:
        """*finished* returns the number of finished epochs; it is called when an epoch begins."""
        self._repeated = repeated
        self._finished = finished

    def __len__(self) -> int:
        return len(self._repeated)

    def __iter__(self) -> Iterator[int]:
        """Draws and drops the orders of the finished epochs, so that the next one is that of an uninterrupted run."""
        generator: torch.Generator = self._repeated.generator
        generator.manual_seed(self._repeated.seed)
        for _ in range(self._finished()):
            torch.randperm(self._repeated.num_samples, generator=generator)
        return iter(self._repeated)
