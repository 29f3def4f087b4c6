"""Requests the answer as JSON that fits a pydantic model.

    python examples/structured_answer.py

An answer that does not match is rejected with the reason, and the policy answers again. Here the policy is a script
that makes one mistake first, so that the example needs no key; with `--policy openai:gpt-4o` a model reads the
prices.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from local_site import LocalShop
from pydantic import BaseModel

from agent import ScriptedPolicy, Turn, run_task
from envs.core.action_languages import PROGRAM
from envs.core.actions import Action, Stop


class Laptop(BaseModel):
    model: str
    price_eur: float


def answer(turn: Turn) -> Action:
    """Answers with free text first, then with JSON after the schema was reported as a problem."""
    return Stop(answer='{"model": "Birch 13", "price_eur": 749}' if turn.view.problems else "The Birch 13")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default=None)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    options = parser.parse_args()
    with LocalShop() as shop:
        episode = await run_task(
            "Which 13-inch laptop is the cheapest, and what does it cost?",
            shop.url,
            policy=options.policy or ScriptedPolicy(answer, PROGRAM),
            out=options.out,
            answer_schema=Laptop,  # or a JSON Schema as a dict, or the path of a file
        )
    answered = episode.answer is not None and not episode.impossible  # `N/A` fits every schema
    laptop = Laptop.model_validate_json(episode.answer or "") if answered else None
    print(f"outcome: {episode.outcome}, ended by: {episode.ended_by}, laptop: {laptop}")


if __name__ == "__main__":
    asyncio.run(main())
