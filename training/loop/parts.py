"""Result files of a phase's parts: a part whose file exists is skipped when the loop is resumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from envs.core.record import Record

R = TypeVar("R", bound=Record)


class RunLocation(Record):
    """The location of a phase's run, stored as `rollouts.json` or `evaluation.json`, read by :func:`run_location`."""

    run: Path
    """Relative to the file's folder if the run is below it, so that the folder may be moved; else absolute."""


def write_json(path: Path, values: Any) -> None:
    """Writes JSON atomically."""
    write_atomically(path, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def write_record(path: Path, record: Record) -> None:
    write_json(path, record.model_dump(mode="json"))


def read_record(path: Path, kind: type[R]) -> R:
    """Reads what `write_record` wrote. Raises BadInput where *path* is no such file."""
    try:
        return kind.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(path)!r} cannot be read: {' '.join(str(error).split())[:200]}") from error


def run_location(mark: Path) -> Path:
    """The run that the file *mark*, a :class:`RunLocation`, names. Raises BadInput."""
    return (mark.parent / read_record(mark, RunLocation).run).resolve()


def load_or_compute(path: Path, kind: type[R], compute: Callable[[], R]) -> R:
    """Reads the record at *path*; if there is none, calls *compute* and writes its result to *path*."""
    if path.exists():
        return read_record(path, kind)
    record = compute()
    write_record(path, record)
    return record
