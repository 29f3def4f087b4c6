"""The map "Where is what" of docs/architecture.md names existing paths, and names that they define."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from tests.docs.documented import ROOT

TOPICS = (
    "AutoRater's prompt",
    "allowlist",
    "element key",
    "MiRA advantage",
    "SSL reward",
    "model provider",
    "CLI option",
    "resume",
    "phase loop",
    "observation grammar",
    "GRPO's KL",
    "task of the sites",
)
"""What newcomers look for first."""
_CODE = re.compile(r"`([^`]+)`")


class Row(NamedTuple):
    """One row of the map."""

    topic: str
    path: str
    names: tuple[str, ...]
    """Further paths and names of code in the last column."""


def _rows() -> list[Row]:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = text.partition("\n## Where is what\n")[2].partition("\n## ")[0]
    cells = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")][1:]
    return [Row(topic.strip(), _CODE.findall(path)[0], tuple(_CODE.findall(rest))) for topic, path, rest in cells]


ROWS = _rows()


@pytest.mark.parametrize("topic", TOPICS)
def test_the_map_has_the_topics_of_newcomers(topic: str) -> None:
    assert [row for row in ROWS if topic in row.topic]


@pytest.mark.parametrize("row", ROWS, ids=[row.topic for row in ROWS])
def test_each_path_and_name_of_the_map_exists(row: Row) -> None:
    paths = [ROOT / row.path, *(ROOT / name for name in row.names if "/" in name)]
    assert [path for path in paths if not path.exists()] == []
    sources = "\n".join(path.read_text(encoding="utf-8") for path in paths if path.is_file())
    names = [name for name in row.names if "/" not in name]
    assert [name for name in names if not re.search(rf"\b{name}\b", sources)] == []
