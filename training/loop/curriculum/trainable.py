"""Checks which tasks may be trained on, by each suite's rules, before a task is listed.

A suite declares its training seeds (:class:`envs.suites.entry.SuiteEntry`), and each task its split. One case needs
care: a site's seed beyond the last distinct task rewords an earlier task, and is held out if that one is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from envs.core.errors import BadInput
from envs.core.tasks import TaskInfo, TaskRef


def declared_seeds(suite: str) -> range | None:
    """The training seeds that *suite* declares; None for one that declares none, or is not installed. Raises BadInput
    if its package is broken."""
    from agent.run.suites import SUITES  # imports the runner's package, which tests of pure functions do not need

    return SUITES.load(suite).training_seeds if suite in SUITES else None


def training_seeds(suite: str) -> range:
    """Every seed of *suite* that is for training. Raises BadInput for a suite without training tasks."""
    seeds = declared_seeds(suite)
    if seeds is None:
        raise BadInput(
            f"the suite {suite!r} is never trained on; a curriculum draws from miniwob, sites, and suites of installed "
            "packages that declare training_seeds"
        )
    return seeds


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
    split = task_info(suite, name).split
    if not _is_for_training(split):
        raise BadInput(f"the task {name!r} of {suite} is held out for {split} and is never trained on")


def task_info(suite: str, name: str) -> TaskInfo:
    """The task called *name* of a suite with training tasks. Raises BadInput if it has none."""
    infos = infos_of(suite)
    if name not in infos:
        raise BadInput(f"no task {name!r} in {suite}; list them with: mira tasks --suite {suite}")
    return infos[name]


def names_of(suite: str) -> tuple[str, ...]:
    """Every name of *suite* that may be trained on, in the suite's order."""
    return tuple(name for name, info in infos_of(suite).items() if _is_for_training(info.split))


@cache
def infos_of(suite: str) -> Mapping[str, TaskInfo]:
    """The tasks of a suite with training tasks by name, in the suite's order. Raises BadInput for another suite."""
    from agent.run.suites import known_suite

    training_seeds(suite)
    return {info.name: info for info in known_suite(suite).infos()}


def _is_for_training(split: str) -> bool:
    return split in ("", "train")
