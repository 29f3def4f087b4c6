"""Resources of a run for its policy: declared secrets, files for upload, and tools."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Provided:
    """Names of secrets and files, never their values or contents; and tools."""

    secrets: tuple[tuple[str, str], ...] = ()
    """(name, origins at which it may be typed) of each declared secret."""
    files: tuple[str, ...] = ()
    """Paths below the upload folder, as an `upload` names them."""
    tools: tuple[tuple[str, str], ...] = ()
    """(name, line that says what it does and takes) of each tool."""

    @property
    def tool_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.tools)


NOTHING = Provided()
