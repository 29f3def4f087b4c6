"""Parquet files and summaries of earlier versions can still be read; new ones keep typed actions and columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from envs.core.actions import Click
from tests.training.trajectories import sampled, trajectory, worded
from training.data.cache import read_rows, read_trajectories, rows_digest, write_rows, write_trajectories
from training.data.columns import Column
from training.data.rows import Row
from training.data.table import DataSummary

CLICK = '# Element: the button\ndo(action="Click", element="7")'
ROWS = (Row((1, 2), (3,), 0, 0), Row((1,), (4, 5), 0, 1, (-0.5, -0.25)))


def as_before(record: dict[str, Any]) -> dict[str, Any]:
    """The JSON of a trajectory as earlier versions wrote it: `said` for `completion`, no typed action."""
    for decision in record["decisions"]:
        decision["said"] = decision.pop("completion")
        del decision["action"]
        if decision["tokens"] is not None:
            decision["tokens"]["action"] = decision["tokens"].pop("completion")
    return record


def test_trajectories_of_earlier_versions_get_their_actions_from_the_text(tmp_path: Path) -> None:
    episodes = (trajectory(worded(CLICK, "no action")), trajectory(sampled(((1, 2), (3, 4)), logprob=-0.5)))
    old = [json.dumps(as_before(json.loads(episode.model_dump_json()))) for episode in episodes]
    parquet.write_table(pa.table({"trajectory": old}), tmp_path / "old.parquet")
    read = read_trajectories(tmp_path / "old.parquet")
    assert read == episodes and [episode.identity for episode in read] == [episode.identity for episode in episodes]
    assert [decision.action for decision in read[0].decisions] == [Click(ref=7), None]


def test_the_typed_action_is_stored_and_not_parsed_again(tmp_path: Path) -> None:
    (decision,) = worded("a text in no action language")
    episode = trajectory([decision.model_copy(update={"action": Click(ref=3)})])
    write_trajectories(tmp_path / "new.parquet", [episode])
    (read,) = read_trajectories(tmp_path / "new.parquet")
    assert read == episode and read.decisions[0].action == Click(ref=3)


def test_rows_of_earlier_versions_have_boolean_columns(tmp_path: Path) -> None:
    """Their completion tokens are the column `action`, their booleans are floats, and unknown columns are ignored."""
    table = {
        "prompt": [list(row.prompt) for row in ROWS],
        "action": [list(row.completion) for row in ROWS],
        "trajectory": [row.trajectory for row in ROWS],
        "time": [row.time for row in ROWS],
        "sampled": [None, [-0.5, -0.25]],
        "allowed": [1.0, 0.0],
        "reference": [-0.5, -1.25],
        "other": [0.0, 0.0],
    }
    parquet.write_table(pa.table(table), tmp_path / "old.parquet")
    rows, columns = read_rows(tmp_path / "old.parquet")
    assert rows == ROWS and rows_digest(rows) == rows_digest(ROWS)
    assert columns == {Column.ALLOWED: (True, False), Column.REFERENCE: (-0.5, -1.25)}
    assert [type(value) for value in columns[Column.ALLOWED]] == [bool, bool]


def test_columns_are_stored_in_their_types(tmp_path: Path) -> None:
    columns = dict.fromkeys(Column, (1.0, 0.0))
    write_rows(tmp_path / "rows.parquet", ROWS, columns)
    schema = parquet.read_schema(tmp_path / "rows.parquet")
    stored = {column: "bool" if schema.field(column.value).type == pa.bool_() else "float64" for column in Column}
    assert stored == {column: column.dtype for column in Column}
    rows, read = read_rows(tmp_path / "rows.parquet")
    assert (rows, read) == (ROWS, columns)


def test_an_unknown_column_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'other' is not a valid Column"):
        write_rows(tmp_path / "rows.parquet", ROWS, {"other": (1.0, 0.0)})  # pyright: ignore[reportArgumentType]


def test_a_summary_of_earlier_versions_can_be_read() -> None:
    old = {"groups": [], "left_out": {}, "too_long": 0, "cut": 0, "rows": 1, "prompt_tokens": [1, 1, 1]}
    assert DataSummary.model_validate({**old, "action_tokens": [2, 3, 4]}).completion_tokens == (2, 3, 4)
