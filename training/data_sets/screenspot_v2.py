"""ScreenSpot-v2 (OS-Atlas, 2024): ScreenSpot with corrected instructions and boxes.

As published (`OS-Copilot/ScreenSpot-v2`): `screenspot_mobile_v2.json`, `screenspot_desktop_v2.json` and
`screenspot_web_v2.json` with pictures in `screenspotv2_image/` (an archive to unpack); `bbox` is left, top, width and
height in pixels. OS-Atlas's README names the set; loaders of other repositories read these file names and this box.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from envs.core.errors import BadInput
from training.data_sets.items import Exclusion, Item
from training.data_sets.registry import DataSet, check_split
from training.data_sets.screenspot import PLATFORMS, files_of, read_annotations


def read(folder: Path, split: str | None) -> Iterator[Item | Exclusion]:
    """Reads the JSON files of *folder*."""
    check_split(split, PLATFORMS)
    found = files_of(folder, "screenspot_{}_v2.json")
    if not found:
        raise BadInput(f"{folder} holds no screenspot_*_v2.json")
    yield from read_annotations(found, ("screenspotv2_image", "."), split)


DATA_SET: Final = DataSet(
    read, "screenspot_mobile_v2.json, _desktop_v2.json, _web_v2.json and screenspotv2_image/", ("goal", "element")
)
