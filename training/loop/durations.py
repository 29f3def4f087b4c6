"""Wall seconds of a phase's parts, summed over the processes that ran them: `seconds.json` in the phase's folder."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pydantic import Field

from envs.core.errors import NotWritten
from envs.core.record import Record
from training.loop.parts import read_record, write_record

SECONDS: Final = "seconds.json"
ROLLOUTS: Final = "rollouts"
EVALUATION: Final = "evaluation"


class PartSeconds(Record):
    """The file `seconds.json`."""

    seconds: dict[str, float] = Field(default_factory=dict)
    """By part, in the order in which the parts began to count."""


def read_seconds(folder: Path) -> dict[str, float]:
    """Seconds by part of the phase in *folder*; empty before its first part. Raises BadInput."""
    path = folder / SECONDS
    return dict(read_record(path, PartSeconds).seconds) if path.exists() else {}


@contextmanager
def timed(folder: Path, part: str) -> Generator[None]:
    """Adds the duration of the body to the seconds of *part* of the phase in *folder*, also where the body raises. What
    a killed process did of a part is not counted."""
    begun = time.monotonic()
    try:
        yield
    finally:
        known = read_seconds(folder)
        known[part] = round(known.get(part, 0.0) + time.monotonic() - begun, 2)
        with suppress(NotWritten):  # a full disk ends the part itself
            write_record(folder / SECONDS, PartSeconds(seconds=known))


def training_seconds(seconds: Mapping[str, float]) -> float:
    """Sum of the parts in which nothing is played."""
    return sum(took for part, took in seconds.items() if part not in (ROLLOUTS, EVALUATION))


def by_kind(seconds: Mapping[str, float]) -> dict[str, float]:
    """*seconds* with those of all folds of a critic under the critic's name."""
    sums: dict[str, float] = {}
    for part, took in seconds.items():
        kind = part.partition("-")[0]
        sums[kind] = sums.get(kind, 0.0) + took
    return sums
