"""Plays a task with a policy of your own instead of a model.

    python examples/custom_policy.py

A policy is any object with `spec` and `propose`. It gets the page, the plan and the past actions, and returns one
action. It must be stateless between turns, so that a run that was killed can be resumed.
"""

from __future__ import annotations

import argparse
import asyncio

from local_site import LocalShop

from agent import ActionProposal, Turn, run_task
from envs.core.action_languages import PROGRAM
from envs.core.actions import Action, Click, Select, Stop, Type
from envs.core.observation import Observation


class OrderPolicy:
    """Orders one laptop for *name*: fills in the form, sends it, stops on the next page."""

    spec = "order-policy"

    def __init__(self, name: str, model: str) -> None:
        self._name = name
        self._model = model

    async def propose(self, turn: Turn) -> ActionProposal:
        action = self._next(turn.view.observation, len(turn.past))
        return ActionProposal(action, PROGRAM.show(action))

    def _next(self, page: Observation, done: int) -> Action:
        if "Thank you" in page.title:
            return Stop(answer=f"ordered {self._model}")
        actions = (
            Type(ref=ref_of(page, "textbox", "Name"), text=self._name),
            Select(ref=ref_of(page, "combobox", "Model"), option=self._model),
            Click(ref=ref_of(page, "button", "Order")),
        )
        return actions[min(done, 2)]


def ref_of(page: Observation, role: str, name: str) -> int:
    """The number of a control in this observation. Raises StopIteration if the page has no such control."""
    return next(element.ref for element in page.elements if (element.key.role, element.key.name) == (role, name))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="runs")
    options = parser.parse_args()
    with LocalShop() as shop:
        policy = OrderPolicy("Ann", "Birch 13")
        episode = await run_task("Order a Birch 13 for Ann", shop.url, policy=policy, out=options.out)
    print(f"answer: {episode.answer}, steps: {episode.totals.steps}")
    print(f"orders that the server received: {shop.orders}")


if __name__ == "__main__":
    asyncio.run(main())
