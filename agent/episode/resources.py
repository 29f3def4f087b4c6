"""What a run provides to its policy beside the page: declared secrets, and files that may be uploaded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Provided:
    """Names only; values and contents are never part of it."""

    secrets: tuple[tuple[str, str], ...] = ()
    """Name of each declared secret, and the origins at which it may be typed."""
    files: tuple[str, ...] = ()
    """Paths below the upload folder, as an `upload` names them."""


NOTHING = Provided()
