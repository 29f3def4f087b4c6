"""Multimodal-Mind2Web (2024): tasks on websites, a whole-page screenshot for each action.

As published (`osunlp/Multimodal-Mind2Web`): parquet files `train-*`, `test_task-*`, `test_website-*` and
`test_domain-*`, one row an action. `operation` is JSON with `op` (CLICK, TYPE, SELECT), `original_op` and `value`;
`pos_candidates` are JSON with `attributes`, JSON too, whose `bounding_box_rect` is left, top, width and height in
pixels, or -1s; `target_action_index` is the place of the action in its episode, `target_action_reprs` says it in
words; `confirmed_task` is the goal. Sources: SeeClick's `agent_tasks/mind2web_process.py` (operations, boxes;
hovering and pressing Enter count as clicks), UGround's `offline_evaluation/Multimodal-Mind2Web`, and converters of
the parquet files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from envs.core.actions import Action, Select
from envs.core.errors import BadInput
from training.data_sets import items
from training.data_sets.items import Corners, Exclusion, Item, Step
from training.data_sets.registry import DataSet, check_split
from training.data_sets.rows import Row, row_of, rows_in
from training.grpo.examples import Split

SPLITS: Final[Mapping[str, Split]] = {
    "train": "train",
    "test_task": "test",
    "test_website": "test",
    "test_domain": "test",
}


def read(folder: Path, split: str | None) -> Iterator[Item | Exclusion]:
    """Reads the parquet files of *folder*, or one file."""
    check_split(split, tuple(SPLITS))
    files = [folder] if folder.suffix == ".parquet" else sorted(folder.glob("**/*.parquet"))
    named = [(path, next((name for name in SPLITS if path.stem.partition("-")[0] == name), None)) for path in files]
    if not named:
        raise BadInput(f"{folder} holds no *.parquet")
    for path, part in named:
        if split not in (None, part):
            yield Exclusion.SPLIT
            continue
        for row in rows_in(path):
            yield _item(row, folder, part)


def _item(row: Row, folder: Path, part: str | None) -> Item | Exclusion:
    if row.values.get("screenshot") is None:
        return Exclusion.NO_PICTURE
    operation = row.inner("operation")
    boxes = [box for value in row.items("pos_candidates") if (box := _box(row, value)) is not None]
    if not boxes:
        return Exclusion.NO_BOX
    picture = row.picture("screenshot", folder)
    box = boxes[0]
    return Item(
        row.where,
        f"mind2web/{row.text('annotation_id')}/{row.text('action_uid')}",
        picture,
        row.size(picture),
        row.text("confirmed_task"),
        box,
        Step(_action(operation, box), row.text("target_action_reprs", ""), _history(row)),
        elements=tuple(boxes),
        platform="web",
        group=part or "",
        episode=row.text("annotation_id"),
        split=None if part is None else SPLITS[part],
    )


def _action(operation: Row, box: Corners) -> Action:
    match operation.text("op"):
        case "CLICK":
            return items.click((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
        case "TYPE":
            return items.typed(operation.text("value"))
        case "SELECT":
            return Select(ref=items.FOCUSED, option=operation.text("value"))
        case other:
            raise operation.bad(f"the operation {other!r} is not known")


def _history(row: Row) -> tuple[str, ...]:
    """The actions before this one in words; empty where the row does not list them."""
    if row.values.get("action_reprs") is None or row.values.get("target_action_index") is None:
        return ()
    index = str(row.values["target_action_index"])
    before = row.items("action_reprs")[: int(index)] if index.isdecimal() else []
    return tuple(str(one) for one in before)


def _box(row: Row, value: object) -> Corners | None:
    """The box of a candidate; None if it has none."""
    try:
        candidate = row_of(json.loads(value) if isinstance(value, str) else value, row.where)
        rect = candidate.inner("attributes").text("bounding_box_rect")
        left, top, width, height = (float(one) for one in rect.split(","))
    except ValueError:
        raise row.bad("a candidate has no 'bounding_box_rect' of four numbers") from None
    return (left, top, left + width, top + height) if min(width, height) > 0 else None


DATA_SET: Final = DataSet(read, "parquet files train-*, test_task-*, test_website-*, test_domain-*", ("step", "goal"))
