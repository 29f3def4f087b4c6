"""The outer training loop (MiRA paper, Alg. 2): play, select data, train critics and actor, evaluate, choose tasks.

    OUT/
    ├── config.json            the resolved configuration
    ├── progress.json          the data of `mira train show`
    ├── tensorboard/           scalars of each phase, if `report_to` names tensorboard
    ├── trackers.json          the run that has them, if it names wandb or mlflow
    ├── phase-0/evaluation/run evaluation of the start
    └── phase-1 …
        ├── tasks.json         the tasks to play, with reasons
        ├── rollouts/run       a run folder; rollouts.json has its path, if it is shared
        ├── data/              trajectories and rows as Parquet, summary.json, replay.json
        ├── potential/ value/  the critics, see training.engine.stage_jobs
        ├── actor/             the actor, its rows with every column; `mira run --policy local:OUT/phase-1/actor/model`
        ├── evaluation/run     a run on held-out instances
        └── metrics.json

Every part is written atomically: a killed loop continues with the part that it was in.
"""
