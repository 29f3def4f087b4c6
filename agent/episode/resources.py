"""Resources of a run for its policy: declared secrets and files for upload."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Provided:
    """Names of secrets and files; never their values or contents."""

    secrets: tuple[tuple[str, str], ...] = ()
    """(name, origins at which it may be typed) of each declared secret."""
    files: tuple[str, ...] = ()
    """Paths below the upload folder, as an `upload` names them."""


NOTHING = Provided()
