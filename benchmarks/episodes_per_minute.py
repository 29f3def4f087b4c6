"""How many MiniWoB++ episodes a minute the whole agent plays: graph, traces, AutoRater, real Chromium.

The scripted solver is the policy, so the time is the runtime's own. Prints one JSON line. To compare two versions, run
them in turns on one machine; PYTHONPATH names the checkout whose code is measured.

    python benchmarks/episodes_per_minute.py --workers 4 --seeds 0-9
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
from collections import Counter
from pathlib import Path

from agent.cli.options import parse_seeds, split_names
from agent.config import RunConfig
from agent.episode.policy import ScriptedPolicy, Turn
from agent.run.runner import run_suite
from envs.core.action_languages import PROGRAM
from envs.core.actions import Action, Stop
from envs.core.tasks import TaskSelection
from envs.core.trace_store import read_trace
from envs.suites.miniwob.solvers import SOLVERS, Past, Screen, Unsolvable


def solve(turn: Turn) -> Action:
    """The task's solver, seeing what a policy sees; it gives up by stopping."""
    past = tuple(Past(done.action, done.target) for done in turn.past)
    try:
        return SOLVERS[turn.task.name](Screen(turn.view.instruction, turn.view.observation, past))
    except Unsolvable:
        return Stop()


async def measure(workers: int, tasks: tuple[str, ...], seeds: tuple[int, ...], fsync: bool) -> dict[str, object]:
    config = RunConfig(policy="oracle", workers=workers, fsync=fsync)
    selection = TaskSelection("miniwob", tasks, seeds)
    with tempfile.TemporaryDirectory() as out:
        result = await run_suite(config, selection, Path(out), policy=ScriptedPolicy(solve, PROGRAM))
        traces = [read_trace(result.folder / episode.trace) for episode in result.episodes]
    observation_s = [step.commit.timings.observe for trace in traces for step in trace.steps if step.commit is not None]
    lower, median, _ = statistics.quantiles(observation_s, n=4)
    count = len(result.episodes)
    steps = sum(episode.totals.steps for episode in result.episodes)
    return {
        "workers": workers,
        "cores": os.cpu_count(),
        "tasks": len(tasks),
        "episodes": count,
        "steps": steps,
        "outcomes": dict(Counter(episode.outcome for episode in result.episodes)),
        "seconds": round(result.seconds, 1),
        "episodes_per_minute": round(count / result.seconds * 60, 1),
        "observe_ms": {"lower_quartile": round(lower * 1000, 2), "median": round(median * 1000, 2)},
        "ms_per_step_and_worker": round(result.seconds * workers / max(1, steps) * 1000, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seeds", default="0-9")
    parser.add_argument("--tasks", default="", help="comma-separated; default: every task that has a solver")
    parser.add_argument("--no-fsync", action="store_true", help="do not force each trace line to the disk")
    given = parser.parse_args()
    tasks = split_names(given.tasks) or tuple(SOLVERS)
    print(json.dumps(asyncio.run(measure(given.workers, tasks, parse_seeds(given.seeds), not given.no_fsync))))


if __name__ == "__main__":
    main()
