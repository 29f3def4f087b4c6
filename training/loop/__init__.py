"""The outer loop (MiRA paper, Alg. 2): play, keep what can be learned from, train critics and actor, measure, choose.

    OUT/
    ├── config.json            the resolved configuration
    ├── progress.json          what `mira train show` reads
    ├── tensorboard/           scalars of each phase, where `report_to` says tensorboard
    ├── phase-0/evaluation/run the start, measured
    └── phase-1 …
        ├── tasks.json         what is played, and why
        ├── rollouts/run       a run, as `mira run` leaves it; rollouts.json says where, if it is shared
        ├── data/              trajectories and rows as Parquet, summary.json, replay.json
        ├── potential/ value/  the critics, see training.engine.stage_jobs
        ├── actor/             the same, its rows with every column; `mira run --policy local:OUT/phase-1/actor/model`
        ├── evaluation/run     a run on held-out instances
        └── metrics.json

Every part is whole or absent: a killed loop continues with the part it was in.
"""
