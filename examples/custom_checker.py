"""Scores an open task with a checker of your own, which reads the server's state.

    python examples/custom_checker.py

Without a checker a task is judged by a model or stays unjudged. A checker decides from evidence that the page
cannot forge: here the orders in the shop's memory, elsewhere a database or an API.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from custom_policy import OrderPolicy
from local_site import LocalShop

from agent import RunConfig, run_suite
from envs.browser.chromium import Chromium
from envs.core.settings import SessionSettings
from envs.core.tasks import Environment, Score, TaskSelection
from envs.suites.open_web import TASK, OpenTaskSuite

INSTRUCTION = "Order exactly one Birch 13 for Ann"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--model", default="Birch 13", help="another model shows what a failure looks like")
    options = parser.parse_args()
    with LocalShop() as shop:

        async def check(answer: str | None, environment: Environment) -> Score:
            """*environment* shows the last page (`await environment.observe()`); the orders say more."""
            met = shop.orders == [("Ann", "Birch 13")]
            evidence = f"orders on the server: {shop.orders}"
            return Score(status="success" if met else "failure", reward=float(met), evidence=evidence)

        def make(chromium: Chromium, folder: Path, settings: SessionSettings) -> OpenTaskSuite:
            return OpenTaskSuite(chromium, folder, settings, instruction=INSTRUCTION, url=shop.url, checker=check)

        run = await run_suite(
            RunConfig(policy="scripted"),
            TaskSelection("open", (TASK,), (0,)),
            options.out,
            policy=OrderPolicy("Ann", options.model),
            suite=make,
        )
    episode = run.episodes[0]
    print(f"outcome: {episode.outcome}, reward: {episode.reward}")


if __name__ == "__main__":
    asyncio.run(main())
