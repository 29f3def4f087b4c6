"""The mark in `run.json` that says which machine wrote it: over every value in it, so that an edited file fails."""

from __future__ import annotations

import json
from typing import Any, Final

from envs.core.local_key import local_key

MARK: Final = "mark"
_PURPOSE: Final = "run"


def marked(values: dict[str, Any]) -> dict[str, Any]:
    """*values* of a manifest, with this machine's mark over all of them."""
    return values | {MARK: local_key().mark(_PURPOSE, _canonical(values))}


def is_own(values: dict[str, Any]) -> bool:
    """Whether this machine wrote exactly these *values*."""
    mark = values.get(MARK)
    return isinstance(mark, str) and local_key().fits(mark, _PURPOSE, _canonical(values))


def _canonical(values: dict[str, Any]) -> bytes:
    """Equal for equal values, whatever their order and spacing; the mark itself is left out."""
    plain = {name: value for name, value in values.items() if name != MARK}
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()
