"""Replaces an attribute of a library for a while, where it offers no hook. The libraries are pinned in pyproject.toml,
and each use has a test that fails where the attribute is gone or no longer read."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType

from torch import nn


@contextmanager
def replaced(owner: ModuleType | nn.Module | type, name: str, value: object) -> Generator[None]:
    """In it the attribute *name* of *owner* is *value*. Raises AttributeError where *owner* has no such attribute."""
    before = getattr(owner, name)
    own = name in vars(owner)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, before)
        else:  # it was an attribute of the class
            delattr(owner, name)
