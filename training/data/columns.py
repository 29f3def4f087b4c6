"""The typed columns of training rows: the numbers that are stored beside rows in Parquet, one value for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Literal

Dtype = Literal["float64", "bool"]


class Column(StrEnum):
    """Name of a column, as it is stored, with the type of its values."""

    TARGET = "target"
    """What a critic is trained towards, in [0, 1]."""
    ADVANTAGE = "advantage"
    """`A_t` of the row's action."""
    REFERENCE = "reference"
    """`log π_ref(a|s)`: under the policy at the start of the phase, summed over the completion tokens."""
    POTENTIAL = "potential"
    """The potential critic's output for the row's state, in [0, 1]."""
    VALUE = "value"
    """The value critic's output for the row's state, in [0, 1]; with group-relative advantages the mean reward of the
    row's group."""
    SUCCESS = "success"
    """The row's trajectory succeeded."""
    WEIGHT = "weight"
    """Weight of the row in the actor's loss, with mean 1 (:func:`training.mira.credit.step_weights`); without the
    column every row weighs the same. With a loss per token the weight of each token of the row
    (:func:`training.mira.group_advantages.row_weights`)."""
    ALLOWED = "allowed"
    """The actor may learn from the row (:attr:`training.loop.data.PhaseData.allowed`)."""

    @property
    def dtype(self) -> Dtype:
        return "bool" if self in _BOOLEANS else "float64"

    def convert(self, values: Sequence[float]) -> tuple[float, ...]:
        """*values* in the type of the column. Earlier versions stored booleans as 0.0 and 1.0."""
        return tuple(bool(value) for value in values) if self.dtype == "bool" else tuple(values)


_BOOLEANS = frozenset({Column.SUCCESS, Column.ALLOWED})

Columns = Mapping[Column, Sequence[float]]
"""Columns by name; booleans are `bool`."""
