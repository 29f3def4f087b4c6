"""What one update of the actor does to successes that it has not learned from: the rows of one phase, one objective
after another, no browser.

    python -m benchmarks.actor_objectives runs/arms/mira/seed-1/phase-3 --later runs/arms/*/seed-1/phase-[56] \\
        --out runs/objectives paper 'beta=0.5' cloning 'kind="cloning" keep="successes"'

The yardsticks, on prompts and actions of other phases that the phase did not hold: how probable their successes'
actions become, by whether the policy that began it would have taken them; and the gain, the mean of their advantage ×
(ratio of the probabilities after and before, at most 2, less 1), where those phases had critics. Each objective is a
NAME and its changes of `Objective` and `Optimization`: `key=value` with
TOML's values, blanks between them; `keep="successes"` leaves failures out. Every trained model stays in OUT, and a name
that is there is not trained again. One phase and one seed: a difference is a hint for the loop, not a result of it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from training.data.cache import read_rows
from training.data.rows import Row
from training.loop.settings import override
from training.stages.annotate import score_actions
from training.stages.checkpoints import load_policy
from training.stages.jobs import StageJob, launch, write_job
from training.stages.settings import Optimization

PACK_TOKENS = 2_048
RARE = 0.5
"""An action of a smaller probability is one that the policy has yet to learn."""

MOST = 2.0
"""Of a ratio: one action that became a hundred times as probable must not be the whole gain."""

Probabilities = NDArray[np.float64]


class Phase(NamedTuple):
    job: StageJob
    rows: Sequence[Row]
    columns: Mapping[str, Sequence[float]]

    @classmethod
    def read(cls, folder: Path) -> Phase:
        rows, columns = read_rows(folder / "actor" / "rows.parquet")
        return cls(StageJob.model_validate_json((folder / "actor" / "job.json").read_text()), rows, columns)


class Unseen(NamedTuple):
    """Actions that a phase did not hold, N of them."""

    rows: Sequence[Row]
    advantages: NDArray[np.float64]
    won: NDArray[np.bool_]


def trained(phase: Phase, changes: Mapping[str, Any], out: Path) -> Path:
    """The policy after *changes* of the phase's job, learned from the phase's rows."""
    own = {key: value for key, value in changes.items() if key != "keep"}
    how = {key: own.pop(key) for key in Optimization.model_fields if key in own}
    values = phase.job.model_dump(mode="json")
    job = StageJob.model_validate(
        {**values, "optimization": values["optimization"] | how, "objective": values["objective"] | own}
    )
    won = phase.columns["success"]
    kept = [place for place in range(len(phase.rows)) if won[place] or changes.get("keep") != "successes"]
    if not (out / "model").exists():
        chosen = {name: [values[place] for place in kept] for name, values in phase.columns.items()}
        write_job(out, job, [phase.rows[place] for place in kept], chosen)
    return launch(out)


def probabilities(policy: Path, rows: Sequence[Row]) -> Probabilities:
    """Of each row's whole action."""
    model, _ = load_policy(policy)
    return np.exp(score_actions(model.eval(), rows, PACK_TOKENS)[0])


def unseen(phase: Phase, later: Sequence[Path]) -> Unseen:
    known = {(row.prompt, row.action) for row in phase.rows}
    found: dict[Any, tuple[Row, float, bool]] = {}
    for folder in later:
        other = Phase.read(folder)
        for row, advantage, won in zip(other.rows, other.columns["advantage"], other.columns["success"], strict=True):
            if (row.prompt, row.action) not in known:
                found[row.prompt, row.action, won] = (row, advantage, won > 0)
    rows, advantages, wins = zip(*found.values(), strict=True)
    return Unseen(rows, np.array(advantages), np.array(wins))


def told(name: str, held: Unseen, before: Probabilities, after: Probabilities) -> str:
    rare, others = held.won & (before < RARE), held.won & (before >= RARE)
    gain = (held.advantages * (np.minimum(after / before, MOST) - 1)).mean()
    shares = [after[these].mean() for these in (rare, others, held.won)]
    return f"| {name} | {gain:+.4f} | " + " | ".join(f"{share:.3f}" for share in shares) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phase", type=Path, help="folder of a finished phase of `mira train mira`")
    parser.add_argument("objectives", nargs="+", help="NAME 'key=value key=value', in pairs")
    parser.add_argument(
        "--later", type=Path, nargs="+", required=True, help="phases that were played after it, or of another seed"
    )
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if len(args.objectives) % 2:
        parser.error("each objective is a name and its changes: paper 'beta=0.5'")
    os.environ["HF_HUB_OFFLINE"] = "1"
    phase = Phase.read(args.phase)
    held = unseen(phase, args.later)
    before = probabilities(phase.job.start, held.rows)
    rare, won = (held.won & (before < RARE)).sum(), held.won.sum()
    print(f"{len(held.rows)} actions")
    print(f"| objective | gain | rare successes ({rare}) | others ({won - rare}) | all |\n|---|---|---|---|---|")
    print(told("before", held, before, before), flush=True)
    for name, changes in zip(args.objectives[::2], args.objectives[1::2], strict=True):
        asked = {key: value for word in changes.split() for key, value in override(word).items()}
        found = probabilities(trained(phase, asked, args.out / name), held.rows)
        print(told(f"{name} (`{changes}`)", held, before, found), flush=True)


if __name__ == "__main__":
    main()
