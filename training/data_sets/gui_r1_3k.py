"""GUI-R1-3K (2025): 3,000 mixed steps for training, and the test sets of GUI-R1 in the same format.

As published: `train.parquet`, `test.parquet` and files such as `androidcontrol_high_test.parquet`. `image` is a
picture inside the file; `gt_bbox` is a point or a box from 0 to 1; `gt_action` is click, long_press, type, scroll,
open_app, press_back, press_home, wait, complete, select, enter or "close/delete"; `gt_input_text` its argument.
Sources: GUI-R1's `verl/utils/dataset.py` (forks keep the scaling of `gt_bbox` by the picture's size),
`verl/utils/reward_score/r1gui.py` (actions, both lengths of `gt_bbox`) and
`guir1/inference/inference_vllm_android.py` (`image`, `history`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast, get_args

from envs.core.actions import Action, Select
from envs.core.errors import BadInput
from training.data_sets import items
from training.data_sets.items import Corners, Direction, Exclusion, Item, Size, Step
from training.data_sets.registry import DataSet, check_split
from training.data_sets.rows import Row, rows_in

_EDGE: Final = 1.01
"""The largest coordinate, which rounding may put beyond the edge."""
_NOTHING: Final = ("", "None", "none", "no input text", "null")
_CLICKS: Final[Mapping[str, Mapping[str, Any]]] = {
    "click": {},
    "long_press": {"button": "right"},
    "rightclick": {"button": "right"},
    "doubleclick": {"count": 2},
}
_PLAIN: Final[Mapping[str, Action]] = {
    "press_back": items.BACK,
    "press_home": items.HOME,
    "press_recent": items.RECENT,
    "enter": items.ENTER,
    "wait": items.WAIT,
    "complete": items.COMPLETE,
    "impossible": items.IMPOSSIBLE,
}


def read(folder: Path, split: str | None) -> Iterator[Item | Exclusion]:
    """Reads the parquet files of *folder*, or one file. *split* is the name of a file without its suffix."""
    files = [folder] if folder.suffix == ".parquet" else sorted(folder.glob("*.parquet"))
    if not files:
        raise BadInput(f"{folder} holds no *.parquet")
    check_split(split, tuple(path.stem for path in files))
    for path in files:
        if split not in (None, path.stem):
            yield Exclusion.SPLIT
            continue
        for number, row in enumerate(rows_in(path), 1):
            yield _item(row, path, number)


def _item(row: Row, path: Path, number: int) -> Item | Exclusion:
    picture = row.picture("image", path.parent)
    size = row.size(picture)
    found = _action(row, size)
    if isinstance(found, Exclusion):
        return found
    action, box = found
    history = row.text("history", "")
    name = f"gui-r1/{path.stem}/{number}"
    return Item(
        row.where,
        name,
        picture,
        size,
        row.text("instruction"),
        box,
        Step(action, "", () if history in _NOTHING else (history,)),
        platform=row.text("platform", ""),
        split="train" if path.stem.startswith("train") else "test",
    )


def _action(row: Row, size: Size) -> tuple[Action, Corners | None] | Exclusion:
    kind, text = row.text("gt_action").strip().lower(), row.text("gt_input_text", "")
    if kind in _CLICKS:
        x, y, box = _place(row, size)
        return items.click(x, y).model_copy(update=_CLICKS[kind]), box
    if kind in ("scroll", "swipe"):
        direction = text.strip().lower()
        if direction not in get_args(Direction):
            raise row.bad(f"'gt_input_text' of a scroll must be up, down, left or right, not {text!r}")
        return items.scroll(cast("Direction", direction)), None
    match kind:
        case "type":
            return items.typed(text), None
        case "open_app":
            return items.open_app(text), None
        case "select":
            return Select(ref=items.FOCUSED, option=text), None
        case "moveto" | "hover":
            return Exclusion.POINTER
        case _:
            return (_PLAIN[kind], None) if kind in _PLAIN else Exclusion.NO_ACTION


def _place(row: Row, size: Size) -> tuple[float, float, Corners]:
    """The point of a click and its box, in pixels."""
    numbers = row.numbers("gt_bbox", 2, 4)
    if max(numbers) > _EDGE or min(numbers) < 1 - _EDGE:
        raise row.bad(f"'gt_bbox' must be from 0 to 1, not {list(numbers)}: a copy in pixels is not the published one")
    scaled = [value * size[index % 2] for index, value in enumerate(numbers)]
    if len(scaled) == 2:
        x, y = scaled
        return x, y, items.around(x, y, size)
    left, top, right, bottom = scaled
    return (left + right) / 2, (top + bottom) / 2, (left, top, right, bottom)


DATA_SET: Final = DataSet(read, "train.parquet, test.parquet and others of GUI-R1", ("step", "goal"))
