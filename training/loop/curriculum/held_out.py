"""Episodes that must not be learned from: those of instances on which policies are measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from envs.suites.browsergym import names as browsergym
from envs.suites.webarena.files import SUITE_NAMES
from training.loop.curriculum.trainable import POOLED, check_trainable

if TYPE_CHECKING:
    from envs.suites.sites.suite import Drawer


class Episode(Protocol):
    """A trajectory, or a trace's header."""

    @property
    def run_id(self) -> str: ...
    @property
    def episode_id(self) -> str: ...
    @property
    def task(self) -> TaskRef: ...


async def held_out(tasks: Iterable[TaskRef], drawer: Drawer | None = None) -> dict[TaskRef, str]:
    """Those of *tasks* that may not be trained on, and why each.

    The rule is :func:`training.loop.curriculum.check_trainable`'s, rewordings of a site's evaluation tasks included.
    Suites that keep nothing for evaluation may be learned from: open tasks, BrowserGym's. Its MiniWoB++ draws each
    page's own seed out of a million: that it is one of those that policies are measured on is next to impossible.

    Raises BadInput or ResetFailed where a site cannot be built, whose golden state says what rewords what.
    """
    found: dict[TaskRef, str] = {}
    for task in dict.fromkeys(tasks):
        if task.suite not in POOLED and not _is_benchmark(task):
            continue
        why = _refused(task)
        if why is None and task.suite == "sites":
            from envs.suites.sites.catalog import template
            from envs.suites.sites.suite import Drawer

            drawer = drawer or Drawer()
            why = _refused(task, len(await drawer.candidates(template(task.name))))
        if why is not None:
            found[task] = why
    return found


def _refused(task: TaskRef, distinct: int | None = None) -> str | None:
    try:
        check_trainable(task, distinct)
    except BadInput as error:
        return str(error)
    return None


def _is_benchmark(task: TaskRef) -> bool:
    """WebArena by any of its names, BrowserGym's included, where a task is `webarena.7` or `visualwebarena.7`."""
    return task.suite in SUITE_NAMES or (
        task.suite.startswith(browsergym.PREFIX) and "webarena" in f"{task.suite} {task.name}".casefold()
    )


def refusal(episodes: Sequence[Episode], held: Mapping[TaskRef, str]) -> str:
    """One line that names the first of *episodes* whose task is in *held*, why, and how many there are."""
    bad = [one for one in episodes if one.task in held]
    first = bad[0]
    return (
        f"{len(bad)} of {len(episodes)} episodes are not for training, "
        f"the first is {first.episode_id} of run {first.run_id}: {held[first.task]}"
    )
