"""Selects the held-out instances that a policy is evaluated on."""

from __future__ import annotations

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from training.loop.curriculum import training_seeds
from training.loop.curriculum.trainable import POOLED, check_name
from training.loop.settings import EvaluationSettings


def evaluation_refs(settings: EvaluationSettings) -> tuple[TaskRef, ...]:
    """Every name × seed. Raises BadInput for a suite without held-out instances, a seed that may be trained on, an
    unknown name or split, or an empty list."""
    if settings.suite not in POOLED:
        raise BadInput(
            f"evaluation.suite {settings.suite!r}: a training run is evaluated on {' or '.join(POOLED)}; evaluate its "
            f"checkpoints elsewhere: mira eval --play --suite {settings.suite} --policy local:OUT/phase-1/actor/model"
        )
    if settings.names and settings.split:
        raise BadInput("evaluation.names and evaluation.split: name the tasks, or take those of a split")
    names = settings.names or _names_of(settings.suite, settings.split)
    allowed = training_seeds(settings.suite)
    _check_names(settings)
    for seed in settings.seeds:
        if seed in allowed:
            raise BadInput(
                f"evaluation seed {seed} of {settings.suite} may be trained on; take one below {allowed.start}"
            )
    if not names or not settings.seeds:
        raise BadInput("an evaluation needs tasks and seeds")
    return tuple(TaskRef(suite=settings.suite, name=name, seed=seed) for name in names for seed in settings.seeds)


def _check_names(settings: EvaluationSettings) -> None:
    """Sites are evaluated on held-out templates; MiniWoB++ on the training tasks with other seeds."""
    if settings.suite == "sites":
        from envs.suites.sites.catalog import template

        for name in settings.names:
            template(name)
    else:
        for name in settings.names:
            check_name(settings.suite, name)


def _names_of(suite: str, split: str) -> tuple[str, ...]:
    if suite == "sites":
        from envs.suites.sites.suite import task_infos

        names = tuple(info.name for info in task_infos() if info.split == split)
        if not names:
            raise BadInput(f"the sites have no split {split!r}: take train, validation or test")
        return names
    if split:
        raise BadInput(f"the suite {suite!r} has no splits: name its tasks")
    from envs.suites.miniwob.task_sets import NAMED_TASKS

    return NAMED_TASKS
