"""Parts of a phase that are done once: each leaves a mark, and a loop that starts again passes over it."""

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
    """Where a run of a phase lies: the mark `rollouts.json` or `evaluation.json`, read by :func:`run_location`."""

    run: Path
    """From the mark's folder on where it lies below it, so that the whole may be moved; else absolute."""


def write_json(path: Path, values: Any) -> None:
    """The old file or the new one, never half of it."""
    write_atomically(path, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def write_record(path: Path, record: Record) -> None:
    write_json(path, record.model_dump(mode="json"))


def read_record(path: Path, kind: type[R]) -> R:
    """Raises BadInput where *path* is not what `write_record` left."""
    try:
        return kind.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(path)!r} cannot be read: {' '.join(str(error).split())[:200]}") from error


def run_location(mark: Path) -> Path:
    """The run that *mark*, a :class:`RunLocation`, names. Raises BadInput."""
    return (mark.parent / read_record(mark, RunLocation).run).resolve()


def load_or_compute(path: Path, kind: type[R], make: Callable[[], R]) -> R:
    """What *path* holds; where it is not there yet, what *make* gives, which is written to it."""
    if path.exists():
        return read_record(path, kind)
    made = make()
    write_record(path, made)
    return made
