"""The importers by name. Installed packages add importers through the entry-point group `mira.data_sets`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from envs.core.errors import BadInput
from models.registry import DATA_SETS as GROUP
from models.registry import Registry
from training.data_sets.items import Exclusion, Item

Ask = Literal["element", "goal", "step", "choice", "text"]
"""The questions of `mira data import --ask`."""
Reader = Callable[[Path, str | None], Iterator[Item | Exclusion]]
"""Reads the data in a folder or file, of one split or of all (None), in its order. Raises BadInput."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """An importer."""

    read: Reader
    files: str
    """What the folder holds, for messages."""
    asks: tuple[Ask, ...]
    """The questions that its examples may ask; the first is the default."""


NAMES: Final = (
    "screenspot",
    "screenspot-v2",
    "screenspot-pro",
    "android-control",
    "gui-odyssey",
    "aitz",
    "omniact",
    "mind2web",
    "gui-r1-3k",
    "visualwebbench",
    "folder",
)
DATA_SETS: Final = Registry(
    GROUP,
    DataSet,
    {name: f"training.data_sets.{name.replace('-', '_')}:DATA_SET" for name in NAMES},
    error=BadInput,
)


def check_split(split: str | None, known: tuple[str, ...]) -> None:
    """Raises BadInput if *split* is none of *known*."""
    if split is not None and split not in known:
        raise BadInput(f"--split {split!r}: this data set has {', '.join(known) or 'no splits'}")
