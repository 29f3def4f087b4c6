"""Episodes of the sites by their oracles, without approval and with `submit` approved by a script: both must end alike.

Prints one JSON line: outcomes, questions about actions and about held requests, and episodes a minute.

    python -m benchmarks.approval_sites --episodes 100 --workers 2
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agent.config import parse_config
from agent.episode.approval import ApprovalRequest
from agent.run.runner import run_suite
from envs.core.tasks import TaskRef, TaskSelection
from envs.suites.sites.suite import task_infos


class Agreeing:
    """A script that says yes, and counts what it was asked."""

    def __init__(self) -> None:
        self.actions = 0
        self.requests = 0
        """Questions about requests that were held."""
        self.held: Counter[str] = Counter()
        """Those requests, by method and address without its query."""

    async def __call__(self, request: ApprovalRequest) -> bool:
        self.actions += not request.requests
        self.requests += bool(request.requests)
        self.held.update(f"{one.method} {one.url.partition('?')[0]}" for one in request.requests)
        return True


def instances(first: int, count: int) -> tuple[TaskRef, ...]:
    """Every task with seed 0, then every one with seed 1, and so on: *count* of them from the *first*."""
    names = sorted(info.name for info in task_infos())
    places = range(first, first + count)
    return tuple(TaskRef(suite="sites", name=names[n % len(names)], seed=n // len(names)) for n in places)


async def play(refs: Sequence[TaskRef], workers: int, approve: tuple[str, ...]) -> dict[str, object]:
    """What came of one run over *refs*."""
    person = Agreeing()
    values = {"policy": "oracle", "workers": workers, "approve": approve, "fsync": False}
    config = parse_config(values, "benchmark")
    with tempfile.TemporaryDirectory() as out:
        run = await run_suite(config, TaskSelection("sites", picked=tuple(refs)), Path(out), approver=person)
    steps = sum(episode.totals.steps for episode in run.episodes)
    return {
        "approve": list(approve),
        "outcomes": dict(Counter(episode.outcome for episode in run.episodes)),
        "ended_by": dict(Counter(episode.ended_by for episode in run.episodes)),
        "by_task": {episode.task.id: episode.outcome for episode in run.episodes},
        "steps": steps,
        "asked_about_actions": person.actions,
        "asked_about_requests": person.requests,
        "held": dict(person.held),
        "seconds": round(run.seconds, 1),
        "episodes_per_minute": round(len(run.episodes) / run.seconds * 60, 1),
    }


async def measure(first: int, count: int, workers: int) -> dict[str, object]:
    refs = instances(first, count)
    without = await play(refs, workers, ())
    approved = await play(refs, workers, ("submit",))
    alike = without.pop("by_task") == approved.pop("by_task")
    return {"episodes": count, "workers": workers, "alike": alike, "without": without, "approved": approved}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.first, given.episodes, given.workers))))


if __name__ == "__main__":
    main()
