"""Selects the held-out instances that a policy is evaluated on."""

from __future__ import annotations

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from training.loop.curriculum.trainable import declared_seeds, infos_of, task_info
from training.loop.settings import EvaluationSettings


def evaluation_refs(settings: EvaluationSettings) -> tuple[TaskRef, ...]:
    """Every name × seed. Tasks of every split may be named, on seeds that are never trained on.

    Raises BadInput for a suite without held-out instances, a seed that may be trained on, an unknown name or split, or
    an empty list."""
    allowed = declared_seeds(settings.suite)
    if allowed is None:
        raise BadInput(
            f"evaluation.suite {settings.suite!r}: a training run is evaluated on sites, miniwob, or an added suite "
            "with training_seeds; evaluate its checkpoints elsewhere: "
            f"mira eval --play --suite {settings.suite} --policy local:OUT/phase-1/actor/model"
        )
    if settings.names and settings.split:
        raise BadInput("evaluation.names and evaluation.split: name the tasks, or take those of a split")
    names = settings.names or _names_of(settings.suite, settings.split)
    for name in settings.names:
        task_info(settings.suite, name)
    for seed in settings.seeds:
        if seed >= allowed.start:
            raise BadInput(
                f"evaluation seed {seed} of {settings.suite} may be trained on; take one below {allowed.start}"
            )
    if not names or not settings.seeds:
        raise BadInput("an evaluation needs tasks and seeds")
    return tuple(TaskRef(suite=settings.suite, name=name, seed=seed) for name in names for seed in settings.seeds)


def _names_of(suite: str, split: str) -> tuple[str, ...]:
    """The names of *split*; without splits the named tasks of MiniWoB++, all of another suite."""
    infos = infos_of(suite).values()
    splits = sorted({info.split for info in infos} - {""})
    if splits and split not in splits:
        raise BadInput(f"{suite} has no split {split!r}: take {', '.join(splits)}")
    if split and not splits:
        raise BadInput(f"the suite {suite!r} has no splits: name its tasks")
    if suite == "miniwob":
        from envs.suites.miniwob.task_sets import NAMED_TASKS

        return NAMED_TASKS
    return tuple(info.name for info in infos if info.split == split)
