"""What one update of the actor does to successes that it has not learned from: the rows of one phase, one objective
after another, no browser.

    python -m benchmarks.actor_objectives runs/arms/mira/seed-1/phase-3 --later runs/arms/*/seed-1/phase-[56] \\
        --out runs/objectives paper 'beta=0.5' cloning 'kind="cloning" keep="successes"'

The yardstick: actions of later phases' successes on prompts that the phase did not hold, by how probable they were to
the policy that began it. Each objective is a NAME and its changes of `Objective` and `Optimization`: `key=value` with
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
from training.mira.annotate import score_actions
from training.stages.checkpoints import load_policy
from training.stages.jobs import StageJob, launch, write_job
from training.stages.settings import Optimization

PACK_TOKENS = 2_048
RARE = 0.5
"""An action of a smaller probability is one that the policy has yet to learn."""

Probabilities = NDArray[np.float64]


class Phase(NamedTuple):
    job: StageJob
    rows: Sequence[Row]
    columns: Mapping[str, Sequence[float]]

    @classmethod
    def read(cls, folder: Path) -> Phase:
        rows, columns = read_rows(folder / "actor" / "rows.parquet")
        return cls(StageJob.model_validate_json((folder / "actor" / "job.json").read_text()), rows, columns)

    def successes(self) -> list[Row]:
        return [row for row, won in zip(self.rows, self.columns["success"], strict=True) if won]


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


def unseen(phase: Phase, later: Sequence[Path]) -> list[Row]:
    known = {(row.prompt, row.action) for row in phase.rows}
    found = {(row.prompt, row.action): row for folder in later for row in Phase.read(folder).successes()}
    return [row for key, row in found.items() if key not in known]


def told(name: str, found: Probabilities, rare: NDArray[np.bool_]) -> str:
    return f"| {name} | {found[rare].mean():.3f} | {found[~rare].mean():.3f} | {found.mean():.3f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phase", type=Path, help="folder of a finished phase of `mira train mira`")
    parser.add_argument("objectives", nargs="+", help="NAME 'key=value key=value', in pairs")
    parser.add_argument("--later", type=Path, nargs="+", required=True, help="phases that were played after it")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if len(args.objectives) % 2:
        parser.error("each objective is a name and its changes: paper 'beta=0.5'")
    os.environ["HF_HUB_OFFLINE"] = "1"
    phase = Phase.read(args.phase)
    rows = unseen(phase, args.later)
    before = probabilities(phase.job.start, rows)
    rare = before < RARE
    print(f"| objective | rare successes ({rare.sum()}) | others ({(~rare).sum()}) | all |\n|---|---|---|---|")
    print(told("before", before, rare), flush=True)
    for name, changes in zip(args.objectives[::2], args.objectives[1::2], strict=True):
        asked = {key: value for word in changes.split() for key, value in override(word).items()}
        found = probabilities(trained(phase, asked, args.out / name), rows)
        print(told(f"{name} (`{changes}`)", found, rare), flush=True)


if __name__ == "__main__":
    main()
