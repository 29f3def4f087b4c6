"""What the potential critic adds to the advantages that an actor learned from: the same rows with and without shaping.

    python -m benchmarks.shaping runs/long/mira/seed-0

A line for each phase of a run of `mira train mira`: the mean advantage of successes' actions, and of failures'; how
many actions of successes are pushed down (a negative advantage); and how much is pulled up for what is pushed down (sum
of the positive advantages by that of the negative ones). Each as it was / with α = 0 and the same value critic.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.percentages import share
from training.data.cache import read_rows
from training.data.columns import Column
from training.loop.data import read_episodes
from training.loop.parts import read_record
from training.loop.settings import LoopSettings
from training.mira.targets import row_advantages


def advantages_of(phase: Path, settings: LoopSettings) -> tuple[NDArray[np.bool_], Sequence[NDArray[np.float64]]]:
    """(which rows are of successes, (advantages as they were, those without shaping)), each of N rows."""
    rows, columns = read_rows(phase / "actor" / "rows.parquet")
    new, replayed = read_episodes(phase)
    sparse = settings.targets.model_copy(update={"alpha": 0.0})
    plain = row_advantages(new + replayed, rows, columns[Column.POTENTIAL], columns[Column.VALUE], sparse)
    return np.array(columns[Column.SUCCESS]) > 0, (np.array(columns[Column.ADVANTAGE]), np.array(plain))


def line(phase: Path, settings: LoopSettings) -> str:
    won, both = advantages_of(phase, settings)
    cells = [phase.name.removeprefix("phase-"), str(len(won))]
    cells += [" / ".join(f"{one[these].mean():+.2f}" for one in both) for these in (won, ~won)]
    cells.append(" / ".join(share(float((one[won] < 0).mean())) for one in both))
    cells.append(" / ".join(f"{one[one > 0].sum() / -one[one < 0].sum():.2f}" for one in both))
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="of an arm whose actor sees every row")
    run = parser.parse_args().run
    settings = read_record(run / "config.json", LoopSettings)
    print(
        "| phase | rows | A on successes | A on failures | successes' actions pushed down | pulled up by pushed down |"
    )
    print("|---|---|---|---|---|---|")
    for phase in sorted(run.glob("phase-*")):
        if (phase / "actor" / "model").exists():
            print(line(phase, settings))


if __name__ == "__main__":
    main()
