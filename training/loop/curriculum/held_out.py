"""Finds episodes that must not be trained on, because policies are measured on their task instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from envs.suites.browsergym import names as browsergym
from envs.suites.webarena.files import SUITE_NAMES
from training.loop.curriculum.trainable import check_trainable, declared_seeds

if TYPE_CHECKING:
    from envs.suites.sites.suite import InstanceSampler


class Episode(Protocol):
    """A trajectory, or a trace's header."""

    @property
    def run_id(self) -> str: ...
    @property
    def episode_id(self) -> str: ...
    @property
    def task(self) -> TaskRef: ...


async def held_out(tasks: Iterable[TaskRef], sampler: InstanceSampler | None = None) -> dict[TaskRef, str]:
    """The tasks among *tasks* that may not be trained on, each with the reason.

    Applies :func:`training.loop.curriculum.check_trainable`, including rewordings of a site's evaluation tasks. Suites
    that declare no training seeds have no evaluation instances and may be trained on: open tasks, BrowserGym's, those
    of packages; WebArena's may not. BrowserGym's MiniWoB++ draws page seeds out of a million, so an evaluation seed
    among them is very unlikely.

    Raises BadInput or ResetFailed where a site cannot be built. Its golden state is needed to detect rewordings.
    """
    reasons: dict[TaskRef, str] = {}
    for task in dict.fromkeys(tasks):
        if not _is_benchmark(task) and declared_seeds(task.suite) is None:
            continue
        reason = _refused(task)
        if reason is None and task.suite == "sites":
            from envs.suites.sites.catalog import template
            from envs.suites.sites.suite import InstanceSampler

            sampler = sampler or InstanceSampler()
            reason = _refused(task, len(await sampler.candidates(template(task.name))))
        if reason is not None:
            reasons[task] = reason
    return reasons


def _refused(task: TaskRef, distinct: int | None = None) -> str | None:
    try:
        check_trainable(task, distinct)
    except BadInput as error:
        return str(error)
    return None


def _is_benchmark(task: TaskRef) -> bool:
    """Whether *task* is WebArena's, under any suite name, including BrowserGym's `webarena.7` or `visualwebarena.7`."""
    return task.suite in SUITE_NAMES or (
        task.suite.startswith(browsergym.PREFIX) and "webarena" in f"{task.suite} {task.name}".casefold()
    )


def refusal(episodes: Sequence[Episode], held: Mapping[TaskRef, str]) -> str:
    """A one-line message: how many of *episodes* have a task in *held*, the first of them and its reason."""
    refused = [episode for episode in episodes if episode.task in held]
    first = refused[0]
    return (
        f"{len(refused)} of {len(episodes)} episodes are not for training, "
        f"the first is {first.episode_id} of run {first.run_id}: {held[first.task]}"
    )
