"""Reads task files. Errors are one line that names the file, the task and the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from envs.core.errors import BadInput
from envs.core.plain_values import first_problem
from envs.suites.webarena.raw_format import RawTask
from envs.suites.webarena.task import Task
from envs.suites.webarena.verified_format import Subset, VerifiedTask
from envs.suites.wheel_data import WEBARENA, WEBARENA_LITE, WEBARENA_VERIFIED, WheelData, cached

SuiteName = Literal["webarena-lite", "webarena", "webarena-verified", "webarena-verified-hard"]
SUITE_NAMES: tuple[SuiteName, ...] = ("webarena-lite", "webarena", "webarena-verified", "webarena-verified-hard")

_DATA: dict[SuiteName, WheelData] = {
    "webarena-lite": WEBARENA_LITE,
    "webarena": WEBARENA,
    "webarena-verified": WEBARENA_VERIFIED,
    "webarena-verified-hard": WEBARENA_VERIFIED,
}


def load_tasks(name: SuiteName, cache: Path | None = None) -> tuple[Task, ...]:
    """The tasks of a suite from the cache. Raises BadInput if they were not downloaded yet."""
    data = _DATA[name]
    folder = cached(data, cache)
    if folder is None:
        raise BadInput(f"the tasks of {name} were not downloaded yet: run `mira data get {data.name}`")
    main, *subsets = (folder / file.name for file in data.files)
    tasks = read_tasks(main)
    return select_tasks(tasks, read_subset(subsets[0])) if name == "webarena-verified-hard" else tasks


def read_tasks(path: Path) -> tuple[Task, ...]:
    """Reads the tasks of a file in any of the formats. Raises BadInput."""
    entries = _json(path)
    if not isinstance(entries, list) or not entries:
        raise BadInput(f"{path}: this is not a list of tasks")
    tasks = tuple(_task(path, number, entry) for number, entry in enumerate(entries))
    ids = [task.id for task in tasks]
    duplicate = next((task_id for task_id in ids if ids.count(task_id) > 1), None)
    if duplicate is not None:
        raise BadInput(f"{path}: task {duplicate} appears twice")
    return tasks


def read_subset(path: Path) -> tuple[int, ...]:
    """Reads the task ids of a subset file. Raises BadInput."""
    try:
        return Subset.model_validate_json(_text(path)).task_ids
    except ValidationError as error:
        raise BadInput(f"{path}: {first_problem(error)}") from None


def select_tasks(tasks: tuple[Task, ...], ids: tuple[int, ...]) -> tuple[Task, ...]:
    """The tasks with these ids, in this order. Raises BadInput for an unknown id."""
    known = {task.id: task for task in tasks}
    missing = [str(task_id) for task_id in ids if task_id not in known]
    if missing:
        raise BadInput(f"the subset names tasks that do not exist: {', '.join(missing[:10])}")
    return tuple(known[task_id] for task_id in ids)


def _task(path: Path, number: int, entry: Any) -> Task:
    if not isinstance(entry, dict):
        raise BadInput(f"{path}: entry {number} is not a task")
    task_id = entry.get("task_id", f"number {number}")
    try:
        kind = VerifiedTask if "start_urls" in entry else RawTask
        return kind.model_validate(entry).task()
    except ValidationError as error:
        raise BadInput(f"{path}: task {task_id}: {first_problem(error)}") from None


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not JSON: {error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text") from error
