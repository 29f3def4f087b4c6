"""The share of the rows' tokens that packed sequences hold: a prefix that several rows share is computed once.

    python -m benchmarks.pack_share runs/mira/phase-1
    python -m benchmarks.pack_share runs/full --pack-tokens 16384

For a phase of `mira train`: the rows of its actor. For a run: every episode, in the tokens of the embedded model.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from agent.run.discover_traces import discover_traces
from models.embedded import embedded_dir
from training.data.cache import read_rows
from training.data.packing import packed_sequences
from training.data.rows import Row, RowEncoder
from training.data.trajectories import select
from training.engine.checkpoints import load_tokenizer
from training.engine.critic_model import states_of
from training.engine.step_plan import Plan

STEPS = (16, 128)
"""Rows of an optimizer step."""


def read_share(rows: Sequence[Row], pack_tokens: int, batch_rows: int | None = None) -> float:
    """Of the tokens of *rows* those that are computed, in one pass or in an epoch of steps of *batch_rows*."""
    if batch_rows is None:
        read = list(packed_sequences(rows, pack_tokens))
    else:
        plan = Plan(rows, batch_rows=batch_rows, pack_tokens=pack_tokens, epochs=1, seed=0)
        read = [plan.packed(one) for step in range(len(plan)) for one in plan[step].packs]
    return round(sum(packed.input_ids.shape[1] for packed in read) / sum(map(len, rows)), 3)


def rows_in(folder: Path) -> Sequence[Row]:
    """Of a phase or a run. Raises BadInput."""
    learned = folder / "actor" / "rows.parquet"
    if learned.is_file():
        return read_rows(learned)[0]
    kept = select((one.read(), one.blobs) for one in discover_traces([folder])).kept
    return RowEncoder(load_tokenizer(embedded_dir()), 16_384).encode(kept).rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--pack-tokens", type=int, default=2_048)
    given = options.parse_args()
    rows = rows_in(given.folder)
    found = {
        name: {
            "scored": read_share(kind, given.pack_tokens),
            **{f"learned, steps of {n}": read_share(kind, given.pack_tokens, n) for n in STEPS},
        }
        for name, kind in (("states", states_of(rows)), ("actions", rows))
    }
    print(json.dumps({"rows": len(rows), "mean_tokens": round(sum(map(len, rows)) / len(rows)), **found}))


if __name__ == "__main__":
    main()
