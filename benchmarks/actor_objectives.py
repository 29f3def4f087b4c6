"""The effect of one update of the actor on steps that it was not trained on: the rows of one phase, one objective after
another, no browser.

    python -m benchmarks.actor_objectives runs/arms/mira/seed-1/phase-3 --oracle runs/oracle \\
        --later runs/arms/*/seed-1/phase-[56] --out runs/objectives paper 'beta=0.5' more 'alpha=0.6' \\
        cloning 'kind="cloning" keep="successes"'

The yardsticks: of the steps in runs of an oracle (`--oracle`), on instances that no phase holds, how many the updated
policy does as it did, without a milestone and with it, and of how many tasks every step (without); and on prompts and
actions of other phases (`--later`) that the phase did not hold, how probable their successes' actions become, by
whether the policy that began it would have taken them, and the gain, the mean of their advantage × (ratio of the
probabilities after and before, at most 2, less 1), where those phases had critics. The gain counts improbable actions
of failures as much as probable ones and has misled (docs/results/training_trials.md).

Each objective is a NAME and its changes of `Objective`, `Optimization` and `TargetSettings`: `key=value` with TOML's
values, blanks between them; `keep="successes"` leaves failures out, `seed=7` learns in another order. With a change of
the targets advantages are computed again from the scores of the phase's critics. All models stay in OUT, and a
name that is there is not trained again. One phase and one seed: a difference is a hint for the loop, not a result of
it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.step_accuracy import ASKED, Steps
from training.data.cache import read_rows
from training.data.columns import Column, Columns
from training.data.rows import Row
from training.engine.annotate import score_completions
from training.engine.checkpoints import load_policy
from training.engine.settings import Optimization
from training.engine.stage_jobs import StageJob, launch, write_job
from training.loop.data import read_episodes
from training.loop.parts import read_record
from training.loop.settings import LoopSettings, override
from training.mira.targets import TargetSettings, row_advantages

PACK_TOKENS = 2_048
RARE = 0.5
"""An action of a smaller probability is one that the policy has yet to learn."""

MOST = 2.0
"""Of a ratio: one action that became a hundred times as probable must not be the whole gain."""

Probabilities = NDArray[np.float64]


class Phase(NamedTuple):
    folder: Path
    job: StageJob
    rows: Sequence[Row]
    columns: Columns

    @classmethod
    def read(cls, folder: Path) -> Phase:
        rows, columns = read_rows(folder / "actor" / "rows.parquet")
        return cls(folder, StageJob.model_validate_json((folder / "actor" / "job.json").read_text()), rows, columns)

    def advantages(self, changes: Mapping[str, Any]) -> Sequence[float]:
        """Of every row, from the values of the phase's critics, with *changes* of the run's targets."""
        own = read_record(self.folder.parent / "config.json", LoopSettings).targets
        targets = TargetSettings.model_validate({**own.model_dump(), **changes})
        new, replayed = read_episodes(self.folder)
        return row_advantages(
            new + replayed, self.rows, self.columns[Column.POTENTIAL], self.columns[Column.VALUE], targets
        )


def trained(phase: Phase, changes: Mapping[str, Any], out: Path) -> Path:
    """The policy after *changes* of the phase's job, learned from the phase's rows."""
    own = dict(changes)
    keep, seed = own.pop("keep", "all"), own.pop("seed", phase.job.seed)
    optimization = {key: own.pop(key) for key in Optimization.model_fields if key in own}
    targets = {key: own.pop(key) for key in TargetSettings.model_fields if key in own}
    values = phase.job.model_dump(mode="json") | {"seed": seed}
    job = StageJob.model_validate(
        {**values, "optimization": values["optimization"] | optimization, "objective": values["objective"] | own}
    )
    columns = dict(phase.columns)
    if targets:
        columns[Column.ADVANTAGE] = phase.advantages(targets)
    kept = [place for place, won in enumerate(columns[Column.SUCCESS]) if won or keep != "successes"]
    if not (out / "model").exists():
        chosen = {name: [values[place] for place in kept] for name, values in columns.items()}
        write_job(out, job, [phase.rows[place] for place in kept], chosen)
    return launch(out)


def probabilities(policy: Path, rows: Sequence[Row]) -> Probabilities:
    """Of each row's whole action."""
    model, _ = load_policy(policy)
    return np.exp(score_completions(model.eval(), rows, PACK_TOKENS))


