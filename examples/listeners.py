"""Follows a run through its events.

    python examples/listeners.py

Listeners are called in the event loop, in order. They must return at once and must not raise. The trace stays the
record: events are for displays, logs and alerts.
"""

from __future__ import annotations

import argparse
import asyncio

from custom_policy import OrderPolicy
from local_site import LocalShop

from agent import run_task
from agent.progress import EpisodeEnded, Event, RequestsRefused, StepDone


def show(event: Event) -> None:
    """Prints the events that this example is interested in."""
    match event:
        case StepDone():
            print(f"step {event.step}: {event.words} -> {event.status} ({event.seconds:.1f} s)")
        case RequestsRefused():
            print(f"refused: {', '.join(origin.origin for origin in event.blocked)}")
        case EpisodeEnded():
            print(f"ended: {event.result.outcome} by {event.result.ended_by}")
        case _:
            print(type(event).__name__)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="runs")
    options = parser.parse_args()
    with LocalShop() as shop:
        policy = OrderPolicy("Ann", "Birch 13")
        await run_task("Order a Birch 13 for Ann", shop.url, policy=policy, out=options.out, listeners=[show])


if __name__ == "__main__":
    asyncio.run(main())
