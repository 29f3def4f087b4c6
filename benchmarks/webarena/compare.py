"""Mira's verdicts on the pairs beside the originals': how many agree, and what those are that do not.

python -m benchmarks.webarena.compare pairs.jsonl original.jsonl FOLDER [--strict-original] [--show 20]
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from benchmarks.percentages import share
from benchmarks.webarena.pairs import FILES
from benchmarks.webarena.samples import SITES
from envs.suites.webarena.accounts import Account
from envs.suites.webarena.evaluators import Evidence, JudgeFailed, evaluate, no_judge
from envs.suites.webarena.files import read_tasks
from envs.suites.webarena.pages import Pages
from envs.suites.webarena.request_log import SentRequest
from envs.suites.webarena.sites import Sites
from envs.suites.webarena.task import Check, LastPage, ProgramHtml, Task, WholePage

Row = dict[str, Any]
KINDS = {"string": "string_match", "url": "url_match", "html": "program_html"}


class Shown:
    """In the place of the browser: a page that shows one text, whatever is looked at."""

    def __init__(self, text: str) -> None:
        self._text = text

    @asynccontextmanager
    async def at(self, _: object) -> AsyncGenerator[Any]:
        yield SimpleNamespace(page=SimpleNamespace(url="http://x/"))

    async def text(self, _: object, __: object) -> str:
        return self._text

    async def call(self, _: object, __: object, ___: object) -> str:
        return self._text

    raw_text = text


def known_sites() -> Sites:
    return Sites.from_environment({f"WA_{name}": url for name, url in SITES.items()})


def check_of(task: Task, row: Row) -> Check:
    if "check" in row:
        return task.checks[row["check"]]
    [check] = [check for check in task.checks if check.kind == KINDS[row["kind"]]]
    if isinstance(check, ProgramHtml):
        page = check.pages[row["page"]].model_copy(update={"where": LastPage(), "what": WholePage()})
        return check.model_copy(update={"pages": (page,)})
    return check


def evidence(task: Task, row: Row, sites: Sites) -> Evidence:
    answer = row["answer"]
    return Evidence(
        intent=task.intent,
        answer=answer if row["kind"] in ("string", "response") else None,
        url=answer if row["kind"] == "url" else "http://x/",
        pages=cast(Pages, Shown(answer if row["kind"] == "html" else "")),
        sent=tuple(SentRequest(**one) for one in answer) if row["kind"] == "request" else (),
        sites=sites,
        origins=sites.origins(),
        admin=Account("admin", "admin1234"),
        judge=no_judge,
        task_sites=task.sites,
    )


async def verdict(task: Task, row: Row, sites: Sites, *, original: bool) -> Any:
    """true, false, or `judge` where a model would be asked."""
    try:
        return (await evaluate(check_of(task, row), evidence(task, row, sites), original=original)).met
    except JudgeFailed:
        return "judge"


def read(pairs: Path, verdicts: Path) -> Iterator[tuple[Row, Any]]:
    with pairs.open(encoding="utf-8") as rows, verdicts.open(encoding="utf-8") as originals:
        for row, theirs in zip(rows, originals, strict=True):
            yield json.loads(row), json.loads(theirs)


async def compared(given: argparse.Namespace) -> None:
    sites = known_sites()
    tasks = {(suite, task.id): task for suite, name in FILES.items() for task in read_tasks(given.folder / name)}
    counts: Counter[tuple[str, str, str, str]] = Counter()
    shown: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row, verdict_of_original in read(given.pairs, given.verdicts):
        theirs = False if verdict_of_original == "error" else verdict_of_original
        ours = await verdict(tasks[row["suite"], row["task"]], row, sites, original=given.strict_original)
        key = (row["suite"], row["kind"], str(ours).lower(), str(theirs).lower())
        counts[key] += 1
        if ours != theirs:
            shown[key].append(row)
    for suite, kind in sorted({key[:2] for key in counts}):
        here = {key[2:]: count for key, count in counts.items() if key[:2] == (suite, kind)}
        agreed = sum(count for (ours, theirs), count in here.items() if ours == theirs)
        total = sum(here.values())
        apart = ", ".join(f"{ours}/{theirs} {n}" for (ours, theirs), n in sorted(here.items()) if ours != theirs)
        agree = f"{agreed:6} agree ({share(agreed / total, 2)})"
        print(f"{suite:9} {kind:9} {total:6} pairs, {agree}; ours/theirs: {apart or '-'}")
    for key, rows in shown.items():
        print("\n", *key)
        for row in rows[:: max(1, len(rows) // max(given.show, 1))][: given.show]:
            print("  ", row["task"], row.get("check", row.get("page", "")), json.dumps(row["answer"])[:300])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("verdicts", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--strict-original", action="store_true")
    parser.add_argument("--show", type=int, default=0, help="disagreements to print of each sort")
    given = parser.parse_args()
    asyncio.run(compared(given))


if __name__ == "__main__":
    main()