class Yardstick(Protocol):
    @property
    def heads(self) -> Sequence[str]: ...

    def cells(self, policy: Path) -> Sequence[str]:
        """What is measured of the checkpoint *policy*, one for each head."""
        ...


class Later:
    """Actions of other phases, that *phase* did not hold."""

    def __init__(self, phase: Phase, others: Sequence[Path]) -> None:
        known = {(row.prompt, row.completion) for row in phase.rows}
        found: dict[Any, tuple[Row, float, bool]] = {}
        for other in (Phase.read(folder) for folder in others):
            columns = other.columns
            for row, advantage, won in zip(other.rows, columns[Column.ADVANTAGE], columns[Column.SUCCESS], strict=True):
                if (row.prompt, row.completion) not in known:
                    found[row.prompt, row.completion, won] = (row, advantage, won > 0)
        rows, advantages, wins = zip(*found.values(), strict=True)
        self._rows: Sequence[Row] = rows
        self._advantages, self._won = np.array(advantages), np.array(wins)
        self._before = probabilities(phase.job.start, rows)

    @property
    def heads(self) -> Sequence[str]:
        rare, won = (self._won & (self._before < RARE)).sum(), self._won.sum()
        return (f"gain ({len(self._rows)} actions)", f"rare successes ({rare})", f"others ({won - rare})")

    def cells(self, policy: Path) -> Sequence[str]:
        after = probabilities(policy, self._rows)
        gain = (self._advantages * (np.minimum(after / self._before, MOST) - 1)).mean()
        rare = self._before < RARE
        return (f"{gain:+.4f}", *(f"{after[self._won & these].mean():.3f}" for these in (rare, ~rare)))


class OracleSteps:
    def __init__(self, runs: Sequence[Path]) -> None:
        self._steps = Steps(runs)

    @property
    def heads(self) -> Sequence[str]:
        return (*(f"oracle's steps {asked} ({len(self._steps)})" for asked in ASKED), "whole tasks")

    def cells(self, policy: Path) -> Sequence[str]:
        hits = self._steps.right(policy)
        whole = self._steps.by_task(hits[ASKED.index("without")]).values()
        return (*(str(sum(found)) for found in hits), f"{sum(map(all, whole))} of {len(whole)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phase", type=Path, help="folder of a finished phase of `mira train mira`")
    parser.add_argument("objectives", nargs="+", help="NAME 'key=value key=value', in pairs")
    parser.add_argument("--later", type=Path, nargs="+", help="phases that were played after it, or of another seed")
    parser.add_argument("--oracle", type=Path, nargs="+", help="runs of an oracle")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if len(args.objectives) % 2:
        parser.error("each objective is a name and its changes: paper 'beta=0.5'")
    if not args.later and not args.oracle:
        parser.error("nothing to measure with: give --oracle, --later or both")
    os.environ["HF_HUB_OFFLINE"] = "1"
    phase = Phase.read(args.phase)
    yardsticks: list[Yardstick] = []
    if args.oracle:
        yardsticks.append(OracleSteps(args.oracle))
    if args.later:
        yardsticks.append(Later(phase, args.later))

    def row(name: str, policy: Path) -> None:
        cells = [cell for one in yardsticks for cell in one.cells(policy)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)

    heads = [head for one in yardsticks for head in one.heads]
    print(f"| objective | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}")
    row("before", phase.job.start)
    for name, changes in zip(args.objectives[::2], args.objectives[1::2], strict=True):
        asked = {key: value for word in changes.split() for key, value in override(word).items()}
        row(f"{name} (`{changes}`)", trained(phase, asked, args.out / name))


if __name__ == "__main__":
    main()
