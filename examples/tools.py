"""Gives the policy a tool: a Python function that it calls between its actions on the page.

    python examples/tools.py

A model reads the tool's name, docstring and parameters in its prompt. Here a script stands in for the model, so that no
key is needed: it asks the tool for the name of the customer and types what it returned.
"""

from __future__ import annotations

import argparse
import asyncio

from local_site import LocalShop

from agent import ScriptedPolicy, Turn, run_task
from envs.core.action_languages import PROGRAM
from envs.core.actions import Action, Click, Select, Stop, Type, UseTool

CUSTOMERS = {17: "Ann", 18: "Bob"}


def customer(number: int) -> str:
    """Returns the name of the customer with this number."""
    return CUSTOMERS[number]


def script(turn: Turn) -> Action:
    """Chooses the action of a step."""
    match turn.step:
        case 1:
            return UseTool(tool="customer", input='{"number": 17}')
        case 2:
            return Type(ref=1, text=turn.view.tool_output)
        case 3:
            return Select(ref=2, option="Birch 13")
        case 4:
            return Click(ref=3)
        case _:
            return Stop(answer="ordered")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="runs")
    options = parser.parse_args()
    with LocalShop() as shop:
        episode = await run_task(
            "Order a Birch 13 for customer 17",
            shop.url,
            policy=ScriptedPolicy(script, PROGRAM),
            tools=[customer],
            out=options.out,
        )
        print(f"answer: {episode.answer}, steps: {episode.totals.steps}")
        print(f"orders that the server received: {shop.orders}")


if __name__ == "__main__":
    asyncio.run(main())
