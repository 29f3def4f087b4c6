"""Packages that the core installation leaves out: whether they are there, and the command that adds them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from models.base import ModelUnavailable

LOCAL_PACKAGES: Final = ("torch", "transformers", "safetensors")
"""What `local:` imports."""


def missing_modules(*names: str) -> tuple[str, ...]:
    """Those of *names*, top-level modules, that cannot be imported here; none of them is imported."""
    return tuple(name for name in names if find_spec(name) is None)


def install_command(extra: str) -> str:
    return f"pip install 'mira-web[{extra}]'"


def require(what: str, extra: str, *names: str) -> None:
    """Raises :class:`ModelUnavailable` in one line where a module that *what* needs is missing."""
    if missing := missing_modules(*names):
        raise ModelUnavailable(f"{what} needs {', '.join(missing)}: {install_command(extra)}")
