"""How many successful traces reach the same outcome when they are replayed: after a reset, and on changed markup.

    python -m benchmarks.replay --out FOLDER [--json]

Records one successful episode of each of 20 MiniWoB++ and 10 sites tasks with their oracles, replays each one in a
fresh environment, and once more on pages whose markup was changed as they load (see `markup_changes.js`: ids, banner,
order of rows, wrappers). FOLDER keeps the results: an interrupted benchmark is continued.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from agent.config import parse_config
from agent.inspection.replay import Replay, Verdict, replay_trace
from agent.run.runner import resume, run_suite
from benchmarks.markup_changes import rebuilt
from benchmarks.percentages import share
from envs.core.errors import EnvError
from envs.core.json_lines import json_lines
from envs.core.tasks import TaskSelection

MINIWOB = (
    "click-button",
    "click-checkboxes-large",
    "click-link",
    "click-tab-2",
    "click-collapsible-2",
    "click-option",
    "choose-list",
    "choose-date",
    "enter-text",
    "login-user",
    "email-inbox",
    "email-inbox-delete",
    "email-inbox-reply",
    "social-media",
    "social-media-some",
    "navigate-tree",
    "read-table",
    "search-engine",
    "phone-book",
    "use-autocomplete",
)
SITES = (
    "shop-add-to-basket",
    "shop-order-fact",
    "shop-admin-set-order-status",
    "forum-reply",
    "forum-like",
    "forum-move-topic",
    "code-comment",
    "code-close-ticket",
    "cms-edit-title",
    "map-phone",
)
CONFIG = {"policy": "oracle", "planner": "none", "judge": "none", "fsync": False, "limits": {"max_steps": 40}}
Pages = Literal["as recorded", "rebuilt"]


class Row(BaseModel):
    """One replay."""

    task: str
    pages: Pages
    same_outcome: bool
    steps: int
    verdicts: dict[str, int]
    trouble: str
    """The first step that was missing or different, or the error that ended the replay."""
    seconds: float


async def record(out: Path) -> list[Path]:
    """The traces of all episodes that succeeded."""
    for suite, names in (("miniwob", MINIWOB), ("sites", SITES)):
        if (out / suite / "run.json").exists():
            await resume(out / suite)
        else:
            config = parse_config(CONFIG, "benchmark")
            await run_suite(config, TaskSelection(suite, names, (0,)), out, run_id=suite)
    return list(_successes(out))


def _successes(out: Path) -> Iterator[Path]:
    for suite in ("miniwob", "sites"):
        for line in json_lines((out / suite / "results.jsonl").read_text()):
            row = json.loads(line)
            if row["outcome"] == "success":
                yield out / suite / row["trace"]
            else:
                print(f"left out, the oracle did not succeed: {row['episode_id']}: {row['outcome']} {row['error']}")


async def replayed(trace: Path, suite: str, pages: Pages) -> Row:
    task = trace.stem
    try:
        done = await replay_trace(trace, suite=rebuilt(suite) if pages == "rebuilt" else None)
    except EnvError as error:
        return Row(task=task, pages=pages, same_outcome=False, steps=0, verdicts={}, trouble=str(error), seconds=0)
    return Row(
        task=task,
        pages=pages,
        same_outcome=done.same_outcome is True,
        steps=done.recorded,
        verdicts={verdict.value: done.count(verdict) for verdict in Verdict},
        trouble=_trouble(done),
        seconds=done.seconds,
    )


def _trouble(done: Replay) -> str:
    for step in done.steps:
        if step.verdict in (Verdict.MISSING, Verdict.DIFFERENT):
            return f"step {step.step} {step.verdict.value}: {step.action}: {step.reason}"
    return "" if done.same_outcome else f"{done.outcome}: {done.score.evidence if done.score else ''}"


async def measure(out: Path, again: str) -> list[Row]:
    file = out / "replays.jsonl"
    known = [Row.model_validate_json(line) for line in json_lines(file.read_text())] if file.exists() else []
    rows = [row for row in known if not again or (again not in row.task and again != row.pages)]
    file.write_text("".join(row.model_dump_json() + "\n" for row in rows))
    traces = await record(out)
    kinds: tuple[Pages, ...] = ("as recorded", "rebuilt")
    for pages in kinds:
        for trace in traces:
            if any(row.task == trace.stem and row.pages == pages for row in rows):
                continue
            row = await replayed(trace, trace.parent.parent.name, pages)
            print(f"{row.pages:12} {row.task:36} {'same' if row.same_outcome else 'OTHER'}  {row.trouble}", flush=True)
            rows.append(row)
            with file.open("a") as sink:
                sink.write(row.model_dump_json() + "\n")
    return rows


def table(rows: list[Row]) -> Table:
    shown = Table(header_style="bold")
    for name in ("pages", "suite", "traces", "same outcome", "steps", "same", "moved", "missing", "different"):
        shown.add_column(name)
    sites = {f"{name}-0-a1" for name in SITES}
    for pages in ("as recorded", "rebuilt"):
        for suite in ("MiniWoB++", "sites", "all"):
            these = [
                r for r in rows if r.pages == pages and (suite == "all" or (r.task in sites) == (suite == "sites"))
            ]
            same = sum(row.same_outcome for row in these)
            part = f"{same} ({share(same / len(these))})" if these else "-"
            counts = [str(sum(row.verdicts.get(verdict.value, 0) for row in these)) for verdict in Verdict]
            shown.add_row(pages, suite, str(len(these)), part, str(sum(row.steps for row in these)), *counts)
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for traces and results")
    parser.add_argument("--again", default="", help="part of a task's name, or pages, whose replays are done again")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rows = asyncio.run(measure(args.out, args.again))
    if args.json:
        print(json.dumps([row.model_dump() for row in rows], indent=2))
    else:
        Console().print(table(rows))


if __name__ == "__main__":
    main()
