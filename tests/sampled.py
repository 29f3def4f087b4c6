"""Large tables of cases: a fixed share of them runs in `make test`, the rest with `pytest -m heavy`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], every: int = 2) -> list[Any]:
    """*cases* of `pytest.param`, all but one in *every* of them marked `heavy`."""
    return [
        case if number % every == 0 else pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.heavy])
        for number, case in enumerate(cases)
    ]
