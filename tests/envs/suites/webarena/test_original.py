"""`--strict-original`: the verdicts of libwebarena 0.0.5 and webarena-verified 1.2.3, and differences to Mira's own.

`tests/data/webarena/verdicts.jsonl` contains the verdicts of those packages on own tasks and answers. It was created by
`benchmarks/webarena`, which needs the packages; the tests do not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.webarena.compare import known_sites, verdict
from benchmarks.webarena.pairs import reference_rows
from envs.suites.webarena.files import read_tasks
from envs.suites.webarena.raw_format import RawTask
from envs.suites.webarena.task import Task
from envs.suites.webarena.verified_format import VerifiedTask
from tests.envs.suites.webarena.differences import CASES, Case
from tests.envs.suites.webarena.own_tasks import FILES
from tests.envs.suites.webarena.published import published

RECORDED = Path(__file__).parents[3] / "data" / "webarena" / "verdicts.jsonl"
SUITES = {"lite": "webarena-lite", "webarena": "webarena", "verified": "webarena-verified"}
SITES = known_sites()


def own_tasks() -> dict[tuple[str, int], Task]:
    tasks: dict[tuple[str, int], Task] = {}
    for suite, entries in zip(SUITES, FILES.values(), strict=True):
        for entry in entries:
            kind = VerifiedTask if suite == "verified" else RawTask
            tasks[suite, entry["task_id"]] = kind.model_validate(entry).task()
    return tasks


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]


async def test_strict_original_gives_the_recorded_verdicts() -> None:
    """An evaluator that raised an error counts as not met, as in the benchmarks' own harnesses."""
    tasks, rows = own_tasks(), recorded()
    wrong: list[dict[str, Any]] = []
    for row in rows:
        ours = await verdict(tasks[row["suite"], row["task"]], row, SITES, original=True)
        if ours != (False if row["original"] == "error" else row["original"]):
            wrong.append(row)
    assert wrong == []
    assert len(rows) > 800
    assert {str(row["original"]) for row in rows} == {"True", "False", "judge", "error"}


async def test_the_recorded_references_are_accepted_by_our_rules_as_well() -> None:
    tasks, rows = own_tasks(), recorded()
    checks: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        checks.setdefault((row["suite"], row["task"], row["kind"], row.get("check")), row)
    refused = [
        row
        for row in checks.values()
        if row["original"] is True and not await verdict(tasks[row["suite"], row["task"]], row, SITES, original=False)
    ]
    assert refused == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_where_the_rules_part(case: Case) -> None:
    task = (VerifiedTask if case.suite == "verified" else RawTask).model_validate(case.entry).task()
    ours, theirs = [await verdict(task, case.row, SITES, original=original) for original in (False, True)]
    assert (ours, theirs) == case.verdicts


@pytest.mark.parametrize(("suite", "at_least"), [("lite", 1000), ("webarena", 7000), ("verified", 5000)])
async def test_no_reference_that_the_original_accepts_is_refused(suite: str, at_least: int) -> None:
    """Every reference of every published task, including alternatives, as written in the task file."""
    path = published(SUITES[suite])
    tasks = {task.id: task for task in read_tasks(path)}
    refused: list[tuple[Any, ...]] = []
    accepted = 0
    for entry in json.loads(path.read_text(encoding="utf-8")):
        task = tasks[entry["task_id"]]
        for row in reference_rows(suite, entry):
            if await verdict(task, row, SITES, original=True) is True:
                accepted += 1
                if not await verdict(task, row, SITES, original=False):
                    refused.append((task.id, row["answer"]))
    assert refused == []
    assert accepted >= at_least


@pytest.mark.parametrize(
    ("suite", "unpassable"),
    [
        ("lite", {81, 94, 123, 139, 140, 142}),
        ("webarena", {386}),
        ("verified", {319, 423, 611, 612, 613, 614, 699, 700, 811}),
    ],
)
async def test_tasks_whose_reference_the_original_refuses_can_be_passed_here(suite: str, unpassable: set[int]) -> None:
    path = published(SUITES[suite])
    tasks = {task.id: task for task in read_tasks(path)}
    for entry in json.loads(path.read_text(encoding="utf-8")):
        if entry["task_id"] in unpassable:
            task, rows = tasks[entry["task_id"]], list(reference_rows(suite, entry))
            theirs = {_check(row): await verdict(task, row, SITES, original=True) for row in rows}
            assert False in theirs.values(), task.id
            met = [await verdict(task, row, SITES, original=False) for row in rows if theirs[_check(row)] is False]
            assert any(verdict in (True, "judge") for verdict in met), task.id


def _check(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["kind"], row.get("check", row.get("page"))
