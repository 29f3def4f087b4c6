"""Tests that the documentation cites exist."""

from __future__ import annotations

import re

import pytest

from tests.docs.documented import ROOT, pages

_CITED = re.compile(r"\btests/[\w/]+\.py(?:::(test_\w+))?")
CITED = sorted(
    {(match[0], match[1] or "") for page in pages() for match in _CITED.finditer(page.read_text(encoding="utf-8"))}
)


@pytest.mark.parametrize(("cited", "name"), CITED, ids=[cited for cited, _ in CITED])
def test_a_cited_test_exists(cited: str, name: str) -> None:
    path = ROOT / cited.partition("::")[0]
    assert path.is_file()
    assert not name or re.search(rf"^\s*(?:async )?def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_audits_cite_a_test_in_each_row() -> None:
    text = (ROOT / "docs/results/audits.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| item |")]
    assert len(rows) > 40
    assert [row for row in rows if "`tests/" not in row] == []
