"""Adds a suite: tasks with instances, milestones and a checker, played by a policy and by `run_suite`.

    python examples/add_suite.py

A suite lists its tasks and makes environments; an environment plays one episode at a time. `envs/core/tasks.py` is the
contract, `tests/envs/contract.py` checks an environment against it. The environment here is the local shop; each reset
empties its orders.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from custom_policy import OrderPolicy
from local_site import LAPTOPS, LocalShop

from agent import ActionProposal, RunConfig, Turn, run_suite
from envs.browser.chromium import Chromium
from envs.browser.session import BrowserSession
from envs.core.actions import Action, ActionResult
from envs.core.observation import Observation
from envs.core.settings import SessionSettings
from envs.core.tasks import EpisodeStart, Milestone, MilestoneCheck, Restore, Score, TaskInfo, TaskRef, TaskSelection
from envs.suites.open_web import OpenEnvironment, OpenTaskSuite

NAMES = ("Ann", "Bob", "Cleo")
TASK = "order-laptop"


def order_of(task: TaskRef) -> tuple[str, str]:
    """Name and model of an instance. The seed selects them, so every instance can be recreated."""
    models = tuple(LAPTOPS)
    return NAMES[task.seed % len(NAMES)], models[task.seed // len(NAMES) % len(models)]


class LaptopEnvironment:
    """Plays one order at a time. The browser is that of an open task."""

    restore: Restore = "reopen"

    def __init__(self, opened: OpenEnvironment, shop: LocalShop) -> None:
        self._opened = opened
        self._shop = shop
        self._expected = ("", "")

    @property
    def session(self) -> BrowserSession | None:
        return self._opened.session

    async def reset(self, task: TaskRef) -> EpisodeStart:
        self._shop.orders.clear()
        await self._opened.reset(task)
        return self._start(task)

    def _start(self, task: TaskRef) -> EpisodeStart:
        self._expected = name, model = order_of(task)
        milestones = (
            Milestone(id="sent", text="An order is sent."),
            Milestone(id="right", text=f"The order is a {model} for {name}."),
        )
        return EpisodeStart(instruction=f"Order a {model} for {name}", category="shop", milestones=milestones)

    async def observe(self, *, screenshot: bool = False) -> Observation:
        return await self._opened.observe(screenshot=screenshot)

    async def execute(self, action: Action) -> ActionResult:
        return await self._opened.execute(action)

    async def done(self) -> bool:
        return False

    async def score(self, answer: str | None) -> Score:
        met = self._shop.orders == [self._expected]
        evidence = f"orders on the server: {self._shop.orders}"
        return Score(status="success" if met else "failure", reward=float(met), evidence=evidence)

    async def check_milestones(self) -> tuple[MilestoneCheck, ...]:
        orders = self._shop.orders
        return (
            MilestoneCheck(achieved=bool(orders), evidence=f"{len(orders)} orders"),
            MilestoneCheck(achieved=self._expected in orders, evidence=f"orders: {orders}"),
        )

    async def save_state(self, folder: Path) -> None:
        await self._opened.save_state(folder)

    async def restore_state(self, task: TaskRef, folder: Path, committed: Sequence[Action]) -> EpisodeStart:
        await self._opened.restore_state(task, folder, committed)
        return self._start(task)

    async def close(self) -> None:
        await self._opened.close()


class LaptopSuite:
    """One task with nine instances."""

    name = "laptops"
    _tasks: ClassVar = (TaskInfo(name=TASK, category="shop", has_checker=True, milestones=2),)

    def __init__(self, opened: OpenTaskSuite, shop: LocalShop) -> None:
        self._opened = opened
        self._shop = shop

    def tasks(self) -> Sequence[TaskInfo]:
        return self._tasks

    async def environment(self) -> LaptopEnvironment:
        return LaptopEnvironment(await self._opened.environment(), self._shop)

    async def close(self) -> None:
        await self._opened.close()


class Solver:
    """A policy that orders the laptop of the instance."""

    spec = "solver"

    async def propose(self, turn: Turn) -> ActionProposal:
        return await OrderPolicy(*order_of(turn.task)).propose(turn)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    options = parser.parse_args()
    with LocalShop() as shop:

        def make(chromium: Chromium, folder: Path, settings: SessionSettings) -> LaptopSuite:
            return LaptopSuite(OpenTaskSuite(chromium, folder, settings, instruction=TASK, url=shop.url), shop)

        selection = TaskSelection("laptops", (TASK,), (0, 4, 8))
        run = await run_suite(
            RunConfig(policy="scripted", planner="reference"), selection, options.out, policy=Solver(), suite=make
        )
    for episode in run.episodes:
        print(f"{episode.task.id}: {episode.outcome}, milestones {sum(episode.z)} of {len(episode.z)}")


if __name__ == "__main__":
    asyncio.run(main())
