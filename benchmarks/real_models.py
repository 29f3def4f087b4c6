"""Real models on fixed task lists: success with intervals, calls, tokens, seconds, and unreadable answers by kind.

    python -m benchmarks.real_models OUT --policy local:qwen2.5-coder-0.5b.gguf --seeds 0-2 \
        --arm free constrained=off --arm constrained constrained=on [--list named] [--json]

Every arm is a run of its own in OUT/NAME, with the settings of `mira run` that follow its name. An interrupted arm is
continued, a finished one is only read; OUT/results.json is written after each. The first arm is the base of the paired
differences: the same task and seed in both, with a bootstrap over whole tasks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from agent import resume, run_suite
from agent.config import RunConfig
from agent.episode.policy import REPEATS_NO_OP
from agent.results import RunResult
from envs.core.tasks import TaskSelection
from envs.core.trace import Call
from envs.core.trace_store import Trace, read_trace
from envs.suites.miniwob.task_sets import LONGER_TASKS, NAMED_TASKS
from judges.statistics import clustered_mean, proportion

RUN: Final = "run"
RESAMPLES: Final = 10_000
LISTS: Final = {"named": NAMED_TASKS, "long": LONGER_TASKS}


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """One arm over all of its episodes."""

    name: str
    settings: dict[str, Any]
    episodes: int
    successes: int
    success: str
    """Share of successes with Wilson's 95 % interval."""
    difference: str
    """Mean difference to the first arm over the same tasks and seeds, with a bootstrap over tasks; empty for it."""
    answers: int
    """Answers of the policy, those that were not used included."""
    unreadable: dict[str, int]
    """Answers without a valid action, by kind of error; quoted texts and numbers are left out of the kind."""
    calls_per_episode: dict[str, float]
    """By role."""
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    model_seconds: float
    seconds: float
    """Of the episodes, models and browser together."""
    by_task: dict[str, float]


def figures(name: str, settings: dict[str, Any], run: RunResult, base: RunResult | None) -> ArmFigures:
    traces = [read_trace(episode.trace_path) for episode in run.episodes]
    calls = [call for trace in traces for call in _calls(trace)]
    policy = [call for call in calls if call.role == "policy"]
    won = sum(episode.outcome == "success" for episode in run.episodes)
    roles = Counter(call.role for call in calls)
    tasks = sorted({episode.task.name for episode in run.episodes})
    return ArmFigures(
        name=name,
        settings=settings,
        episodes=len(run.episodes),
        successes=won,
        success=str(proportion(won, len(run.episodes))),
        difference="" if base is None else _difference(base, run),
        answers=len(policy),
        unreadable=dict(
            Counter(_kind(call.error) for call in policy if call.error and call.error != REPEATS_NO_OP).most_common()
        ),
        calls_per_episode={role: round(count / max(1, len(traces)), 2) for role, count in sorted(roles.items())},
        tokens_in=sum(call.tokens_in for call in calls),
        tokens_cached=sum(call.tokens_cached for call in calls),
        tokens_out=sum(call.tokens_out for call in calls),
        model_seconds=round(sum(call.seconds for call in calls), 1),
        seconds=round(sum(episode.totals.seconds for episode in run.episodes), 1),
        by_task={task: _share(run, task) for task in tasks},
    )


def _calls(trace: Trace) -> Iterator[Call]:
    for step in trace.steps:
        yield from step.intent.calls
    for event in trace.events:
        yield from event.calls
    for plan in trace.plans:
        if plan.call is not None:
            yield plan.call
    if trace.footer is not None:
        yield from trace.footer.calls


def _kind(error: str) -> str:
    """The error without what it quotes, so that equal faults are counted together."""
    head = error.partition(". Expected")[0]
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'|\"[^\"]*\"", "…", head))[:80]


def _share(run: RunResult, task: str) -> float:
    own = [episode.outcome == "success" for episode in run.episodes if episode.task.name == task]
    return round(sum(own) / len(own), 3)


def _difference(base: RunResult, run: RunResult) -> str:
    before = {(e.task, e.attempt): e.outcome == "success" for e in base.episodes}
    pairs = [
        (episode.task.name, float(episode.outcome == "success") - float(before[episode.task, episode.attempt]))
        for episode in run.episodes
        if (episode.task, episode.attempt) in before
    ]
    names, values = [name for name, _ in pairs], [value for _, value in pairs]
    return str(clustered_mean(values, names, resamples=RESAMPLES, seed=0))


async def play(config: RunConfig, selection: TaskSelection, folder: Path) -> RunResult:
    """Plays the run in *folder*/run, or continues it."""
    if (folder / RUN / "run.json").exists():
        return await resume(folder / RUN)
    return await run_suite(config, selection, folder, run_id=RUN)


def settings_of(words: Sequence[str]) -> dict[str, Any]:
    """`key=value` words as nested settings; a value is TOML, or text without quotes."""
    settings: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        try:
            parsed: Any = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            parsed = value
        *outer, last = key.split(".")
        place = settings
        for name in outer:
            place = place.setdefault(name, {})
        place[last] = parsed
    return settings


def table(rows: Sequence[ArmFigures]) -> str:
    lines = ["| arm | success | difference | calls | tokens in / out | answers | unreadable | s an episode |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for row in rows:
        calls = ", ".join(f"{role} {count:g}" for role, count in row.calls_per_episode.items())
        bad = sum(row.unreadable.values())
        seconds = row.seconds / max(1, row.episodes)
        lines.append(
            f"| {row.name} | {row.successes}/{row.episodes}: {row.success} | {row.difference} | {calls} "
            f"| {row.tokens_in:,} / {row.tokens_out:,} | {row.answers} | {bad} | {seconds:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--policy", required=True, help="model spec")
    parser.add_argument("--base-url", help="server of an openai: spec")
    parser.add_argument("--list", choices=sorted(LISTS), default="named", help="task list of MiniWoB++ (%(default)s)")
    parser.add_argument("--tasks", nargs="+", help="names of tasks in place of a list")
    parser.add_argument("--seeds", default="0-2", help="first-last (%(default)s)")
    parser.add_argument("--max-steps", type=int, default=8)
    parser.add_argument("--arm", nargs="+", action="append", required=True, metavar="NAME KEY=VALUE")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = tuple(range(int(first), int(last or first) + 1))
    selection = TaskSelection(suite="miniwob", names=tuple(options.tasks or LISTS[options.list]), seeds=seeds)
    common = {
        "policy": options.policy,
        "base_url": options.base_url,
        "planner": "none",
        "judge": "state",
        "limits": {"max_steps": options.max_steps, "max_seconds": 1800.0},
    }
    rows: list[ArmFigures] = []
    base: RunResult | None = None
    for name, *words in options.arm:
        settings = settings_of(words)
        config = RunConfig.model_validate({**common, **settings})
        run = asyncio.run(play(config, selection, options.out / name))
        rows.append(figures(name, settings, run, base))
        base = base or run
        text = json.dumps([asdict(row) for row in rows], indent=2)
        (options.out / "results.json").write_text(text + "\n", encoding="utf-8")
    print(json.dumps([asdict(row) for row in rows], indent=2) if options.json else table(rows))


if __name__ == "__main__":
    main()
