"""How many CPU cores this process may use: fewer than the machine has, in a container or under `taskset`."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")


def usable_cores(cgroups: Path = CGROUPS) -> int:
    """Cores by affinity and by the CPU quota of the container's *cgroups*, at least 1.

    More threads than cores wait for each other in every layer of a model: the machine's number is no safe default.
    """
    by_affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroups)
    return by_affinity if quota is None else max(1, min(by_affinity, math.ceil(quota)))


def _quota(cgroups: Path) -> float | None:
    """The quota in cores of version 2 (`cpu.max`) or 1; None without one."""
    try:
        words = (cgroups / "cpu.max").read_text(encoding="ascii").split()
    except OSError:
        words = [_text(cgroups / "cpu" / name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
    try:
        quota, period = (float(word) for word in words)
    except ValueError:  # `max`, or no quota
        return None
    return quota / period if quota > 0 and period > 0 else None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except OSError:
        return ""
