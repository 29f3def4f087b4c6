"""Records demonstrations on real pages as the policy's prompts and answers, in a JSON Lines file."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from agent.episode.prompts import PolicyView, compact_text
from envs.browser.chromium import Chromium
from envs.core.action_languages import PROGRAM
from envs.core.json_lines import json_lines
from envs.core.past_actions import PastAction
from envs.core.tasks import TaskRef
from envs.suites.miniwob.demonstrations import Demonstration, demonstrate
from envs.suites.miniwob.suite import MiniwobSuite
from envs.suites.miniwob.task_sets import FIRST_TRAINING_SEED
from training.embedded.lesson import Lesson


@dataclass(frozen=True, slots=True)
class Recorded:
    """One demonstrated step."""

    task: str
    seed: int
    step: int
    prompt: str
    """With the `Next:` line where the task ships milestones."""
    answer: str


async def record(
    names: Sequence[str], seeds: Sequence[int], path: Path, *, pages: int = 2, recoveries: float = 0.0
) -> dict[str, tuple[int, int]]:
    """Runs the oracle on every task and training seed, appends the steps of solved episodes, and returns (solved, run)
    by task.

    Episodes that were not solved are left out and counted. Seeds are numbered from `FIRST_TRAINING_SEED`.
    """
    tasks = [TaskRef(suite="miniwob", name=n, seed=FIRST_TRAINING_SEED + s) for s in seeds for n in names]
    counts: dict[str, tuple[int, int]] = dict.fromkeys(names, (0, 0))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        async for demonstration in _played(tasks, pages, recoveries):
            name = demonstration.task.name
            solved, played = counts[name]
            counts[name] = (solved + demonstration.solved, played + 1)
            for row in rows_of(demonstration) if demonstration.solved else ():
                file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
            file.flush()
    return counts


async def _played(tasks: Sequence[TaskRef], pages: int, recoveries: float) -> AsyncIterator[Demonstration]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mira-demos-")))
        chromium = await stack.enter_async_context(Chromium())
        suite = await stack.enter_async_context(MiniwobSuite(chromium, folder))
        environments = [await suite.environment() for _ in range(pages)]
        for environment in environments:
            stack.push_async_callback(environment.close)
        async for demonstration in demonstrate(environments, tasks, recoveries=recoveries):
            yield demonstration


def rows_of(demonstration: Demonstration) -> list[Recorded]:
    """Returns one row per step with the prompt that the agent would send."""
    rows: list[Recorded] = []
    for number, step in enumerate(demonstration.steps, 1):
        history = [PastAction(p.action, p.target, r) for p, r in zip(step.past, step.results, strict=True)]
        open_ones = [i for i, check in enumerate(step.checks) if not check.achieved]
        view = PolicyView(
            instruction=demonstration.start.instruction,
            observation=step.observation,
            language=PROGRAM,
            milestones=demonstration.start.milestones,
            next_milestone=open_ones[0] if open_ones else None,
            history=tuple(history),
            last=step.results[-1] if step.results else None,
        )
        task = demonstration.task
        rows.append(Recorded(task.name, task.seed, number, compact_text(view), PROGRAM.show(step.action)))
    return rows


def load(path: Path) -> list[Recorded]:
    return [Recorded(**json.loads(line)) for line in json_lines(path.read_text(encoding="utf-8"))]


_NEXT_LINE = re.compile(r"\nNext: [^\n]*")


def as_lesson(row: Recorded) -> Lesson:
    """Converts a recorded step to a lesson. Planner `none` only omits the `Next:` line: pages are in full."""
    bare = _NEXT_LINE.sub("", row.prompt, count=1)
    task = TaskRef(suite="miniwob", name=row.task, seed=row.seed)
    return Lesson("act", task, (row.prompt, bare), row.answer)
