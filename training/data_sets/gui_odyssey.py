"""GUI-Odyssey (OpenGVLab, 2024): episodes across apps on Android phones and tablets.

As published: `annotations/*.json`, one file an episode, `screenshots/`, and `splits/*.json` with lists of annotation
files for `train` and `test`. Fields: `introduction.md` of the repository OpenGVLab/GUI-Odyssey; actions: its
`data/format_converter.py`, which reads CLICK, LONG_PRESS, SCROLL, TEXT, COMPLETE and INCOMPLETE, the keys KEY_HOME,
KEY_BACK and KEY_APPSELECT as `info` of a click, and coordinates from 0 to 1000. The second version adds `sam2_bbox`,
the element around a click, and `low_level_instruction`.
"""

from __future__ import annotations

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

_EXTENT: Final = 1_000
_KEYS: Final[Mapping[str, Action]] = {
    "KEY_HOME": items.HOME,
    "KEY_BACK": items.BACK,
    "KEY_APPSELECT": items.RECENT,
}
_PLAIN: Final[Mapping[str, Action]] = {
    "COMPLETE": items.COMPLETE,
    "INCOMPLETE": items.IMPOSSIBLE,
    "IMPOSSIBLE": items.IMPOSSIBLE,
    "HOME": items.HOME,
    "BACK": items.BACK,
    "RECENT": items.RECENT,
}


def read(folder: Path, split: str | None) -> Iterator[Item | Exclusion]:
    """Reads the episodes of *folder*. *split* is a file of `splits/` and a part of it: `random_split/test`."""
    files = [folder] if folder.suffix == ".json" else sorted((folder / "annotations").glob("*.json"))
    if not files:
        raise BadInput(f"{folder} holds no annotations/*.json")
    home = files[0].resolve().parents[1]
    split_of = _split_of(home, split)
    for path in files:
        part = split_of.get(path.name) or split_of.get(path.stem)
        if split is not None and part != split.rpartition("/")[2]:
            yield Exclusion.SPLIT
            continue
        yield from _episode(path, home, part)


def _episode(path: Path, home: Path, split: Split | None) -> Iterator[Item]:
    episode = row_of(read_json(path), path.name)
    info = episode.inner("task_info")
    name = episode.text("episode_id", path.stem)
    device = episode.inner("device_info").text("device_name", "")
    history: list[str] = []
    for number, value in enumerate(episode.items("steps")):
        row = row_of(value, f"{path.name} step {number}")
        picture = row.file("screenshot", home / "screenshots", home / "screenshots" / path.stem)
        size = row.size(picture)
        action, box = _action(row, size)
        low = row.text("low_level_instruction", "")
        yield Item(
            row.where,
            f"gui-odyssey/{name}/{number}",
            picture,
            size,
            info.text("instruction"),
            box,
            Step(action, low, tuple(history)),
            platform=f"android, {device}" if device else "android",
            episode=name,
            split=split,
        )
        history.append(low or items.in_words(action))


def _action(row: Row, size: Size) -> tuple[Action, Corners | None]:
    kind, info = row.text("action"), row.values.get("info")
    if kind in ("CLICK", "LONG_PRESS"):
        if isinstance(info, str):
            if info not in _KEYS:
                raise row.bad(f"'info' {info!r} is not a known key")
            return _KEYS[info], None
        x, y = _points(row, size, 1)[0]
        action = items.click(x, y) if kind == "CLICK" else items.long_press(x, y)
        return action, _element(row, (x, y), size) or items.around(x, y, size)
    if kind == "SCROLL":
        start, end = _points(row, size, 2)
        return items.scroll_by_finger(start, end), None
    if kind in ("TEXT", "TYPE"):
        return items.typed(row.text("info")), None
    if kind not in _PLAIN:
        raise row.bad(f"'action' {kind!r} is not known")
    return _PLAIN[kind], None


def _element(row: Row, point: tuple[float, float], size: Size) -> Corners | None:
    """The box around a click in pixels; None without one, or if it does not hold the click."""
    if not row.values.get("sam2_bbox"):
        return None
    left, top, right, bottom = row.corners("sam2_bbox", wide=False)
    across, down = size[0] / _EXTENT, size[1] / _EXTENT
    return items.smallest_around(*point, [(left * across, top * down, right * across, bottom * down)])


def _points(row: Row, size: Size, count: int) -> list[tuple[float, float]]:
    """The points of `info`, in pixels."""
    pairs = row.items("info")
    if len(pairs) < count:
        raise row.bad(f"'info' must be {count} points")
    points = [Row({"info": pair}, row.where).numbers("info", 2) for pair in pairs[:count]]
    return [(x * size[0] / _EXTENT, y * size[1] / _EXTENT) for x, y in points]


def _split_of(home: Path, split: str | None) -> dict[str, Split]:
    """The part of each annotation file; empty if all parts are read."""
    if split is None:
        return {}
    known = sorted(path.stem for path in (home / "splits").glob("*.json"))
    check_split(split, tuple(f"{name}/{part}" for name in known for part in ("train", "test")))
    row = row_of(read_json(home / "splits" / f"{split.partition('/')[0]}.json"), f"splits/{split}")
    parts: tuple[Split, ...] = ("train", "test")
    return {cast("str", name): part for part in parts for name in row.items(part)}


DATA_SET: Final = DataSet(read, "annotations/, screenshots/ and splits/", ("step", "goal"))
