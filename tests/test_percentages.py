"""Benchmarks print percentages in one form."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from benchmarks import percentages
from judges.statistics import Estimate

FORMATS = re.compile(r"[.,+\d]%\}| %\)\"|100 \* [^}]*:\+?\.\d")
"""A percentage in a format string of its own."""


def test_the_forms() -> None:
    assert doctest.testmod(percentages) == (0, 4)
    assert percentages.rate(Estimate(value=0.5, why_not="one episode")) == "50.0%"
    assert percentages.rate(Estimate(value=None)) == percentages.points(Estimate(value=None)) == "-"


def test_no_benchmark_has_a_form_of_its_own() -> None:
    files = sorted(Path(percentages.__file__).parent.rglob("*.py"))
    own = [path.name for path in files if FORMATS.search(path.read_text(encoding="utf-8"))]
    assert own == ["percentages.py"]
