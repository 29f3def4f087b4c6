"""benchmarks/README.md lists every benchmark once, and the pages that it links say how to run it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.documented import ROOT

FOLDER = ROOT / "benchmarks"
TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")
_LINK = re.compile(r"\]\(([\w./-]+)\)")


def test_every_benchmark_is_listed_once() -> None:
    listed = [link for link in _LINK.findall(TEXT) if link.endswith(".py")]
    assert sorted(listed) == sorted(path.name for path in FOLDER.glob("*.py"))


def test_the_pages_of_a_row_name_its_benchmarks() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| [")]
    assert len(rows) > 20
    for row in rows:
        pages = "".join(_page(link) for link in _LINK.findall(row) if link.endswith(".md"))
        missing = [link for link in _LINK.findall(row) if link.endswith(".py") and not _named(link, pages)]
        assert not missing, row


def _page(link: str) -> str:
    return (FOLDER / link).resolve().read_text(encoding="utf-8")


def _named(program: str, pages: str) -> bool:
    return re.search(rf"benchmarks[./]{Path(program).stem}\b", pages) is not None
