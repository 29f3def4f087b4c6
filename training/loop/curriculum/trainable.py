"""Checks which tasks may be trained on, by each suite's rules, before a task is listed.

Two cases need care. `split_of` returns the training split for every name that is not held out, even for names without a
template. A site's seed beyond the last distinct task rewords an earlier task, and is held out if that one is.
"""

from __future__ import annotations

from functools import cache

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef

POOLED = ("sites", "miniwob")
"""Suites with training tasks; benchmarks have none."""


def training_seeds(suite: str) -> range:
    """Every seed of *suite* that is for training. Raises BadInput for a suite without training tasks."""
    match suite:
        case "sites":
            from envs.suites.sites.splits import EVALUATION_SEEDS

            return range(EVALUATION_SEEDS, 2**31)
        case "miniwob":
            from envs.suites.miniwob.demonstrations import FIRST_TRAINING_SEED

            return range(FIRST_TRAINING_SEED, 2**31)
        case _:
            raise BadInput(f"the suite {suite!r} is never trained on; a curriculum draws from {' and '.join(POOLED)}")


def check_trainable(task: TaskRef, distinct: int | None = None) -> None:
    """Raises BadInput where *task* is held out or does not exist.

    *distinct*: the number of distinct tasks of a site's template, if known; then rewordings of evaluation tasks are
    refused, too. Without it, only the seed itself is checked.
    """
    seeds = training_seeds(task.suite)
    check_name(task.suite, task.name)
    seed = task.seed % distinct if task.suite == "sites" and distinct and task.seed >= 0 else task.seed
    if seed not in seeds:
        reworded = f", a rewording of {seed}," if seed != task.seed else ""
        raise BadInput(f"{task.id}: seed {task.seed}{reworded} is for evaluation; train on seeds from {seeds.start}")


def check_name(suite: str, name: str) -> None:
    """Raises BadInput for a name that *suite* does not know or keeps for evaluation."""
    if suite == "sites":
        from envs.suites.sites.catalog import template
        from envs.suites.sites.splits import split_of

        split = split_of(template(name).name)
        if split != "train":
            raise BadInput(f"the template {name!r} is held out for {split} and is never trained on")
    elif name not in names_of(suite):
        raise BadInput(f"no task {name!r} in {suite}; list them with: mira tasks --suite {suite}")


@cache
def names_of(suite: str) -> tuple[str, ...]:
    """Every name of *suite* that may be trained on, in the suite's order."""
    training_seeds(suite)
    if suite == "sites":
        from envs.suites.sites.catalog import templates
        from envs.suites.sites.splits import split_of

        return tuple(name for name in templates() if split_of(name) == "train")
    from envs.suites.miniwob.pages import html_root, task_names

    return task_names(html_root())
