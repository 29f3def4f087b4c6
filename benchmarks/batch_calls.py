"""Answers of the policy on form tasks: one action a turn, and several.

    python -m benchmarks.batch_calls [--seeds 0-1] [--suites miniwob,sites] [--json]

The oracle plays each instance one action a turn. Then its recorded steps are played again on the same instance by a
scripted policy that answers with as many of the next steps as the page shows controls for, up to `--most`. Nothing else
differs, so the second number of answers is what a policy needs that writes the same actions in batches.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from agent.cli.options import parse_seeds
from agent.config import RunConfig, parse_config
from agent.run.discover_traces import discover_traces
from agent.run.runner import run_suite
from benchmarks.percentages import share
from envs.core.action_languages import PROGRAM
from envs.core.tasks import TaskSelection
from envs.core.trace_store import Trace
from tests.agent.batching import BatchingPolicy, recorded

TASKS = {
    "miniwob": (
        "login-user",
        "enter-password",
        "click-checkboxes",
        "click-checkboxes-large",
        "choose-list",
        "multi-layouts",
        "multi-orderings",
    ),
    "sites": ("shop-add-address", "shop-admin-create-coupon", "code-new-ticket"),
}
"""Tasks that fill in a form of several fields."""


@dataclass(frozen=True)
class TaskFigures:
    task: str
    actions: int
    answers_one: int
    """Answers with one action a turn."""
    answers_several: int
    solved_one: int
    solved_several: int
    episodes: int
    stops: dict[str, int]
    """Batches that were stopped, by reason."""


async def measure(suite: str, seeds: tuple[int, ...], most: int, folder: Path) -> list[TaskFigures]:
    selection = TaskSelection(suite, TASKS[suite], seeds)
    one = await run_suite(_config("oracle", 1), selection, folder, run_id=f"{suite}-one")
    policy = BatchingPolicy(recorded(one.folder), PROGRAM, most)
    several = await run_suite(_config("scripted", most), selection, folder, run_id=f"{suite}-several", policy=policy)
    first, second = _traces(one.folder), _traces(several.folder)
    return [_figures(name, first[name], second[name]) for name in TASKS[suite]]


def _config(policy: str, most: int) -> RunConfig:
    return parse_config({"policy": policy, "planner": "reference", "fsync": False, "max_actions_per_turn": most})


def _traces(run: Path) -> dict[str, list[Trace]]:
    traces: dict[str, list[Trace]] = {}
    for file in discover_traces([run]):
        trace = file.read()
        traces.setdefault(trace.header.task.name, []).append(trace)
    return traces


def _figures(name: str, one: list[Trace], several: list[Trace]) -> TaskFigures:
    stops = Counter(
        event.detail.partition(":")[0] for trace in several for event in trace.events if event.name == "batch_stopped"
    )
    return TaskFigures(
        task=name,
        actions=sum(len(trace.steps) for trace in several),
        answers_one=sum(map(_answers, one)),
        answers_several=sum(map(_answers, several)),
        solved_one=sum(map(_solved, one)),
        solved_several=sum(map(_solved, several)),
        episodes=len(several),
        stops=dict(stops),
    )


def _answers(trace: Trace) -> int:
    return sum(step.intent.batch is None or step.intent.batch.place == 1 for step in trace.steps)


def _solved(trace: Trace) -> bool:
    return trace.footer is not None and trace.footer.outcome == "success"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-1")
    parser.add_argument("--suites", default="miniwob,sites")
    parser.add_argument("--most", type=int, default=RunConfig().max_actions_per_turn)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures: list[TaskFigures] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for suite in options.suites.split(","):
            figures += await measure(suite, parse_seeds(options.seeds), options.most, Path(folder))
    if options.json:
        print(json.dumps([asdict(task) for task in figures], indent=1))
        return
    print("| task | actions | answers, one action each | answers, several | solved | stopped by |")
    print("|---|---|---|---|---|---|")
    for task in figures:
        stops = ", ".join(f"{name} {count}" for name, count in task.stops.items()) or "-"
        print(
            f"| {task.task} | {task.actions} | {task.answers_one} | {task.answers_several} "
            f"| {task.solved_one} / {task.solved_several} of {task.episodes} | {stops} |"
        )
    one, several = (sum(getattr(task, name) for task in figures) for name in ("answers_one", "answers_several"))
    print(f"\n{several} answers instead of {one}: {share(several / one)}")


if __name__ == "__main__":
    asyncio.run(main())
