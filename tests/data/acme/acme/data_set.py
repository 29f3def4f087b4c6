"""`mira data import acme FOLDER`: one square on each picture, in its middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from training.data_sets.items import Item
from training.data_sets.registry import DataSet
from training.data_sets.rows import Row


def read(folder: Path, split: str | None) -> Iterator[Item]:
    for path in sorted(folder.glob("*.png")):
        row = Row({"picture": path.name}, path.name)
        size = row.size(row.file("picture", folder))
        middle = size[0] / 4, size[1] / 4, 3 * size[0] / 4, 3 * size[1] / 4
        yield Item(path.name, f"acme/{path.stem}", path, size, "the square", middle)


ENTRY = DataSet(read, "pictures with a square", ("element",))
