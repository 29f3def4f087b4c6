"""AITZ, Android in the Zoo (CoAT, 2024): episodes of AITW with descriptions and thoughts.

As published: `train/` and `test/`, in each the folders general, google_apps, install, single and web_shopping (a name
may lack), in each a folder an episode with `EPISODE.json`, a list of steps, and its pictures. `image_path` is
relative to the split's folder. Source: `AITZDataset` and `ActionEvaluator` of CoAT's code. `result_action_type` is
that of AITW: 3 type, 4 touch, 5 back, 6 home, 7 enter, 10 complete, 11 impossible. A touch is a click unless its
finger is lifted elsewhere (AITW: 4 % of the screen). `ui_positions` are top, left, height and width of elements in
pixels, as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

from envs.core.actions import Action
from envs.core.errors import BadInput
from training.data_sets import items
from training.data_sets.items import Corners, Exclusion, Item, Size, Step
from training.data_sets.registry import DataSet, check_split
from training.data_sets.rows import Row, read_json, row_of
from training.grpo.examples import Split

SPLITS: Final[tuple[Split, ...]] = ("train", "test")
TAP: Final = 0.04
"""Longest distance between touch and lift of a click, as a share of the screen."""
_TYPE, _TOUCH = 3, 4
_PLAIN: Final[Mapping[int, Action]] = {
    5: items.BACK,
    6: items.HOME,
    7: items.ENTER,
    10: items.COMPLETE,
    11: items.IMPOSSIBLE,
}


def read(folder: Path, split: str | None) -> Iterator[Item | Exclusion]:
    """Reads the episodes of *folder*."""
    check_split(split, SPLITS)
    parts: list[Split] = [part for part in SPLITS if (folder / part).is_dir()]
    if not parts:
        raise BadInput(f"{folder} holds neither train/ nor test/")
    for part in parts:
        files = sorted(path for path in (folder / part).glob("*/*/*.json") if path.stem == path.parent.name)
        for path in files:
            if split in (None, part):
                yield from _episode(path, folder / part, part)
            else:
                yield Exclusion.SPLIT


def _episode(path: Path, home: Path, split: Split) -> Iterator[Item]:
    steps = read_json(path)
    if not isinstance(steps, list):
        raise BadInput(f"{path.name}: a list of steps is expected")
    history: list[str] = []
    for number, value in enumerate(cast("list[object]", steps)):
        row = row_of(value, f"{path.name} step {number}")
        picture = row.file("image_path", home, home.parent)
        size = row.size(picture)
        action, box = _action(row, size)
        described = row.text("coat_action_desc", "").strip(" .")
        episode = row.text("episode_id", path.stem)
        yield Item(
            row.where,
            f"aitz/{path.parent.parent.name}/{episode}/{number}",
            picture,
            size,
            row.text("instruction"),
            box,
            Step(action, described, tuple(history)),
            platform="android",
            episode=episode,
            split=split,
        )
        history.append(described or items.in_words(action))


def _action(row: Row, size: Size) -> tuple[Action, Corners | None]:
    kind = int(row.number("result_action_type"))
    if kind == _TYPE:
        return items.typed(row.text("result_action_text")), None
    if kind != _TOUCH:
        if kind not in _PLAIN:
            raise row.bad(f"'result_action_type' {kind} is not known")
        return _PLAIN[kind], None
    top, left = row.numbers("result_touch_yx", 2)
    lifted_top, lifted_left = row.numbers("result_lift_yx", 2)
    if math.hypot(lifted_top - top, lifted_left - left) > TAP:
        start, end = (left * size[0], top * size[1]), (lifted_left * size[0], lifted_top * size[1])
        return items.scroll_by_finger(start, end), None
    x, y = left * size[0], top * size[1]
    box = items.smallest_around(x, y, _elements(row, size)) or items.around(x, y, size)
    return items.click(x, y), box


def _elements(row: Row, size: Size) -> list[Corners]:
    """The boxes of the elements in pixels; sets in the same format, such as CAGUI, state shares of the screen."""
    if not row.values.get("ui_positions"):
        return []
    places = [Row({"ui_positions": one}, row.where).numbers("ui_positions", 4) for one in row.items("ui_positions")]
    across, down = size if all(value <= 1 for place in places for value in place) else (1, 1)
    return [
        (left * across, top * down, (left + width) * across, (top + height) * down)
        for top, left, height, width in places
    ]


DATA_SET: Final = DataSet(read, "train/ and test/ with GROUP/EPISODE/EPISODE.json", ("step", "goal"))
