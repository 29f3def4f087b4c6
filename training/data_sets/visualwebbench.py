"""VisualWebBench (2024): web pages, its two grounding subtasks: which of eight marked elements is meant.

As published (`visualwebbench/VisualWebBench`): parquet files `element_ground/test-*` and `action_ground/test-*`, one
row a question. `image` shows the marks A to H, `raw_image` the page without them; `options` are the boxes of the
marked elements, left, top, right and bottom; `answer` is the place of the right one, from 0; `elem_desc` (element
grounding) or `instruction` (action grounding) says what is meant; `image_size` is the size of the page's picture.
Sources: the features on the data set's page, and `run.py` and `utils/eval_utils.py` of its repository. They do not
state the units of `options`: numbers from 0 to 1 are taken for shares of the picture, others for pixels of it.

`--ask choice` asks for a letter, as the benchmark does, in words of Mira; `element` and `goal` ask for a point on the
page without marks, which the repository scores by whether the box holds it (`eval_element_point_ground`). The
subtasks on texts (captions, questions, OCR) and action prediction are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from envs.core.errors import BadInput
from training.data_sets.items import Choices, Corners, Exclusion, Item, Size
from training.data_sets.registry import DataSet, check_split
from training.data_sets.rows import Row, rows_in

SUBTASKS: Final[Mapping[str, str]] = {"element_ground": "elem_desc", "action_ground": "instruction"}
"""What a row of each subtask is asked by."""
_RATIO: Final = 1.01
"""The largest coordinate of boxes that are shares of the picture, with room for rounding."""


def read(folder: Path, split: str | None) -> Iterator[Item | Exclusion]:
    """Reads the parquet files of *folder*, or one file. *split* is a subtask. Files of other subtasks are counted."""
    check_split(split, tuple(SUBTASKS))
    files = [folder] if folder.suffix == ".parquet" else sorted(folder.glob("**/*.parquet"))
    if not files:
        raise BadInput(f"{folder} holds no *.parquet")
    for path in files:
        for row in rows_in(path):
            subtask = row.text("task_type")
            if subtask not in SUBTASKS or split not in (None, subtask):
                yield Exclusion.SPLIT
                continue
            yield _item(row, subtask, folder)


def _item(row: Row, subtask: str, folder: Path) -> Item | Exclusion:
    if row.values.get("image") is None or row.values.get("raw_image") is None:
        return Exclusion.NO_PICTURE
    marked, plain = row.picture("image", folder), row.picture("raw_image", folder)
    right = row.number("answer")
    count = len(row.items("options"))
    if not (right.is_integer() and 0 <= right < count):
        raise row.bad(f"'answer' must be the place of one of {count} 'options', from 0, not {right:g}")
    sizes = row.size(marked), row.size(plain)
    on_marked, on_plain = (_boxes(row, size) for size in sizes)
    return Item(
        row.where,
        f"visualwebbench/{row.text('id')}",
        plain,
        sizes[1],
        row.text(SUBTASKS[subtask]),
        on_plain[int(right)],
        choices=Choices(marked, sizes[0], on_marked, int(right), subtask == "action_ground"),
        platform="web",
        group=subtask,
        episode=row.text("website", ""),
        split="test",
    )


def _boxes(row: Row, size: Size) -> tuple[Corners, ...]:
    """The boxes of 'options' in pixels of a picture of *size*."""
    options = [Row({"options": box}, row.where).numbers("options", 4) for box in row.items("options")]
    if max(edge for box in options for edge in box) <= _RATIO:
        across, down = size
    else:
        wide, high = row.numbers("image_size", 2)
        across, down = size[0] / wide, size[1] / high
    return tuple((left * across, top * down, right * across, bottom * down) for left, top, right, bottom in options)


DATA_SET: Final = DataSet(read, "parquet files of element_ground/ and action_ground/", ("choice", "element", "goal"))
