"""Fixtures of the tests that start processes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home() -> Iterator[Path]:
    """TMPDIR of a child process, which all processes of its browser name. Socket paths must be short."""
    with tempfile.TemporaryDirectory(prefix="mk-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
