"""Executes a run in its own process, which tests kill: `python -m tests.agent.run.killable start|resume FOLDER RUN_ID
[URL]`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from agent.run.runner import resume, run_open, run_suite
from envs.core.actions import Click, Stop, Type
from envs.core.tasks import TaskSelection
from tests.agent.shop import config, scripted

TASKS = ("login-user", "enter-text", "click-checkboxes")
SEEDS = 6
ORDER = (Type(ref=1, text="bob"), Click(ref=2), Stop(answer="ordered"))


def selection(seeds: int = SEEDS) -> TaskSelection:
    return TaskSelection("miniwob", TASKS, tuple(range(seeds)))


async def main(command: str, folder: Path, run_id: str, url: str = "", seeds: int = SEEDS) -> int:
    if command == "resume":
        result = await resume(folder / run_id)
    elif url:
        result = await run_open(config(), "Order", url, folder, run_id=run_id, policy=scripted(ORDER))
    else:
        result = await run_suite(config(workers=2), selection(seeds), folder, run_id=run_id)
    return 0 if result.complete else 1


def forked(command: str, folder: Path, home: Path, seeds: int = SEEDS) -> None:
    """Main function of a forked process, which saves the imports."""
    os.environ["TMPDIR"] = str(home)
    sys.exit(asyncio.run(main(command, folder, "r", seeds=seeds)))


if __name__ == "__main__":
    command, folder, run_id, *url = sys.argv[1:]
    sys.exit(asyncio.run(main(command, Path(folder), run_id, url[0] if url else "")))
