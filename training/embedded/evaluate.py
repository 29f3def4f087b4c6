"""Evaluates a policy on MiniWoB++ by task, with the full agent in Chromium and 95 % intervals.

    python -m training.embedded.evaluate --tasks named --seeds 0-24 --planner none

Nothing here is special to the embedded model: `--policy local:DIR` measures a checkpoint in the same way.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.cli.options import parse_seeds
from agent.config import Limits, RunConfig
from agent.results import EpisodeResult
from agent.run.runner import run_suite
from envs.core.errors import BadInput
from envs.core.tasks import TaskSelection
from envs.suites.miniwob.task_sets import LONGER_TASKS, NAMED_TASKS
from judges.statistics import Interval, wilson

TASKS = {"named": NAMED_TASKS, "longer": LONGER_TASKS}
JUDGES = {"none": "none", "reference": "state"}
"""AutoRater by planner: a model rates its own plans."""


@dataclass(frozen=True, slots=True)
class Score:
    """Score of one task, or of all."""

    name: str
    solved: int
    played: int
    """Number of episodes. A broken episode (environment or model error) counts as not solved."""
    broken: int
    seconds: float
    """Mean wall-clock seconds per episode."""
    steps: float
    """Mean steps per episode."""

    @property
    def interval(self) -> Interval:
        return wilson(self.solved, self.played)


def score(name: str, episodes: Sequence[EpisodeResult]) -> Score:
    known = [episode for episode in episodes if episode.outcome in ("success", "failure")]
    return Score(
        name=name,
        solved=sum(episode.outcome == "success" for episode in known),
        played=len(episodes),
        broken=len(episodes) - len(known),
        seconds=sum(e.totals.seconds for e in known) / max(1, len(known)),
        steps=sum(e.totals.steps for e in known) / max(1, len(known)),
    )


async def evaluate(
    names: Sequence[str], seeds: Sequence[int], *, policy: str, planner: str, workers: int, out: Path
) -> list[Score]:
    """Returns scores by task in the order of *names*, the total last. The run's traces are written below *out*.

    The milestones of planner `reference` are checked by the page's state, those of a model are rated by that model.
    """
    config = RunConfig(
        policy=policy,
        planner=planner,
        judge=JUDGES.get(planner, planner),
        profile="compact",
        workers=workers,
        limits=Limits(max_steps=15, max_seconds=120, max_parse_errors=2),
    )
    selection = TaskSelection("miniwob", tuple(names), tuple(seeds))
    result = await run_suite(config, selection, out)
    by_task = [score(name, [e for e in result.episodes if e.task.name == name]) for name in names]
    return [*by_task, score("all", result.episodes)]


def table(scores: Sequence[Score]) -> str:
    """Formats a Markdown table with one row per task."""
    lines = ["| task | solved | 95 % interval | steps | seconds |", "|---|---|---|---|---|"]
    for row in scores:
        low, high = row.interval
        broken = f" ({row.broken} broken)" if row.broken else ""
        solved = f"{row.solved}/{row.played}{broken}"
        lines.append(f"| {row.name} | {solved} | {low:.0%}-{high:.0%} | {row.steps:.1f} | {row.seconds:.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="named", help="`named`, `longer` (envs.suites.miniwob.task_sets) or a,b,c")
    parser.add_argument("--seeds", default="0-24", help="evaluation seeds, e.g. 0-24")
    parser.add_argument("--policy", default="embedded", help="any model spec")
    parser.add_argument("--planner", default="reference", help="`reference`, `none`, `same` (as the policy) or a model")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=None, help="keep the run's traces here")
    parser.add_argument("--json", type=Path, default=None, help="write the scores here, too")
    args = parser.parse_args()
    try:
        seeds = parse_seeds(args.seeds)
    except BadInput as error:
        parser.error(str(error))
    names = TASKS.get(args.tasks) or tuple(args.tasks.split(","))
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mira-evaluate-") as scratch:
        scores = asyncio.run(
            evaluate(
                names,
                seeds,
                policy=args.policy,
                planner=args.planner,
                workers=args.workers,
                out=args.out or Path(scratch),
            )
        )
    print(table(scores))  # noqa: T201 - the result
    print(f"\n{time.monotonic() - begun:.0f} s, planner {args.planner}, seeds {args.seeds}")  # noqa: T201
    if args.json is not None:
        rows = [{"task": s.name, "solved": s.solved, "played": s.played, "broken": s.broken} for s in scores]
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
