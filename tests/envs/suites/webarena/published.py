"""Locates the published task files, if this machine has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.suites.wheel_data import DATA, cached

SHARED = Path(__file__).parents[5] / "shared" / "data" / "webarena_lite"
FILES = {
    "webarena-lite": "test_webarena_lite.raw.json",
    "webarena": "webarena_812.raw.json",
    "webarena-verified": "webarena-verified.json",
    "subset": "webarena-verified-hard.subset.json",
}


def published(name: str) -> Path:
    """The file next to the repository, else in the cache."""
    shared = SHARED / FILES[name]
    if shared.exists():
        return shared
    data = DATA["webarena-verified" if name == "subset" else name]
    folder = cached(data)
    if folder is None:
        pytest.skip(f"needs `mira data get {data.name}`")
    return folder / data.files[1 if name == "subset" else 0].name
