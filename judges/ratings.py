"""Builds a :class:`envs.core.trace.Rating` from the previous and the new completion vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from envs.core.trace import Flip, Rating

__all__ = ["Source", "make_rating"]

Source = Literal["state", "model", "cheap", "none"]


def first_open(z: Sequence[bool]) -> int | None:
    """0-based index of the first milestone that is not achieved; None if all are, or there are none."""
    return next((index for index, achieved in enumerate(z) if not achieved), None)


def make_rating(
    before: Sequence[bool],
    after: Sequence[bool],
    flips: Sequence[Flip] = (),
    *,
    reason: str = "",
    source: Source,
    preferred_next: int | None = None,
) -> Rating:
    """The three answers of the MiRA paper, Fig. 5, as one record.

    `z` never loses a milestone: it is *before* OR *after*, element by element. *preferred_next* is used only if it is
    an open milestone; otherwise the first open one is next.
    """
    z = tuple(old or new for old, new in zip(before, after, strict=True))
    current = first_open(before)
    names_open = preferred_next is not None and 0 <= preferred_next < len(z) and not z[preferred_next]
    return Rating(
        z=z,
        flips=tuple(flips),
        current_complete=current is not None and z[current],
        next_milestone=preferred_next if names_open else first_open(z),
        reason=reason,
        source=source,
    )
