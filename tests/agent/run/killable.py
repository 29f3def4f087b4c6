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

SELECTION = TaskSelection("miniwob", ("login-user", "enter-text", "click-checkboxes"), tuple(range(6)))
ORDER = (Type(ref=1, text="bob"), Click(ref=2), Stop(answer="ordered"))


async def main(command: str, folder: Path, run_id: str, url: str = "") -> int:
    if command == "resume":
        result = await resume(folder / run_id)
    elif url:
        result = await run_open(config(), "Order", url, folder, run_id=run_id, policy=scripted(ORDER))
    else:
        result = await run_suite(config(workers=2), SELECTION, folder, run_id=run_id)
    return 0 if result.complete else 1


def forked(command: str, folder: Path, home: Path) -> None:
    """Main function of a forked process, which saves the imports."""
    os.environ["TMPDIR"] = str(home)
    sys.exit(asyncio.run(main(command, folder, "r")))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])))
