"""Trajectories and rows as Parquet: what a phase learned from, in the order in which it was learned from.

Plain tables that `datasets.load_dataset("parquet", …)` and pandas read, too. Equal content gives equal digests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from envs.core.atomic_write import replacing
from envs.core.errors import BadInput
from training.data.rows import Row
from training.data.trajectories import Trajectory

_ROW_FIELDS = ("prompt", "action", "trajectory", "time", "sampled")


def write_trajectories(path: Path, trajectories: Sequence[Trajectory]) -> None:
    """One trajectory a row: what one looks for as columns, the whole as JSON beside them."""
    import pyarrow as pa

    columns = {
        "run_id": pa.array([one.run_id for one in trajectories], pa.string()),
        "episode_id": pa.array([one.episode_id for one in trajectories], pa.string()),
        "task": pa.array([one.task.id for one in trajectories], pa.string()),
        "category": pa.array([one.category for one in trajectories], pa.string()),
        "success": pa.array([one.success for one in trajectories], pa.bool_()),
        "steps": pa.array([len(one.decisions) for one in trajectories], pa.int32()),
        "milestones": pa.array([one.milestones for one in trajectories], pa.int32()),
        "done": pa.array([list(one.done) for one in trajectories], pa.list_(pa.int32())),
        "trajectory": pa.array([one.model_dump_json() for one in trajectories], pa.string()),
    }
    _write(path, pa.table(columns))


def read_trajectories(path: Path) -> tuple[Trajectory, ...]:
    """Raises BadInput where *path* is no such table."""
    try:
        return tuple(Trajectory.model_validate_json(text) for text in _read(path, ["trajectory"])["trajectory"])
    except ValidationError as error:
        raise BadInput(f"{str(path)!r} holds no trajectories: {error.errors()[0]['msg']}") from error


def write_rows(path: Path, rows: Sequence[Row], columns: Mapping[str, Sequence[float]] | None = None) -> None:
    """Rows with further numbers beside them, each as long as *rows*: advantages, references, targets."""
    import pyarrow as pa

    table: dict[str, Any] = {
        "prompt": pa.array([list(row.prompt) for row in rows], pa.list_(pa.int32())),
        "action": pa.array([list(row.action) for row in rows], pa.list_(pa.int32())),
        "trajectory": pa.array([row.trajectory for row in rows], pa.int32()),
        "time": pa.array([row.time for row in rows], pa.int32()),
        "sampled": pa.array(
            [None if row.sampled is None else list(row.sampled) for row in rows], pa.list_(pa.float64())
        ),
    }
    for name, values in (columns or {}).items():
        if len(values) != len(rows):
            raise ValueError(f"column {name!r} has {len(values)} values for {len(rows)} rows")
        table[name] = pa.array(list(values), pa.float64())
    _write(path, pa.table(table))


def read_rows(path: Path) -> tuple[tuple[Row, ...], dict[str, tuple[float, ...]]]:
    """(rows, their further columns). Raises BadInput where *path* is no such table."""
    table = _read(path)
    rows = tuple(
        Row(tuple(prompt), tuple(action), trajectory, time, None if sampled is None else tuple(sampled))
        for prompt, action, trajectory, time, sampled in zip(*(table[name] for name in _ROW_FIELDS), strict=True)
    )
    return rows, {name: tuple(values) for name, values in table.items() if name not in _ROW_FIELDS}


def rows_digest(rows: Sequence[Row]) -> str:
    """16 hex digits over tokens and their places."""
    found = hashlib.sha256()
    for row in rows:
        found.update(json.dumps([row.prompt, row.action, row.trajectory, row.time]).encode())
    return found.hexdigest()[:16]


def _write(path: Path, table: Any) -> None:
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        parquet.write_table(table, part)


def _read(path: Path, columns: list[str] | None = None) -> dict[str, list[Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.read_table(path, columns=columns).to_pydict()
    except (OSError, KeyError, pa.ArrowInvalid) as error:
        raise BadInput(f"{str(path)!r} cannot be read as a table: {' '.join(str(error).split())[:200]}") from error
