"""Plays a task badly and well, then explains why the bad attempt failed.

    python examples/analyse_run.py

The same on the command line: `mira analyze RUN --references OTHER_RUN` and `mira report RUN --references OTHER_RUN`.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from agent import RunConfig, RunResult, ScriptedPolicy, Turn, run_suite, write_report
from agent.inspection.report import explain_failures
from envs.core.action_languages import PROGRAM
from envs.core.actions import Action, Scroll
from envs.core.tasks import TaskSelection

TASKS = TaskSelection("miniwob", ("login-user",), (0,))


def scroll_on(turn: Turn) -> Action:
    """Scrolls up and down and never solves the task."""
    return Scroll(direction="down" if turn.step % 2 else "up")


async def play(out: Path) -> tuple[RunResult, RunResult]:
    """Plays the bad run and the reference."""
    limits = {"limits": {"max_steps": 6}}
    scripted = RunConfig.model_validate({"policy": "scripted", **limits})
    bad = await run_suite(scripted, TASKS, out / "bad", policy=ScriptedPolicy(scroll_on, PROGRAM))
    good = await run_suite(RunConfig(policy="oracle"), TASKS, out / "good")
    return bad, good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    options = parser.parse_args()
    bad, good = asyncio.run(play(options.out))
    analyses = explain_failures([bad.folder], [good.folder])
    for analysis in analyses.values():
        failure = analysis.failure
        print(f"{failure.category}, key step {failure.key_step}: {failure.reason}")
    report = write_report([bad.folder], references=[good.folder], out=options.out / "report.html", analyses=analyses)
    print(f"report: {report.path}, {report.episodes} episode")


if __name__ == "__main__":
    main()
