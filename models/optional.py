"""Checks for packages of optional extras, and names the command that installs them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from models.base import ModelUnavailable

LOCAL_PACKAGES: Final = ("torch", "transformers", "safetensors")
"""Packages that `local:` imports."""


def missing_modules(*names: str) -> tuple[str, ...]:
    """The top-level modules in *names* that are not installed. Imports none of them."""
    return tuple(name for name in names if find_spec(name) is None)


def install_command(extra: str) -> str:
    """How to install *extra*. No version is published, so the command takes the clone."""
    return f"pip install '.[{extra}]' in the clone of Mira"


def missing_line(feature: str, extra: str, *names: str) -> str:
    """One line with the modules in *names* that *feature* needs and that are not installed, and with the command that
    installs them. Empty if none is missing."""
    missing = missing_modules(*names)
    return f"{feature} needs {', '.join(missing)}: {install_command(extra)}" if missing else ""


def require(feature: str, extra: str, *names: str) -> None:
    """Raises :class:`ModelUnavailable`, in one line, if a module that *feature* needs is missing."""
    if line := missing_line(feature, extra, *names):
        raise ModelUnavailable(line)
