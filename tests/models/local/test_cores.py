"""The number of threads follows the cores that a process may use, not those of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from models.local.cores import usable_cores

ALL = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "100000000 100000\n"}, ALL),
        ({"cpu.max": "max 100000\n"}, ALL),
        ({"cpu.max": "?"}, ALL),
        ({"cpu/cpu.cfs_quota_us": "90000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, ALL),
        ({}, ALL),
    ],
)
def test_a_quota_of_the_container_counts(tmp_path: Path, files: dict[str, str], cores: int) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_cores(tmp_path) == cores


def test_affinity_counts(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert usable_cores(tmp_path) == 1
    finally:
        os.sched_setaffinity(0, before)
