"""The outer loop (SPEC §1.7, Alg. 2): play, keep what can be learned from, train critics and actor, measure, choose.

    OUT/
    ├── config.json            the resolved configuration
    ├── phase-0/evaluation     the start, measured
    └── phase-1 …
        ├── tasks.json         what is played, and why
        ├── rollouts/          a run, as `mira run` leaves it
        ├── data/              trajectories.parquet, rows.parquet with every column that was learned from, summary.json
        ├── potential/ value/  the critics
        ├── policy/            the new checkpoint: `mira run --policy local:OUT/phase-1/policy`
        ├── evaluation/        a run on held-out instances
        └── metrics.json

Every part is whole or absent: a killed loop goes on with the part it was in.
"""
