"""Runs one task on a website and prints its outcome.

    python examples/run_task.py                          # the embedded model: no key, no GPU
    python examples/run_task.py --policy openai:gpt-4o   # a large model also plans and judges

The embedded model is trained on short form tasks. A task without a checker stays unjudged unless a large model
judges.
"""

from __future__ import annotations

import argparse
import asyncio

from local_site import LocalShop

from agent import run_task


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="embedded")
    parser.add_argument("--out", default="runs")
    options = parser.parse_args()
    with LocalShop() as shop:
        episode = await run_task(
            'Enter "Ann" into the text field and press Submit.',
            f"{shop.url}waitlist",
            policy=options.policy,
            out=options.out,
            limits={"max_steps": 2},  # the embedded model seldom ends an open task by itself
        )
    print(f"outcome: {episode.outcome}, ended by: {episode.ended_by}, steps: {episode.totals.steps}")
    print(f"names that the server received: {shop.waiting}")
    print(f"trace: {episode.trace_path}")


if __name__ == "__main__":
    asyncio.run(main())
