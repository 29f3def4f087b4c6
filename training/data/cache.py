"""Reads and writes trajectories and rows as Parquet files, in the order in which a phase learned from them.

The files are plain tables, which `datasets.load_dataset("parquet", …)` and pandas can read. Equal content gives equal
digests. Rows of earlier versions, whose completion tokens are the column `action`, can still be read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from envs.core.atomic_write import replacing
from envs.core.errors import BadInput
from training.data.columns import Column, Columns
from training.data.rows import Row
from training.data.trajectories import Trajectory

_OLD_COMPLETION = "action"


def write_trajectories(path: Path, trajectories: Sequence[Trajectory]) -> None:
    """Writes one trajectory per table row: columns to filter by, and the full record as JSON."""
    import pyarrow as pa

    columns = {
        "run_id": pa.array([item.run_id for item in trajectories], pa.string()),
        "episode_id": pa.array([item.episode_id for item in trajectories], pa.string()),
        "task": pa.array([item.task.id for item in trajectories], pa.string()),
        "category": pa.array([item.category for item in trajectories], pa.string()),
        "success": pa.array([item.success for item in trajectories], pa.bool_()),
        "steps": pa.array([len(item.decisions) for item in trajectories], pa.int32()),
        "milestones": pa.array([item.milestones for item in trajectories], pa.int32()),
        "done": pa.array([list(item.done) for item in trajectories], pa.list_(pa.int32())),
        "trajectory": pa.array([item.model_dump_json() for item in trajectories], pa.string()),
    }
    _write(path, pa.table(columns))


def read_trajectories(path: Path) -> tuple[Trajectory, ...]:
    """Reads what `write_trajectories` wrote. Raises BadInput where *path* is no such table."""
    try:
        return tuple(Trajectory.model_validate_json(text) for text in _read(path, ["trajectory"])["trajectory"])
    except ValidationError as error:
        raise BadInput(f"{str(path)!r} holds no trajectories: {error.errors()[0]['msg']}") from error


def write_rows(path: Path, rows: Sequence[Row], columns: Columns | None = None) -> None:
    """Writes rows and *columns*. Raises ValueError where a column is not as long as *rows*."""
    import pyarrow as pa

    table: dict[str, Any] = {
        "prompt": pa.array([list(row.prompt) for row in rows], pa.list_(pa.int32())),
        "completion": pa.array([list(row.completion) for row in rows], pa.list_(pa.int32())),
        "trajectory": pa.array([row.trajectory for row in rows], pa.int32()),
        "time": pa.array([row.time for row in rows], pa.int32()),
        "sampled": _optional([row.sampled for row in rows]),
    }
    if any(row.start is not None for row in rows):
        table["start"] = _optional([row.start for row in rows])
    for name, values in (columns or {}).items():
        column = Column(name)
        if len(values) != len(rows):
            raise ValueError(f"column {column.value!r} has {len(values)} values for {len(rows)} rows")
        arrow_type = pa.bool_() if column.dtype == "bool" else pa.float64()
        table[column.value] = pa.array(list(column.convert(values)), arrow_type)
    _write(path, pa.table(table))


def read_rows(path: Path) -> tuple[tuple[Row, ...], dict[Column, tuple[float, ...]]]:
    """(rows, columns); unknown columns are ignored. Raises BadInput where *path* is no table of rows."""
    table = _read(path)
    completions = "completion" if "completion" in table else _OLD_COMPLETION
    starts = table.get("start") or [None] * len(table[completions])
    fields = ("prompt", completions, "trajectory", "time", "sampled")
    values = zip(*(table[name] for name in fields), starts, strict=True)
    rows = tuple(
        Row(tuple(prompt), tuple(completion), trajectory, time, _tuple(sampled), _tuple(start))
        for prompt, completion, trajectory, time, sampled, start in values
    )
    return rows, {column: column.convert(table[column.value]) for column in Column if column.value in table}


def rows_digest(rows: Sequence[Row]) -> str:
    """16 hex digits over the tokens of *rows*, their trajectories and times."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps([row.prompt, row.completion, row.trajectory, row.time]).encode())
    return digest.hexdigest()[:16]


def _optional(values: Sequence[tuple[float, ...] | None]) -> Any:
    import pyarrow as pa

    return pa.array([None if value is None else list(value) for value in values], pa.list_(pa.float64()))


def _tuple(values: list[float] | None) -> tuple[float, ...] | None:
    return None if values is None else tuple(values)


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
