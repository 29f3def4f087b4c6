"""ScreenSpot-Pro (2025): professional desktop applications at high resolution.

As published (`likaixin/ScreenSpot-Pro`): `annotations/*.json`, one file an application, with pictures in `images/`.
`bbox` is left, top, right and bottom in pixels (`eval_screenspot_pro.py` of its repository); `ui_type` is text or
icon; `group` is Dev, Creative, CAD, Scientific, Office or OS; `platform` is windows, linux or macos; `img_size` is
the picture's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from envs.core.errors import BadInput
from training.data_sets.items import Exclusion, Item
from training.data_sets.registry import DataSet
from training.data_sets.rows import rows_in
from training.data_sets.screenspot import element_of


def read(folder: Path, split: str | None) -> Iterator[Item | Exclusion]:
    """Reads the annotation files of *folder*. *split* is a group or an application."""
    files = [folder] if folder.suffix == ".json" else sorted((folder / "annotations").glob("*.json"))
    if not files:
        raise BadInput(f"{folder} holds no annotations/*.json")
    home = files[0].resolve().parents[1]
    for path in files:
        for number, row in enumerate(rows_in(path), 1):
            application, group = row.text("application"), row.text("group")
            if split not in (None, group, application):
                yield Exclusion.SPLIT
                continue
            picture = row.file("img_filename", home / "images", home)
            size = row.size(picture)
            if size != row.numbers("img_size", 2):
                raise row.bad(f"'img_size' is not the size of the image, {size[0]} x {size[1]}")
            yield Item(
                row.where,
                f"screenspot-pro/{path.stem}/{number}",
                picture,
                size,
                row.text("instruction"),
                row.corners("bbox", wide=False),
                element=element_of(row, "ui_type"),
                platform=row.text("platform"),
                group=group,
                split="test",
            )


DATA_SET: Final = DataSet(read, "annotations/*.json and images/", ("goal", "element"))
