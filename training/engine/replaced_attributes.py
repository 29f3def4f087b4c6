"""Replaces an attribute of a library for a while, where it offers no hook. The libraries are pinned in pyproject.toml,
and each use has a test that fails where the attribute is gone or no longer read."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def replaced(module: ModuleType, name: str, value: object) -> Generator[None]:
    """In it the attribute *name* of *module* is *value*. Raises AttributeError where *module* has no such attribute."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)
