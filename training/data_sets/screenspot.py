"""ScreenSpot (SeeClick, 2024): an instruction, and the box of the element that it means.

As published: `screenspot_mobile.json`, `screenspot_desktop.json` and `screenspot_web.json` with pictures in
`screenspot_imgs/`; `bbox` is left, top, width and height in pixels (SeeClick's `pretrain/screenspot_test.py`). Or
parquet with the pictures inside; `bbox` is left, top, right and bottom from 0 to 1 (`rootsautomation/ScreenSpot`, as
read by GUI-Actor's README).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from envs.core.errors import BadInput
from training.data_sets.items import Corners, Exclusion, Item
from training.data_sets.registry import DataSet, check_split
from training.data_sets.rows import Row, rows_in

PLATFORMS: Final = ("mobile", "desktop", "web")
_DEVICES: Final = {"ios": "mobile", "android": "mobile", "macos": "desktop", "windows": "desktop"}


def read(folder: Path, split: str | None) -> Iterator[Item | Exclusion]:
    """Reads the JSON files of *folder*, else its parquet files."""
    check_split(split, PLATFORMS)
    found = files_of(folder, "screenspot_{}.json")
    if found:
        yield from read_annotations(found, ("screenspot_imgs", "images", "."), split)
        return
    tables = [folder] if folder.suffix == ".parquet" else sorted(folder.glob("**/*.parquet"))
    if not tables:
        raise BadInput(f"{folder} holds no screenspot_*.json and no *.parquet")
    number = 0
    for row in (row for table in tables for row in rows_in(table)):
        number += 1
        platform = _DEVICES.get(row.text("data_source"), "web")
        if split not in (None, platform):
            yield Exclusion.SPLIT
            continue
        picture = row.picture("image", folder)
        size = row.size(picture)
        left, top, right, bottom = row.corners("bbox", wide=False)
        box = left * size[0], top * size[1], right * size[0], bottom * size[1]
        yield Item(
            row.where,
            f"screenspot/{number}",
            picture,
            size,
            row.text("instruction"),
            box,
            element=element_of(row, "data_type"),
            platform=platform,
            split="test",
        )


def files_of(folder: Path, pattern: str) -> list[tuple[str, Path]]:
    """The annotation files of *folder* by platform; a single file if *folder* is one."""
    named = [(platform, pattern.format(platform)) for platform in PLATFORMS]
    if folder.suffix == ".json":
        return [(platform, folder) for platform, name in named if folder.name == name]
    return [(platform, folder / name) for platform, name in named if (folder / name).is_file()]


def read_annotations(
    found: Sequence[tuple[str, Path]], images: Sequence[str], split: str | None
) -> Iterator[Item | Exclusion]:
    """Reads JSON files with boxes of left, top, width and height in pixels."""
    for platform, path in found:
        folders = [path.parent / name for name in images]
        for number, row in enumerate(rows_in(path), 1):
            if split not in (None, platform):
                yield Exclusion.SPLIT
                continue
            picture = row.file("img_filename", *folders)
            box: Corners = row.corners("bbox", wide=True)
            yield Item(
                row.where,
                f"{path.stem}/{number}",
                picture,
                row.size(picture),
                row.text("instruction"),
                box,
                element=element_of(row, "data_type"),
                platform=platform,
                split="test",
            )


def element_of(row: Row, key: str) -> Literal["text", "icon"]:
    """Whether the element is a text or an icon."""
    match row.text(key):
        case "text":
            return "text"
        case "icon":
            return "icon"
        case other:
            raise row.bad(f"{key!r} must be text or icon, not {other!r}")


DATA_SET: Final = DataSet(
    read, "screenspot_mobile.json, _desktop.json, _web.json and screenspot_imgs/; or parquet", ("goal", "element")
)
