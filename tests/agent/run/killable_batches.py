"""Executes a run whose policy answers in batches, in a process that a test kills. The policy is a script."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from agent.episode.policy import Turn
from agent.run.runner import resume, run_open
from envs.core.action_languages import PROGRAM
from envs.core.actions import Action, Click, Stop
from tests.agent.batching import ScriptedAnswers
from tests.agent.shop import Shop, config

PAGE = """<!doctype html><title>Items</title><h1>Items</h1>{boxes}<script>
const order = box => fetch('/buy', {{method: 'POST', body: 'who=' + box.value}})</script>"""
BOX = "<label><input type=checkbox value={0} {1} onchange='order(this)'>Item {0}</label><br>"


class Items(Shop):
    """A page of *count* boxes. To check one orders its item at once; ordered items are shown as checked."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def page(self, path: str) -> str:
        ordered = {order.removeprefix("who=") for order in self.orders}
        states = (("checked disabled" if str(item) in ordered else "") for item in range(self.count))
        return PAGE.format(boxes="".join(BOX.format(item, state) for item, state in enumerate(states)))


def every_item(turn: Turn) -> Sequence[Action]:
    """Checks every box that is not checked yet, as many as one answer may hold."""
    left = [element.ref for element in turn.view.observation.elements if "checked" not in element.states]
    return [Click(ref=ref) for ref in left] or [Stop(answer="ordered")]


async def main(command: str, folder: Path, url: str) -> int:
    policy = ScriptedAnswers(every_item, PROGRAM)
    if command == "start":
        settings = config(planner="none", judge="none", limits={"max_steps": 200, "max_seconds": 0})
        result = await run_open(settings, "Order every item", url, folder, run_id="r", policy=policy)
    else:
        result = await resume(folder / "r", policy=policy)
    return 0 if result.complete else 1


def forked(command: str, folder: Path, home: Path, url: str) -> None:
    """Main function of a forked process, which saves the imports."""
    os.environ["TMPDIR"] = str(home)
    sys.exit(asyncio.run(main(command, folder, url)))
