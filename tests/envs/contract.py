"""Checks that an environment fulfils the interface :class:`envs.core.tasks.Environment`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envs.core.actions import Action, Click, Status, Stop
from envs.core.tasks import Environment, TaskRef


async def check_environment(
    environment: Environment, task: TaskRef, folder: Path, actions: Sequence[Action] = ()
) -> None:
    """Runs *task* with *actions* and asserts the guarantees of every environment. The environment stays open."""
    start = await environment.reset(task)
    assert start.instruction == " ".join(start.instruction.split()) != ""
    first = await environment.observe()
    assert first.digest == (await environment.observe()).digest, "looking must not change the page"
    _check_checks(start.milestones, await environment.check_milestones())

    nowhere = await environment.execute(Click(ref=99_999))
    assert nowhere.status is Status.NO_SUCH_REF, "trouble with an action is a status"
    stopped = await environment.execute(Stop(answer="x"))
    assert stopped.status is Status.STOPPED
    assert (await environment.observe()).digest == first.digest, "neither may touch the page"

    for action in actions:
        await environment.observe()
        assert (await environment.execute(action)).status is Status.OK
        await environment.save_state(folder)
    before = (await environment.observe()).digest
    done = await environment.done()
    score = await environment.score(None)
    assert score is None or 0 <= score.reward <= 1
    _check_checks(start.milestones, await environment.check_milestones())

    again = await environment.restore_state(task, folder, actions)
    assert again == start
    assert (await environment.observe()).digest == before
    assert await environment.done() == done
    assert await environment.score(None) == score


def _check_checks(milestones: Sequence[object], checks: Sequence[object] | None) -> None:
    if milestones:
        assert checks is not None and len(checks) == len(milestones)
    else:
        assert not checks
