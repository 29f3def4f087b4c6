"""Marks `run.json` with an HMAC over all of its values, under a key of this user. An edited file does not match."""

from __future__ import annotations

import json
from typing import Any, Final

from envs.core.local_key import local_key

MARK: Final = "mark"
_PURPOSE: Final = "run"


def marked(values: dict[str, Any]) -> dict[str, Any]:
    """Returns *values* of a manifest with this machine's mark over all of them."""
    return values | {MARK: local_key().mark(_PURPOSE, _canonical(values))}


def is_own(values: dict[str, Any]) -> bool:
    """Whether this machine wrote exactly these *values*."""
    mark = values.get(MARK)
    return isinstance(mark, str) and local_key().fits(mark, _PURPOSE, _canonical(values))


def _canonical(values: dict[str, Any]) -> bytes:
    """Canonical bytes: equal for equal values, independent of order and spacing. The mark itself is left out."""
    plain = {name: value for name, value in values.items() if name != MARK}
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()
