"""A folder of one's own screenshots with a table of what is on them.

    picture,instruction,left,top,right,bottom,role,platform
    shots/cart.png,the checkout button,812,40,930,78,text,web

`labels.csv` has these columns; `role` (text or icon) and `platform` may be missing or empty. `labels.jsonl` has an
object a line: `{"picture": "shots/cart.png", "instruction": "the checkout button", "box": [812, 40, 930, 78]}`. Boxes
are left, top, right and bottom in pixels of the picture as viewers show it: turned as its EXIF data say. Pictures are
relative to the folder of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from envs.core.errors import BadInput
from training.data_sets.items import Corners, Exclusion, Item, Size
from training.data_sets.registry import DataSet, check_split
from training.data_sets.rows import Row, rows_in
from training.data_sets.screenspot import element_of

TABLES: Final = ("labels.csv", "labels.jsonl")
_SIDES: Final = ("left", "top", "right", "bottom")


def read(folder: Path, split: str | None) -> Iterator[Item | Exclusion]:
    """Reads `labels.csv` or `labels.jsonl` of *folder*, or a table of another name."""
    check_split(split, ())
    table = folder if folder.is_file() else next((folder / name for name in TABLES if (folder / name).is_file()), None)
    if table is None:
        raise BadInput(f"{folder} holds no {' or '.join(TABLES)}")
    for number, row in enumerate(rows_in(table), 1):
        picture = row.file("picture", table.parent)
        size = row.size(picture)
        yield Item(
            row.where,
            f"{table.parent.name or 'folder'}/{number}",
            picture,
            size,
            row.text("instruction"),
            _box(row, size),
            element=element_of(row, "role") if row.values.get("role") else "",
            platform=row.text("platform", ""),
            episode=row.text("picture"),
        )


def _box(row: Row, size: Size) -> Corners:
    if "box" in row.values:
        left, top, right, bottom = row.numbers("box", 4)
    else:
        left, top, right, bottom = (_pixels(row, side) for side in _SIDES)
    if right - left < 1 or bottom - top < 1:
        raise row.bad(f"the box {left:g}, {top:g}, {right:g}, {bottom:g} must be left, top, right, bottom in pixels")
    if left < 0 or top < 0 or right > size[0] or bottom > size[1]:
        raise row.bad(
            f"the box {left:g}, {top:g}, {right:g}, {bottom:g} is outside of the image, {size[0]} x {size[1]}"
        )
    return left, top, right, bottom


def _pixels(row: Row, side: str) -> float:
    value = row.values.get(side)
    if not isinstance(value, str):
        return row.number(side)
    try:
        return row.finite(side, float(value))
    except ValueError:
        raise row.bad(f"{side!r} must be a number of pixels, not {value!r}") from None


DATA_SET: Final = DataSet(read, "labels.csv or labels.jsonl, and the images that it names", ("element", "goal"))
